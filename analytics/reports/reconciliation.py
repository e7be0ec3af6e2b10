"""A month's invoices against its ledger: the difference, explained line by line to the coin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from analytics.currencies import smallest
from analytics.errors import InvoiceError
from analytics.gpu_models import ModelNames, normalised
from analytics.invoices import Invoice, InvoiceLine, invoices
from analytics.money import half_up, parts_of
from analytics.months import Month
from analytics.reports.cells import Question, epochs
from analytics.reports.cost import asked_clusters, cost_report, price_rows
from analytics.reports.identity import installed_by_model
from analytics.reports.rates import Rates
from analytics.reports.report import Report, Row
from analytics.reports.table import TableReport
from analytics.window import Window
from collector.store import Store, Work

_CENT_EACH = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Reason:
    """A part of the difference, outside less ledger."""

    reason: str
    item: str
    cost: Fraction
    gpu_hours: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger has of one model: GPU-hours and their cost."""

    hours: Fraction
    cost: Fraction


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
        books = _Books(
            window, ledger.currency or entered[0].currency, Rates.load(work), ModelNames.load(work),
            ledger,
        )  # fmt: skip
        reasons = list(_reasons(work, books, entered, asked_clusters(store, cluster)))
    return _finish(books, entered, reasons)


@dataclass(slots=True)
class _Books:
    window: Window
    currency: str
    rates: Rates
    names: ModelNames
    ledger: Report

    def money(self, amount: Decimal, currency: str) -> Fraction:
        return Fraction(amount) * self.rates.rate(currency, self.currency, self.window.since)

    @property
    def known(self) -> dict[str, Known]:
        return {
            row["gpu_model"]: Known(Fraction(row["gpu_hours"]), Fraction(row["cost"] or 0))
            for row in self.ledger.rows
        }

    def model(self, line: InvoiceLine) -> str | None:
        """The ledger's model that a line means."""
        wanted = normalised(line.gpu_model or "")
        return next((m for m in self.known if wanted in self.names.candidates(m)), None)


Billed = dict[str, list[tuple[Fraction, Fraction | None, str | None]]]
"""Model -> cost, GPU-hours and price kind of each line."""


def _reasons(
    work: Work, books: _Books, entered: Sequence[Invoice], clusters: list[str]
) -> Iterator[Reason]:
    billed: Billed = defaultdict(list)
    whole = Fraction(0)
    for invoice in entered:
        if not invoice.lines:
            whole += books.money(invoice.amount, invoice.currency)
        for line in invoice.lines:
            yield from _line(books, invoice, line, billed)
        yield from _not_itemised(books, invoice)
    itemised = any(invoice.lines for invoice in entered)
    if itemised:
        yield from _by_model(work, books, billed, covered=bool(whole))
    if whole or not itemised:
        rest = [k for m, k in books.known.items() if m not in billed]
        yield from _in_one(work, books, whole, sum((k.cost for k in rest), Fraction(0)), clusters)


def _line(books: _Books, invoice: Invoice, line: InvoiceLine, billed: Billed) -> Iterator[Reason]:
    """What a line explains by itself; what is left of it is put to its model."""
    cost = books.money(line.amount, invoice.currency)
    hours = None if line.gpu_hours is None else Fraction(line.gpu_hours)
    outside = _outside(line, books.window)
    if outside:
        told = f"{line.description}: billed for {line.since:%Y-%m-%d} to {line.until:%Y-%m-%d}"
        gone = None if hours is None else hours * outside
        yield Reason("timing", told, cost * outside, gone)
    cost, hours = cost * (1 - outside), None if hours is None else hours * (1 - outside)
    model = books.model(line)
    if line.gpu_model is None:
        yield Reason("no_gpu_time", line.description, cost)
    elif model is None:
        yield Reason("not_in_inventory", line.gpu_model, cost, hours)
    else:
        billed[model].append((cost, hours, line.price_kind))


