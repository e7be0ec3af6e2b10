"""Bills on the command line: entered, decided, stated, logged; the same over the service's API."""

from __future__ import annotations

import csv
import shutil
from decimal import Decimal
from io import StringIO

import pytest

OCTOBER = ("--month", "2026-10")
CREDIT = ("adjust", "add", "--team", "vision", *OCTOBER, "--kind", "credit", "--amount=-12.50",
          "--reason", "slow node", "--by", "ada")  # fmt: skip


@pytest.fixture
def db(demo_db, tmp_path):
    """A copy of the demo that a test may change."""
    return shutil.copy(demo_db, tmp_path / "copy.duckdb")


def month_cost(cli, db, *more):
    since = ("--since", "2026-10-01", "--until", "2026-11-01")
    return cli("report", "cost", *since, *more, "--db", db, "--json").json


def test_a_credit_goes_from_entry_to_statement_and_report(cli, db):
    before = month_cost(cli, db)
    assert "A-0001" in cli(*CREDIT, "--db", db).out
    assert cli("adjust", "approve", "A-0001", "--by", "ada", "--db", db).code == 1
    assert cli("adjust", "approve", "A-0001", "--by", "bob", "--db", db).code == 0
    after = month_cost(cli, db)
    assert after["rows"] == before["rows"]
    assert Decimal(after["adjusted_cost"]) == Decimal(before["total"]["cost"]) - Decimal("12.50")
    table = cli("report", "cost", "--since", "2026-10-01", "--until", "2026-11-01", "--db", db).out
    assert "adjusted  A-0001 2026-10 vision: credit -12.50 USD, slow node" in table
    bill = cli("statement", "--team", "vision", *OCTOBER, "--db", db, "--json").json
    row = next(row for row in after["rows"] if row["team"] == "vision")
    assert abs(Decimal(bill["gpu_time"]) - Decimal(row["cost"])) < Decimal("0.01")
    assert Decimal(bill["total"]) == Decimal(bill["gpu_time"]) - Decimal("12.50")
    log = cli("audit", "--action", "adjustment", "--db", db, "--json").json["rows"]
    assert [(r["action"], r["actor"]) for r in log] == [
        ("adjustment.add", "ada"), ("adjustment.approve", "bob"),
    ]  # fmt: skip


def test_all_statements_of_a_month_are_files_that_add_up(cli, db, tmp_path):
    out = tmp_path / "bills"
    answer = cli("statement", "--all", *OCTOBER, "--format", "csv,html", "--out", out, "--db", db)
    assert answer.code == 0, answer.err
    files = sorted(out.glob("*.csv"))
    assert len(files) == 6 == len(list(out.glob("*.html")))
    paid = sum(
        Decimal(row["amount"])
        for file in files
        for row in csv.DictReader(StringIO(file.read_text("utf-8")))
        if row["charged"] == "yes"
    )
    total = Decimal(month_cost(cli, db)["total"]["cost"])
    assert paid == total.quantize(Decimal("0.01"))


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("--team", "visoin", *OCTOBER), 1, "there is vision"),
        (("--team", "vision", "--month", "2026-13"), 1, "write 2026-10"),
        (("--team", "vision", "--month", "-2026-10"), 1, "write 2026-10"),
        (("--team", "vision", "--month", "2190-10"), 1, "has not begun"),
        (("--team", "vision", "--month", "1950-10"), 1, "a price, or nothing is installed"),
        (OCTOBER, 2, "--platform or --all"),
        (("--team", "vision", "--all", *OCTOBER), 2, "--platform or --all"),
        (("--team", "vision", *OCTOBER, "--format", "docx"), 1, "html, pdf, csv"),
        (("--team", "vision", *OCTOBER, "--language", "fr"), 1, "no language"),
        (("--team", "vision", *OCTOBER, "--currency", "EUR"), 1, "no rate from USD to EUR"),
        (("--team", "vision", *OCTOBER, "--currency", "euro"), 1, "ISO 4217"),
        (("--team", "vision", *OCTOBER, "--cluster", "x"), 1, "there is demo"),
        (("--team", "vision", *OCTOBER, "--time-zone", "Mars/Base"), 1, "Mars/Base"),
    ],
)
def test_a_statement_that_cannot_be_is_refused_in_one_line(cli, db, arguments, code, word):
    answer = cli("statement", *arguments, "--db", db)
    assert answer.code == code
    assert word in " ".join(answer.err.replace("│", " ").split())
    assert "Traceback" not in answer.err


