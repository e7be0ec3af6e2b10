"""An invoice against the ledger: every coin of the difference has a reason."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.errors import InvoiceError
from analytics.invoices import (
    Invoice,
    InvoiceLine,
    invoices,
    put_invoice,
    read_lines,
    retire_invoice,
)
from analytics.months import Month
from analytics.prices import Price, load_prices
from analytics.reports.reconciliation import reconciliation_report

NOW = datetime(2026, 11, 4, tzinfo=UTC)
OCTOBER = Month(2026, 10)


@pytest.fixture
def lab(site):
    """24 hours in October of 2 H100 at 2.00 and 4 T4 at 0.50: 96 and 48."""
    site.hours = 24
    site.node(gpus=2, until=24).node("n2", gpus=4, model="t4", until=24).known()
    site.price("2.00").price("0.50", model="t4")
    return site.built()


def enter(site, amount, *lines, **more):
    given_ = {"month": OCTOBER, "source": "Cloud 17", "currency": "USD"} | more
    invoice = Invoice(amount=Decimal(amount), lines=lines, **given_)
    with site.store.work() as work:
        return put_invoice(work, invoice, at=NOW, actor="ada")


def line(model, hours, amount, **more):
    hours = None if hours is None else Decimal(hours)
    return InvoiceLine(description=model or "network", gpu_model=model, gpu_hours=hours,
                       amount=Decimal(amount), **more)  # fmt: skip


def reasons(site, **more):
    report = reconciliation_report(site.store, OCTOBER, **more)
    assert sum(row["cost"] for row in report.rows) == report.total["cost"]
    assert report.total["cost"] == report.total["outside_cost"] - report.total["ledger_cost"]
    return {(row["reason"], row["item"].split(":")[0]): row["cost"] for row in report.rows}


def test_an_invoice_that_agrees_has_no_difference(lab):
    enter(lab, "144.00", line("h100", 48, "96"), line("t4", 96, "48"))
    assert reasons(lab) == {}


def test_hours_and_prices_are_told_apart(lab):
    enter(lab, "201.00", line("H100", 50, "125", price_kind="list"), line("t4", 96, "76"))
    assert reasons(lab) == {
        ("not_in_inventory", "h100"): 4,  # 2 more GPU-hours at 2.00
        ("price_kind", "h100"): 25,  # 50 GPU-hours at 2.50 instead of 2.00
        ("price_kind", "t4"): 28,
    }


def test_what_the_inventory_does_not_know_and_what_is_not_billed(lab):
    enter(lab, "106.00", line("h100", 48, "96"), line("a100", 5, "10"))
    assert reasons(lab) == {("not_in_inventory", "a100"): 10, ("not_on_invoice", "t4"): -48}


def test_a_line_for_other_days_is_timing(lab):
    since, until = datetime(2026, 9, 16, tzinfo=UTC), datetime(2026, 10, 16, tzinfo=UTC)
    enter(lab, "240.00", line("h100", 96, "192", since=since, until=until), line("t4", 96, "48"))
    assert reasons(lab) == {("timing", "h100"): 96}


def test_lines_without_gpu_time_and_totals_beyond_the_lines(lab):
    enter(lab, "174.01", line("h100", 48, "96"), line("t4", 96, "48"), line(None, None, "20"))
    assert reasons(lab) == {
        ("no_gpu_time", "network"): 20, ("not_itemised", "Cloud 17"): Decimal("10.01"),
    }  # fmt: skip


def test_a_cent_of_rounding_is_called_so(lab):
    enter(lab, "144.01", line("h100", 48, "96"), line("t4", 96, "48"))
    assert reasons(lab) == {("rounding", "Cloud 17"): Decimal("0.01")}


def test_a_total_alone_is_explained_by_the_kind_of_price_that_comes_near(lab):
    listed = [
        Price(gpu_model=model, amount=Decimal(amount), currency="USD", kind="list", source="test")
        for model, amount in (("h100", "4"), ("t4", "1"))
    ]
    with lab.store.work() as work:
        load_prices(work, listed, at=NOW, actor="ada")
    enter(lab, "290.00", kind="asset_register")
    assert reasons(lab) == {
        ("price_kind", "all GPU time at list prices instead of the ledger's"): 144,
        ("unexplained", "total without lines"): 2,
    }


def test_a_line_without_hours_cannot_tell_price_from_quantity(lab):
    enter(lab, "150.00", line("h100", None, "102"), line("t4", 96, "48"))
    report = reconciliation_report(lab.store, OCTOBER)
    assert "price or quantity" in report.rows[0]["item"]
    assert report.total["cost"] == 6


def test_nothing_entered_is_refused_and_a_second_one_must_retire_the_first(lab):
    with pytest.raises(InvoiceError, match="invoice add"):
        reconciliation_report(lab.store, OCTOBER)
    first = enter(lab, "100.00")
    with pytest.raises(InvoiceError, match="I-0001 for 2026-10 already"):
        enter(lab, "101.00")
    with lab.store.work() as work:
        retire_invoice(work, first.invoice_id, at=NOW, actor="bob", reason="wrong total")
        with pytest.raises(InvoiceError, match="no invoice 'I-0001' in force"):
            retire_invoice(work, first.invoice_id, at=NOW, actor="bob", reason="again")
    assert enter(lab, "144.00").invoice_id == "I-0002"
    assert reasons(lab) == {}
    with lab.store.work() as work:
        assert [i.invoice_id for i in invoices(work)] == ["I-0002"]


def test_a_broken_line_names_where_it_stands():
    for cells, word in (("x,much,", "no number"), ("x,1,-5", "negative"), ("x,1,5", "gpu_model")):
        with pytest.raises(InvoiceError, match=rf"i.csv line 2: .*{word}"):
            read_lines(f"description,amount,gpu_hours\n{cells}\n", "i.csv")


amounts = st.decimals(min_value=-500, max_value=500, places=2)
some_line = st.builds(
    lambda model, hours, amount: line(model, hours if model else None, amount),
    st.sampled_from(["h100", "t4", "a100", None]),
    st.none() | st.decimals(min_value=0, max_value=200, places=3),
    amounts,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(amounts, st.lists(some_line, max_size=5))
def test_whatever_is_billed_the_reasons_add_up_to_the_difference(lab, amount, lines):
    entered = enter(lab, amount, *lines)
    try:
        reasons(lab)
    finally:
        with lab.store.work() as work:
            retire_invoice(work, entered.invoice_id, at=NOW, actor="bob", reason="next")
