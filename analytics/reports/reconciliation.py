"""A month's invoices against its ledger: the difference, explained line by line to the coin."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from analytics.currencies import smallest
from analytics.errors import InvoiceError
from analytics.gpu_models import ModelNames
from analytics.invoices import Invoice, invoices
from analytics.money import half_up, parts_of
from analytics.months import Month
from analytics.reports.cost import asked_clusters, cost_report
from analytics.reports.differences import Books, Reason
from analytics.reports.differences import reasons as reasons_of
from analytics.reports.rates import Rates
from analytics.reports.report import Row
from analytics.reports.table import TableReport
from collector.store import Store


def reconciliation_report(
    store: Store,
    month: Month,
    *,
    time_zone: str = "UTC",
    cluster: str | None = None,
    currency: str | None = None,
) -> TableReport:
    """Rows of ``reason`` and ``item`` whose cost adds up to invoices less ledger.

    Reasons: not_in_inventory, not_on_invoice, quantity, timing, price_kind, no_gpu_time,
    not_itemised, rounding, unexplained. The ledger of the month must have been built. Raises
    InvoiceError where no invoice was entered for it.
    """
    window = month.window(time_zone)
    ledger = cost_report(store, window, ("gpu_model",), cluster=cluster, currency=currency)
    with store.work() as work:
        entered = [i for i in invoices(work, month) if cluster in (None, i.cluster)]
        if not entered:
            raise InvoiceError(
                f"no invoice or asset-register total was entered for {month}: invoice add"
            )
        books = Books(
            window, ledger.currency or entered[0].currency, Rates.load(work), ModelNames.load(work),
            ledger,
        )  # fmt: skip
        reasons = list(reasons_of(work, books, entered, asked_clusters(store, cluster)))
    return _finish(books, entered, reasons)


def _finish(books: Books, entered: Sequence[Invoice], reasons: Sequence[Reason]) -> TableReport:
    coin = smallest(books.currency)
    outside = sum((books.money(i.amount, i.currency) for i in entered), Fraction(0))
    inside = sum((k.cost for k in books.known.values()), Fraction(0))
    shown = [half_up(value / Fraction(coin)) * coin for value in (outside, inside)]
    difference = shown[0] - shown[1]
    exact = [reason.cost for reason in reasons]
    if not exact and difference:
        reasons, exact = [Reason("rounding", "to whole coins", Fraction(difference))], [
            Fraction(difference)
        ]  # fmt: skip
    parts = parts_of(difference, exact, coin) if exact else []
    rows: list[Row] = [
        {"reason": r.reason, "item": r.item, "cost": part,
         "gpu_hours": None if r.gpu_hours is None else Decimal(float(r.gpu_hours)).quantize(
             Decimal("0.000001"))}
        for r, part in zip(reasons, parts, strict=True)
    ]  # fmt: skip
    total: Row = {"reason": "difference", "cost": difference, "outside_cost": shown[0],
                  "ledger_cost": shown[1]}  # fmt: skip
    told = [
        f"{i.invoice_id} {i.kind} {i.source}: {i.amount.normalize():f} {i.currency}"
        for i in entered
    ]
    return TableReport(books.window, books.currency, rows, total, [*told, *books.ledger.remarks])
