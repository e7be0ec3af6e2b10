"""Credits, disputes, manual amounts: own lines beside the classes, decided by a second person."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from analytics.adjustments import Adjustment, adjustments, decide, put_adjustment
from analytics.audit import audit_rows
from analytics.currency_rates import CurrencyRate, load_rates
from analytics.errors import AdjustmentError, WindowError
from analytics.months import Month
from analytics.reports import cost_report, ledger_report
from analytics.window import EPOCH, Window

NOW = datetime(2026, 11, 3, 9, tzinfo=UTC)
OCTOBER = Month(2026, 10)


@pytest.fixture
def lab(site):
    site.hours = 24
    site.node(gpus=2).known().price("1.00").team("Vision", account="lab")
    site.run(gpus=1, util=1.0)
    return site.built()


def put(site, **more):
    given = {"month": OCTOBER, "team": "vision", "kind": "credit", "amount": Decimal("-5.00"),
             "currency": "USD", "reason": "node n1 was slow", "author": "ada"} | more  # fmt: skip
    with site.store.work() as work:
        return put_adjustment(work, Adjustment(**given), at=NOW)


def settle(site, entry, *, approve=True, actor="bob", reason=""):
    with site.store.work() as work:
        return decide(
            work, entry.adjustment_id, approve=approve, actor=actor, at=NOW, reason=reason
        )


def month_report(site, **more):
    return cost_report(site.store, OCTOBER.window(), ("team",), **more)


def test_an_adjustment_counts_from_its_approval_beside_the_rows_and_in_none(lab):
    entry = put(lab)
    assert (entry.adjustment_id, entry.team, entry.state) == ("A-0001", "Vision", "pending")
    before = month_report(lab)
    assert (before.adjustments, before.adjusted_cost) == ([], before.total["cost"])
    assert "do not count yet: 1" in before.remarks[-1]
    settle(lab, entry)
    after = month_report(lab)
    assert after.rows == before.rows
    assert after.total == before.total
    assert after.adjusted_cost == before.total["cost"] - 5
    told = after.to_dict()["adjustments"]
    assert [(a["team"], a["cost"], a["approved_by"]) for a in told] == [("Vision", "-5.00", "bob")]


def test_adjustments_are_in_no_class(lab):
    settle(lab, put(lab))
    classes = ledger_report(lab.store, OCTOBER.window())
    assert sum(row["cost"] for row in classes.rows) == classes.total["cost"]
    assert month_report(lab).total["cost"] == classes.total["cost"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Seoul", "America/New_York"])
def test_windows_that_follow_each_other_count_it_once(lab, zone):
    settle(lab, put(lab))
    whole = OCTOBER.window(zone)
    cuts = [whole.since, datetime(2026, 10, 9, 3, tzinfo=UTC), whole.until]
    found = [
        len(cost_report(lab.store, Window(a, b, zone)).adjustments)
        for a, b in itertools.pairwise(cuts)
    ]
    assert found == [1, 0]
    assert cost_report(lab.store, Month(2026, 9).window(zone)).adjustments == []


def test_the_one_who_wrote_it_does_not_approve_it(lab):
    entry = put(lab)
    with pytest.raises(AdjustmentError, match="somebody else must decide"):
        settle(lab, entry, actor=" ADA ")
    with pytest.raises(AdjustmentError, match="say why"):
        settle(lab, entry, approve=False)
    assert settle(lab, entry, approve=False, reason="n1 was fine").state == "rejected"
    with pytest.raises(AdjustmentError, match="rejected already"):
        settle(lab, entry)
    assert month_report(lab).adjusted_cost == month_report(lab).total["cost"]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"amount": Decimal(0)}, "changes nothing"),
        ({"amount": Decimal("NaN")}, "too large"),
        ({"amount": Decimal("1e12")}, "too large"),
        ({"amount": Decimal("-0.0000001")}, "6 decimals"),
        ({"amount": Decimal(5)}, "below 0"),
        ({"kind": "gift"}, "credit, dispute, manual"),
        ({"currency": "usd"}, "ISO 4217"),
        ({"currency": "US1"}, "ISO 4217"),
        ({"reason": "  "}, "reason"),
        ({"author": ""}, "author"),
        ({"team": "visoin"}, "there is Vision"),
        ({"team": ""}, "no team"),
        ({"cluster": "elsewhere"}, "there is c"),
    ],
)
def test_a_wrong_adjustment_is_refused_with_the_way_out(lab, wrong, word):
    with pytest.raises(AdjustmentError, match=word):
        put(lab, **wrong)
    with lab.store.work() as work:
        assert adjustments(work) == []


def test_the_log_tells_who_entered_and_who_approved(lab):
    settle(lab, put(lab), reason="checked with the node's log")
    with lab.store.work() as work:
        rows = audit_rows(work, action="adjustment")
        assert audit_rows(work, action="adjustment", actor="bob") == rows[1:]
        assert audit_rows(work, until=NOW, action="adjustment") == []
    assert [(row["action"], row["actor"]) for row in rows] == [
        ("adjustment.add", "ada"), ("adjustment.approve", "bob"),
    ]  # fmt: skip
    assert "credit -5.00 USD Vision 2026-10" in rows[0]["after_value"]
    assert rows[1]["reason"] == "checked with the node's log"


def test_an_amount_in_another_currency_is_converted_by_a_dated_rate_or_told(lab):
    settle(lab, put(lab, currency="EUR", amount=Decimal("-10")))
    report = month_report(lab)
    assert report.adjusted_cost is None
    assert "A-0001 is not in the adjusted total: no rate from EUR to USD" in report.remarks[-1]
    rate = CurrencyRate(
        from_currency="EUR", to_currency="USD", rate=Decimal("1.1"), effective_from=EPOCH,
        source="bank",
    )  # fmt: skip
    with lab.store.work() as work:
        load_rates(work, [rate], at=NOW, actor="ada")
    assert month_report(lab).adjusted_cost == month_report(lab).total["cost"] - 11


def test_of_one_cluster_only_its_own_adjustments_count_and_the_others_are_told(lab):
    settle(lab, put(lab))
    settle(lab, put(lab, cluster="c", amount=Decimal("-2")))
    assert month_report(lab).adjusted_cost == month_report(lab).total["cost"] - 7
    report = month_report(lab, cluster="c")
    assert report.adjusted_cost == report.total["cost"] - 2
    assert "A-0001 is of the bill as a whole" in report.remarks[-1]


@pytest.mark.parametrize(
    "text", ["2026-13", "2026-00", "-2026-01", "0000-01", "2026-1", "1900-01", "2200-12", "now", ""]
)
def test_what_is_no_month_is_refused(text):
    with pytest.raises(WindowError, match="write 2026-10"):
        Month.parse(text)


def test_a_month_is_one_of_its_zone():
    assert OCTOBER.window("Asia/Seoul").since == datetime(2026, 9, 30, 15, tzinfo=UTC)
    november = Month(2026, 11).window("America/New_York")
    assert (november.until - november.since).total_seconds() == 721 * 3600
    assert Month(2026, 12).next == Month(2027, 1)
