"""Prices and owners from files: taken whole or refused whole, and reports change with them."""

from __future__ import annotations

import shutil
from decimal import Decimal

import pytest

from collector.store import Store
from unstrand.clock import utc_now

WINDOW = ("--since", "2026-10-05", "--until", "2026-10-06")


@pytest.fixture
def db(demo_db, tmp_path):
    """A copy of the demo that a test may change."""
    return shutil.copy(demo_db, tmp_path / "copy.duckdb")


def total(cli, db):
    return Decimal(cli("report", "cost", *WINDOW, "--db", db, "--json").json["total"]["cost"])


def test_the_shipped_prices_name_source_and_day(cli, db):
    rows = cli("price", "list", "--db", db, "--json").json["rows"]
    a100 = next(row for row in rows if row["gpu_model"] == "A100-40")
    assert a100["amount"] == "2.744705"
    assert a100["source"].startswith("default: ")
    assert a100["retrieved_on"] == "2026-11-09"


def test_a_price_of_ones_own_wins_and_the_report_follows(cli, db, tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("gpu_model,amount,currency\nA100-40,3,USD\nT4-16,1,USD\n")
    before = total(cli, db)
    answer = cli("price", "load", file, "--db", db)
    assert answer.code == 0
    assert "2 prices, 2 of them new" in answer.out
    assert total(cli, db) == 24 * (64 * 3 + 32 * 1) != before
    assert "0 of them new" in cli("price", "load", file, "--db", db).out


def test_a_broken_price_file_changes_nothing_and_names_the_line(cli, db, tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("gpu_model,amount,currency\nA100-40,3,USD\nT4-16,0,USD\n")
    before = total(cli, db)
    answer = cli("price", "load", file, "--db", db)
    assert answer.code == 1
    assert f"{file} line 3" in answer.err
    assert total(cli, db) == before


def test_the_price_check_names_a_model_that_has_no_price(cli, db):
    answer = cli("price", "check", "--db", db)
    assert answer.code == 0
    assert answer.out == "every installed model has a price\n"
    with Store.open(db, clock=utc_now) as store, store.work() as work:
        work.execute("UPDATE node SET gpu_model = 'A1000-X' WHERE node = 'a100-08'")
    answer = cli("price", "check", "--db", db, "--json")
    assert answer.code == 1
    (row,) = answer.json["rows"]
    assert (row["gpu_model"], Decimal(row["gpu_hours"])) == ("A1000-X", 8 * 28 * 24)


def test_an_owner_from_a_file_takes_the_unmapped_account(cli, db, tmp_path):
    file = tmp_path / "org.csv"
    file.write_text("key_kind,key_value,team\naccount,guest,visitors\n")
    assert cli("org", "check", "--db", db).code == 1
    assert cli("org", "load", file, "--db", db).code == 0
    assert cli("org", "check", "--db", db).code == 0
    rows = cli("report", "cost", *WINDOW, "--db", db, "--json").json["rows"]
    assert "visitors" in {row["team"] for row in rows}
    assert "unmapped" not in {row["team"] for row in rows}


def test_the_unmapped_account_is_named_with_its_time(cli, db):
    rows = cli("org", "check", "--db", db, "--json").json["rows"]
    assert [(row["account"], row["user"]) for row in rows] == [("guest", "visitor7")]
    assert rows[0]["gpu_hours"] > 0


def test_shares_that_do_not_add_to_one_are_refused(cli, db, tmp_path):
    file = tmp_path / "org.csv"
    file.write_text("key_kind,key_value,team,ratio\naccount,guest,a,0.6\naccount,guest,b,0.5\n")
    answer = cli("org", "load", file, "--db", db)
    assert answer.code == 1
    assert "add to 1.1" in answer.err


@pytest.mark.parametrize("group", ["price", "org"])
def test_a_file_that_is_not_there_is_named(cli, db, tmp_path, group):
    answer = cli(group, "load", tmp_path / "none.csv", "--db", db)
    assert answer.code == 1
    assert "none.csv" in answer.err
