"""Commitments, internal rates and overhead: what was charged against what is really paid."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from analytics.commitments import Commitment, load_commitments, read_commitments
from analytics.errors import InvoiceError, PriceError
from analytics.months import Month
from analytics.overhead import Overhead, load_overhead, read_overhead
from analytics.prices import Price, load_prices
from analytics.reports.commitments import commitment_report
from analytics.reports.recovery import recovery_report
from analytics.window import Window

OCTOBER = Month(2026, 10)


def commit(site, gpus, amount, *, name="ri-1", since=0, until=24, **more):
    at = site.window.since
    row = Commitment(
        commitment_id=name, gpus=gpus, amount=Decimal(amount),
        effective_from=at + timedelta(hours=since), effective_to=at + timedelta(hours=until),
        **{"gpu_model": "h100", "currency": "USD"} | more,
    )  # fmt: skip
    with site.store.work() as work:
        load_commitments(work, [row], at=at, actor="ada")


def rates(site, **kinds):
    rows = [
        Price(gpu_model="h100", amount=Decimal(amount), currency="USD", kind=kind, source="test")
        for kind, amount in kinds.items()
    ]
    with site.store.work() as work:
        load_prices(work, rows, at=site.window.since, actor="ada")


@pytest.fixture
def day(site):
    """8 GPUs in the first half of the day, 4 in the second; team A holds 2."""
    site.hours = 24
    site.node(gpus=4).node("n2", gpus=4, until=12).known().team("A", account="lab")
    site.run(gpus=2, util=1.0)
    return site


def test_what_is_committed_and_not_installed_is_its_own_line(day):
    day.price("1.00").built()
    commit(day, 6, "0.50")
    report = commitment_report(day.store, day.window)
    (row,) = report.rows
    assert (row["committed_gpu_hours"], row["covered_gpu_hours"]) == (144, 12 * 6 + 12 * 4)
    assert (row["unused_gpu_hours"], row["unused_cost"]) == (24, 12)
    assert row["cost"] == row["covered_cost"] + row["unused_cost"] == 72
    assert report.total["unused_cost"] == 12


def test_each_gpu_is_covered_once_its_own_clusters_commitment_first(day):
    day.price("1.00").built()
    commit(day, 3, "0.50", name="general")
    commit(day, 3, "0.40", name="own", cluster="c", since=6, until=99)
    rows = {r["commitment_id"]: r for r in commitment_report(day.store, day.window).rows}
    assert rows["own"]["covered_gpu_hours"] == 18 * 3
    assert rows["general"]["covered_gpu_hours"] == 12 * 3 + 12 * 1
    assert rows["own"]["committed_gpu_hours"] == 18 * 3, "only what lies in the window"


def test_a_commitment_of_another_model_or_time_covers_nothing(day):
    day.price("1.00").built()
    commit(day, 2, "0.50", gpu_model="t4", name="other")
    commit(day, 2, "0.50", since=48, until=72, name="later")
    (row,) = commitment_report(day.store, day.window).rows
    assert (row["covered_gpu_hours"], row["unused_cost"]) == (0, 24)
    half = Window(day.window.since, day.window.since + timedelta(minutes=30))
    assert commitment_report(day.store, half).rows[0]["unused_cost"] == Decimal("0.5")
    commit(day, 1, "1", currency="EUR", name="euro")
    with pytest.raises(PriceError, match="EUR, USD"):
        commitment_report(day.store, day.window)


def test_an_internal_rate_over_recovers_what_teams_pay_above_the_real_cost(day):
    rates(day, internal="5.00", contracted="1.00", list="9.00")
    day.built()
    (row,) = (report := recovery_report(day.store, day.window)).rows
    installed, held = 12 * 8 + 12 * 4, 48
    assert row["gpu_hours"] == installed
    assert row["charged_cost"] == installed * 5
    assert row["recovered_cost"] == held * 5
    assert row["platform_cost"] == (installed - held) * 5
    assert row["actual_cost"] == installed * 1
    assert row["over_recovery_cost"] == held * 5 - installed == report.total["over_recovery_cost"]


def test_unused_commitments_and_overhead_are_part_of_what_must_be_recovered(day):
    rates(day, internal="1.00", amortized="2.00")
    commit(day, 8, "0.50")
    with day.store.work() as work:
        rows = [Overhead(month=OCTOBER, name="staff", amount=Decimal(70), currency="USD")]
        load_overhead(work, rows, at=day.window.since, actor="ada")
    day.built()
    whole = recovery_report(day.store, OCTOBER.window())
    assert [row["item"] for row in whole.rows] == ["h100", "unused commitments", "overhead: staff"]
    assert whole.rows[1]["actual_cost"] == 48 * Decimal("0.50")
    assert whole.rows[2]["over_recovery_cost"] == 0
    for name in ("charged_cost", "recovered_cost", "platform_cost", "actual_cost"):
        assert whole.total[name] == sum(row[name] for row in whole.rows)
    # The window of the day itself does not hold the month's first instant.
    part = recovery_report(day.store, day.window)
    assert [row["item"] for row in part.rows] == ["h100", "unused commitments"]


def test_without_an_actual_price_recovery_is_not_known_and_says_why(day):
    rates(day, internal="5.00", list="9.00")
    day.built()
    report = recovery_report(day.store, day.window)
    assert report.total["actual_cost"] is report.total["over_recovery_cost"] is None
    assert "no contracted or amortized price for h100" in report.remarks[-1]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("x,h100,0,1,USD,2026-01-01,2027-01-01", "1 or more"),
        ("x,h100,-1,1,USD,2026-01-01,2027-01-01", "no whole number"),
        ("x,h100,1,0,USD,2026-01-01,2027-01-01", "above 0"),
        ("x,h100,1,1,usd,2026-01-01,2027-01-01", "ISO 4217"),
        ("x,h100,1,1,USD,2027-01-01,2026-01-01", "after its start"),
        (",h100,1,1,USD,2026-01-01,2027-01-01", "commitment_id"),
        ("x,,1,1,USD,2026-01-01,2027-01-01", "gpu_model"),
    ],
)
def test_a_broken_commitment_names_the_line(line, word):
    header = "commitment_id,gpu_model,gpus,amount,currency,effective_from,effective_to"
    with pytest.raises(InvoiceError, match=rf"c.csv line 2: .*{word}"):
        read_commitments(f"{header}\n{line}\n", "c.csv")


@pytest.mark.parametrize(
    ("line", "word"),
    [("2026-13,a,1,USD,held", "2026-10"), ("2026-10,,1,USD,held", "name"),
     ("2026-10,a,-1,USD,held", "above 0"), ("2026-10,a,1,USD,moon", "held, cost, even")],
)  # fmt: skip
def test_a_broken_overhead_names_the_line(line, word):
    with pytest.raises(InvoiceError, match=rf"o.csv line 2: .*{word}"):
        read_overhead(f"month,name,amount,currency,rule\n{line}\n", "o.csv")


def test_a_commitments_price_replaces_the_contracted_one_of_what_it_covers(day):
    rates(day, contracted="3.00")
    day.built()
    commit(day, 6, "2.00", until=24)
    model, unused = recovery_report(day.store, day.window).rows[:2]
    # 8 GPUs for 12 h and 4 for 12 h: 6 and then 4 of them at 2.00, two at 3.00 for 12 h.
    assert model["actual_cost"] == 12 * (6 * 2 + 2 * 3) + 12 * 4 * 2
    assert (unused["item"], unused["actual_cost"]) == ("unused commitments", 12 * 2 * 2)
    assert model["charged_cost"] == 3 * 144


def test_what_commitments_cover_needs_no_other_price(day):
    rates(day, internal="5.00")
    day.built()
    commit(day, 8, "2.00")
    (model, *_) = recovery_report(day.store, day.window).rows
    assert model["actual_cost"] == 144 * 2
    assert model["over_recovery_cost"] == 48 * 5 - 288


def test_a_price_that_changes_under_a_commitment_is_taken_out_as_it_was(day):
    day.price("4.00", until=6).price("2.00", since=6).built()
    commit(day, 4, "1.00", since=3, until=9)
    (model, *_) = recovery_report(day.store, day.window).rows
    whole = 8 * 6 * 4 + 8 * 6 * 2 + 4 * 12 * 2
    assert model["actual_cost"] == whole - 4 * 3 * 4 - 4 * 3 * 2 + 4 * 6 * 1