def _outside(line: InvoiceLine, window: Window) -> Fraction:
    """The share of a line's time that lies outside the month."""
    if line.since is None or line.until is None:
        return Fraction(0)
    inside = min(line.until, window.until) - max(line.since, window.since)
    length = (line.until - line.since).total_seconds()
    return 1 - Fraction(max(inside.total_seconds(), 0)) / Fraction(length)


def _not_itemised(books: _Books, invoice: Invoice) -> Iterator[Reason]:
    if not invoice.lines:
        return
    rest = invoice.amount - sum((line.amount for line in invoice.lines), Decimal(0))
    if rest:
        small = abs(Fraction(rest)) <= _CENT_EACH * len(invoice.lines)
        reason = "rounding" if small else "not_itemised"
        told = f"{invoice.source}: total less its {len(invoice.lines)} lines"
        yield Reason(reason, told, books.money(rest, invoice.currency))


def _by_model(
    work: Work,
    books: _Books,
    billed: Billed,
    *,
    covered: bool,
) -> Iterator[Reason]:
    """Quantity at the ledger's price, then the rest as price; models on no line."""
    kinds = _kinds(work, books)
    for model, known in books.known.items():
        lines = billed.get(model)
        if lines is None:
            if not covered and known.cost:
                yield Reason("not_on_invoice", model, -known.cost, -known.hours)
            continue
        cost = sum((c for c, _, _ in lines), Fraction(0))
        hours = [h for _, h, _ in lines if h is not None]
        said = " and ".join(sorted({k for _, _, k in lines if k})) or "invoice"
        told = f"{model}: {said} price against {kinds.get(model, 'no')} price"
        if len(hours) < len(lines) or not known.hours:
            yield Reason("price_kind", f"{told} (no GPU-hours on the line: price or quantity)",
                         cost - known.cost)  # fmt: skip
            continue
        more = sum(hours, Fraction(0)) - known.hours
        price = known.cost / known.hours
        if more:
            side = "not_in_inventory" if more > 0 else "not_on_invoice"
            yield Reason(side, f"{model}: GPU-hours billed less installed", more * price, more)
        if cost - known.cost - more * price:
            each = cost / sum(hours, Fraction(0)) if any(hours) else Fraction(0)
            told += f", {float(each):.6g} against {float(price):.6g} per GPU-hour"
            yield Reason("price_kind", told, cost - known.cost - more * price)


def _kinds(work: Work, books: _Books) -> dict[str, str]:
    """Model -> the kinds of price that the ledger used."""
    question = Question(books.window, (), None)
    found: dict[str, set[str]] = defaultdict(set)
    for row in price_rows(work, question, "ledger_hour"):
        for model in books.known:
            if normalised(row["gpu_model"]) in books.names.candidates(model):
                found[model].add(row["kind"])
    return {model: " and ".join(sorted(kinds)) for model, kinds in found.items()}


def _in_one(
    work: Work, books: _Books, whole: Fraction, cost: Fraction, clusters: list[str]
) -> Iterator[Reason]:
    """A total without lines: the nearest kind of price explains what it can."""
    found = {row["currency"] for row in work.rows("SELECT DISTINCT currency FROM price")}
    question = Question(books.window, (), None)
    spans = epochs(question, books.rates.changes(found, books.currency))
    best: tuple[Fraction, str] | None = None
    for kind in ("contracted", "amortized", "list", "internal"):
        parts = installed_by_model(work, clusters, books.window, spans, (kind,)).values()
        if not parts or any(part.unpriced_us for part in parts):
            continue
        at = sum((part.money(books.currency, books.rates) for part in parts), Fraction(0))
        if at != cost and (best is None or abs(whole - at) < abs(whole - best[0])):
            best = (at, kind)
    if best is not None and abs(whole - best[0]) < abs(whole - cost):
        told = f"all GPU time at {best[1]} prices instead of the ledger's"
        yield Reason("price_kind", told, best[0] - cost)
        cost = best[0]
    if whole != cost:
        small = abs(whole - cost) <= _CENT_EACH
        yield Reason("rounding" if small else "unexplained", "total without lines", whole - cost)


def _finish(books: _Books, entered: Sequence[Invoice], reasons: Sequence[Reason]) -> TableReport:
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