def test_dated_rates_are_loaded_listed_corrected_and_used(cli, db, tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text("from_currency,to_currency,rate,effective_from\nUSD,EUR,0.5,2026-01-01\n")
    assert "1 rows, 1 of them new" in cli("price", "rates", "load", file, "--db", db).out
    assert "1 rows, 0 of them new" in cli("price", "rates", "load", file, "--db", db).out
    dollars = Decimal(month_cost(cli, db)["total"]["cost"])
    euros = month_cost(cli, db, "--currency", "EUR")
    assert euros["currency"] == "EUR"
    assert Decimal(euros["total"]["cost"]) == dollars / 2
    file.write_text("from_currency,to_currency,rate,effective_from\nUSD,EUR,0.9,2026-01-01\n")
    refused = cli("price", "rates", "load", file, "--db", db)
    assert refused.code == 1
    assert "is 0.5 already" in refused.err
    assert cli("price", "rates", "load", file, "--correct", "--db", db).code == 0
    (row,) = cli("price", "rates", "list", "--db", db, "--json").json["rows"]
    assert Decimal(row["rate"]) == Decimal("0.9")
    log = cli("audit", "--action", "rate", "--db", db, "--json").json["rows"]
    assert log[-1]["before_value"] == "0.5"


@pytest.mark.parametrize(
    "line",
    ["USD,EUR,0,2026-01-01", "USD,EUR,NaN,2026-01-01", "USD,EUR,-1,2026-01-01",
     "USD,USD,1,2026-01-01", "usd,EUR,1,2026-01-01", "USD,EUR,1,2026-01-01T00:30",
     "USD,EUR,1,soon", "USD,EUR,1,2026-01-01\nUSD,EUR,2,2026-01-01", ""],
)  # fmt: skip
def test_a_broken_rate_loads_nothing(cli, db, tmp_path, line):
    file = tmp_path / "rates.csv"
    file.write_text(f"from_currency,to_currency,rate,effective_from\n{line}\n")
    answer = cli("price", "rates", "load", file, "--db", db)
    assert answer.code == 1, answer.out
    assert cli("price", "rates", "list", "--db", db, "--json").json["rows"] == []


@pytest.mark.parametrize(
    ("group", "header"),
    [("price", "gpu_model,amount,currency"), ("org", "key_kind,key_value,team")],
)
def test_a_file_with_a_header_alone_is_refused_even_to_replace(cli, db, tmp_path, group, header):
    file = tmp_path / "empty.csv"
    file.write_text(header + "\n")
    before = cli(group, "list", "--db", db, "--json").json["rows"]
    replace = ("--replace",) if group == "org" else ()
    answer = cli(group, "load", file, *replace, "--db", db)
    assert answer.code == 1
    assert "no line after it; nothing was changed" in answer.err
    assert cli(group, "list", "--db", db, "--json").json["rows"] == before


def test_a_spot_series_is_charged_once_the_cluster_pays_spot(cli, db, tmp_path):
    file = tmp_path / "spot.csv"
    hours = "".join(
        f"{model},{amount},USD,spot,2026-10-05T{hour:02d}:00\n"
        for model in ("A100-40", "T4-16")
        for hour, amount in ((0, "1"), (6, "2"), (12, "4"))
    )
    file.write_text("gpu_model,amount,currency,purchase_type,effective_from\n" + hours)
    assert cli("price", "load", file, "--db", db).code == 0
    put = ("setting", "put", "purchase_type", "spot", "--since", "2026-10-05", "--cluster", "demo")
    assert cli(*put, "--db", db).code == 0
    day = ("--since", "2026-10-05", "--until", "2026-10-06")
    report = cli("report", "cost", *day, "--db", db, "--json").json
    assert Decimal(report["total"]["cost"]) == 96 * (6 * 1 + 6 * 2 + 12 * 4)
    assert report["identity"] == {"gpu_seconds_difference": 0, "cost_difference": "0"}


def test_a_day_is_closed_once_and_keeps_its_cost_when_prices_change(cli, db, tmp_path):
    close = ("close", "2026-10-06", "--cluster", "demo", "--db", db)
    assert cli(*close).code == 0
    assert "closed already" in cli(*close).err
    day = ("--since", "2026-10-06", "--until", "2026-10-07", "--db", db, "--json")
    before = cli("report", "cost", *day).json
    file = tmp_path / "prices.csv"
    file.write_text("gpu_model,amount,currency\nA100-40,3,USD\nT4-16,1,USD\n")
    assert cli("price", "load", file, "--db", db).code == 0
    assert cli("report", "cost", *day).json == before
    refused = cli("setting", "put", "headroom_gpus", "4", "--since", "2026-10-01", "--db", db)
    assert "2026-10-06 is closed" in refused.err
    rule = ("setting", "who-pays", "unallocated", "use", "--since")
    assert cli(*rule, "2026-10-01", "--db", db).code == 1
    assert cli(*rule, "2026-10-07", "--db", db).code == 0
    rows = cli("setting", "list", "--db", db, "--json").json["rows"]
    assert ("who pays: unallocated", "use") in {(row["key"], row["value"]) for row in rows}


@pytest.mark.parametrize(
    "arguments", [("2026-13-01",), ("2026-10-06", "--coverage", "2"), ("2026-10-06", "--coverage",
                                                                       "x")]
)  # fmt: skip
def test_a_close_that_makes_no_sense_is_refused(cli, db, arguments):
    answer = cli("close", *arguments, "--cluster", "demo", "--db", db)
    assert answer.code == 1
    assert "Traceback" not in answer.err


def test_an_invoice_is_entered_reconciled_and_retired(cli, db, tmp_path):
    file = tmp_path / "invoice.csv"
    file.write_text(
        "description,amount,gpu_model,gpu_hours,price_kind\n"
        "A100 nodes,110000,A100-40,41472,contracted\nT4 nodes,11000,T4,20736,\nIB,2500,,,\n"
    )
    add = ("invoice", "add", *OCTOBER, "--source", "Cloud 17", "--lines", file, "--by", "ada")
    assert "I-0001: invoice 123500.00 USD" in cli(*add, "--db", db).out
    assert "I-0001 for 2026-10 already" in cli(*add, "--db", db).err
    document = cli("report", "reconciliation", *OCTOBER, "--db", db, "--json").json
    total = document["total"]
    assert Decimal(total["outside_cost"]) - Decimal(total["ledger_cost"]) == Decimal(total["cost"])
    assert sum(Decimal(row["cost"]) for row in document["rows"]) == Decimal(total["cost"])
    assert Decimal(total["ledger_cost"]) == Decimal(month_cost(cli, db)["total"]["cost"]).quantize(
        Decimal("0.01")
    )
    assert cli("invoice", "retire", "I-0001", "--reason", "twice", "--db", db).code == 0
    assert "invoice add" in cli("report", "reconciliation", *OCTOBER, "--db", db).err


def test_recovery_commitments_and_energy_are_told(cli, db, tmp_path):
    prices = tmp_path / "p.csv"
    prices.write_text(
        "gpu_model,amount,currency,kind\nA100-40,2,USD,contracted\nA100-40,3,USD,internal\n"
        "T4-16,0.4,USD,amortized\n"
    )
    commitments = tmp_path / "c.csv"
    commitments.write_text(
        "commitment_id,gpu_model,gpus,amount,currency,effective_from,effective_to\n"
        "ri,A100-40,72,1,USD,2026-01-01,2027-01-01\n"
    )
    carbon = tmp_path / "g.csv"
    carbon.write_text("grams_per_kwh,effective_from,pue\n400,2026-01-01,1.2\n")
    assert cli("price", "load", prices, "--db", db).code == 0
    assert cli("price", "commitments", "load", commitments, "--db", db).code == 0
    assert cli("price", "carbon", "load", carbon, "--db", db).code == 0
    day = ("--since", "2026-10-06", "--until", "2026-10-07", "--db", db, "--json")
    rows = {row["item"]: row for row in cli("report", "recovery", *day).json["rows"]}
    # All 64 lie within the commitment of 72, at its price and not at the contracted one.
    assert Decimal(rows["A100-40"]["actual_cost"]) == 64 * 24 * 1
    assert Decimal(rows["unused commitments"]["actual_cost"]) == 8 * 24
    unused = cli("report", "commitments", *day).json["total"]["unused_gpu_hours"]
    assert unused == 8 * 24
    energy = cli("report", "energy", *day).json
    assert energy["total"]["energy_kwh"] > 100
    assert energy["total"]["carbon_g"] == pytest.approx(energy["total"]["energy_kwh"] * 480)
    assert sum(row["energy_kwh"] for row in energy["rows"]) == pytest.approx(
        energy["total"]["energy_kwh"]
    )


def test_the_amortized_rate_is_worked_out_and_put_into_the_book(cli, db):
    asset = "--gpus 8 --capex 300000 --residual 0.25 --life-years 3 --power-kw 10 --per-kwh 0.10"
    node = ("price", "calculate", *asset.split(), "--pue", "1.2")
    rate = cli(*node, "--json").json
    # (300000 x 0.75 / 3 + 10 x 8760 x 1.2 x 0.10) / (8 x 8760)
    assert rate["per_gpu_hour"] == "1.220205"
    assert cli(*node, "--gpu-model", "A100-40", "--db", db).code == 0
    rows = cli("price", "list", "--db", db, "--json").json["rows"]
    found = [row for row in rows if row["kind"] == "amortized"]
    assert [(row["gpu_model"], row["amount"]) for row in found] == [("A100-40", "1.220205")]
    assert "capex" in cli("price", "calculate", "--gpus", "8", "--capex", "much").err
    assert "gpus must be 1" in cli("price", "calculate", "--gpus", "0", "--capex", "1").err


def test_statements_are_issued_and_given_out_again_on_the_command_line(cli, db, tmp_path):
    from datetime import UTC, date, datetime

    from collector.store import Store

    refused = cli("statement", "--team", "vision", *OCTOBER, "--issue", "--db", db)
    assert (refused.code, "provisional" in refused.err) == (1, True)
    with Store.open(db, clock=lambda: datetime(2026, 11, 9, tzinfo=UTC)) as store:
        same = {"cluster": "demo", "closed_by": "ada", "coverage_ratio": Decimal(1)}
        same |= dict.fromkeys(("ledger_hash", "price_hash", "org_hash", "rules_version"), "x")
        same |= {"closed_at": datetime(2026, 11, 9, tzinfo=UTC)}
        with store.work() as work:
            (cluster,) = {row["cluster"] for row in work.rows("SELECT cluster FROM node")}
            same["cluster"] = cluster
            days = [date(2026, 10, day) for day in range(1, 32)]
            work.append("closed_day", {"day": days} | {k: [v] * 31 for k, v in same.items()})
    done = cli("statement", "--team", "vision", *OCTOBER, "--issue", "--by", "ada", "--db", db,
               "--json").json["rows"]  # fmt: skip
    assert [(one["team"], one["version"], one["new"]) for one in done] == [("vision", 1, True)]
    rows = cli("issued", "list", *OCTOBER, "--db", db, "--json").json["rows"]
    assert [(row["issue_id"], row["issued_by"]) for row in rows] == [("S-000001", "ada")]
    get = ("issued", "get", "S-000001", "--format", "csv,html", "--db", db, "--out")
    assert cli(*get, tmp_path / "one").code == cli(*get, tmp_path / "two").code == 0
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    assert len(list((tmp_path / "one").iterdir())) == 2
    told = cli("statement", "--team", "vision", *OCTOBER, "--db", db).out
    assert "issued    S-000001 version 1" in told
    assert "): this" in told
