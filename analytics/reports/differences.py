"""Why invoices and the ledger of a month differ, part by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from analytics.gpu_models import ModelNames, normalised
from analytics.invoices import Invoice, InvoiceLine
from analytics.reports.asked import Question
from analytics.reports.cells import epochs
from analytics.reports.identity import installed_by_model
from analytics.reports.price_book import PriceBook
from analytics.reports.rates import Rates
from analytics.reports.report import Report
from analytics.window import Window
from collector.store import Work

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


@dataclass(slots=True)
class Books:
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


def reasons(
    work: Work, books: Books, entered: Sequence[Invoice], clusters: list[str]
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


def _line(books: Books, invoice: Invoice, line: InvoiceLine, billed: Billed) -> Iterator[Reason]:
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


def _not_itemised(books: Books, invoice: Invoice) -> Iterator[Reason]:
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
    books: Books,
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


def _kinds(work: Work, books: Books) -> dict[str, str]:
    """Model -> the kinds of price that the ledger used."""
    question = Question(books.window, (), None)
    found: dict[str, set[str]] = defaultdict(set)
    for row in PriceBook.load(work).used(work, question, "ledger_hour"):
        for model in books.known:
            if normalised(row["gpu_model"]) in books.names.candidates(model):
                found[model].add(row["kind"])
    return {model: " and ".join(sorted(kinds)) for model, kinds in found.items()}


def _in_one(
    work: Work, books: Books, whole: Fraction, cost: Fraction, clusters: list[str]
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
