"""What each group held, used and pays; every grouping adds up to the same total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Literal

from analytics.adjustments import adjustments
from analytics.errors import ReportError
from analytics.money import shown, shown_parts
from analytics.org import WHOLE_PPM, OrgMap
from analytics.reports.adjusted import Adjusted, adjusted
from analytics.reports.amounts import Sum, figures, hours, nine
from analytics.reports.asked import Asked, Question
from analytics.reports.cells import cause_cells, cells, epochs
from analytics.reports.identity import Installed, installed
from analytics.reports.keys import HOLDER_KEYS, checked
from analytics.reports.known import Known
from analytics.reports.posting import Books, fill
from analytics.reports.price_book import Row as PriceRow
from analytics.reports.price_book import book_version
from analytics.reports.rates import Rates, one_currency
from analytics.reports.report import Identity, Report, Row
from analytics.reports.source import rows_of
from analytics.who_pays import Unallocated, WhoPays
from analytics.window import Window
from collector.store import Store, Work


def cost_report(
    store: Store,
    window: Window,
    by: Sequence[str] = ("team",),
    *,
    cluster: str | None = None,
    currency: str | None = None,
    as_of: Literal["was", "now"] = "was",
) -> Report:
    """GPU-hours and cost per group.

    Holders' time is posted to the holder; cost goes to whom the who-pays table names. ``as_of``:
    "was" maps owners as they were at the time, "now" as they are after the last change.
    Adjustments of the window's months stand beside, never in a row.
    Raises ReportError for unknown keys or a cluster that does not exist, PriceError for currencies
    that cannot be joined.
    """
    names = checked(by)
    with store.work() as work:
        return _report(work, Question(window, names, cluster), currency, as_of)


def _report(work: Work, question: Question, currency: str | None, as_of: str) -> Report:
    window, known = question.window, Known(work)
    asked = asked_clusters(work, question.cluster)
    org, pays, rates = OrgMap.load(work), WhoPays.load(work), Rates.load(work)
    if as_of == "now" and org.changes:
        question = replace(question, org_at=org.changes[-1])
    source = rows_of(work, window, asked, question.keys)
    prices = known.book.used(work, question, source.over(window.since, window.until).hours)
    found = {row["currency"] for row in prices}
    unit = one_currency(found, currency)
    moves = org.changes if as_of == "was" else ()
    spans = epochs(question, [*moves, *pays.changes, *rates.changes(found, unit)])
    if set(question.by) & set(HOLDER_KEYS):
        spread = any(pays.unallocated(since) is Unallocated.USE for since, _ in spans)
        question = replace(question, spread=spread)
    asking = Asked(work, question, org, days=source.in_days(spans))
    books = Books(question, pays, rates, unit)
    have = cells(asking, spans, source, known.book)
    fill(books, have, cause_cells(asking, spans, source, known.book))
    whole = installed(work, asked, window, spans, known)
    own = [a for a in adjustments(work) if a.within(window)]
    beside = adjusted(own, window, question.cluster, unit, rates)
    beside.remarks += _other_purchases(known, asked, window, prices)
    return _finish(books, whole, book_version(prices), beside)


def asked_clusters(store: Store | Work, cluster: str | None) -> list[str]:
    """All clusters with an inventory, or the one named; ReportError where it does not exist."""
    found = sorted(row["cluster"] for row in store.rows("SELECT DISTINCT cluster FROM node"))
    if cluster is not None and cluster not in found:
        raise ReportError(f"no cluster {cluster!r} here: there is {', '.join(found) or 'none'}")
    return [cluster] if cluster is not None else found


def _finish(books: Books, whole: Installed, price_book: str | None, beside: Adjusted) -> Report:
    keys = sorted(books.sums, key=lambda key: tuple((v is None, v or "") for v in key))
    sums = [books.sums[key] for key in keys]
    costs = shown_parts([row.cost for row in sums])
    rows: list[Row] = [
        {**dict(zip(books.question.by, key, strict=True)), **figures(row, cost)}
        for key, row, cost in zip(keys, sums, costs, strict=True)
    ]
    total = Sum.of(sums)
    money = Fraction(0)
    if books.currency is not None:
        money = total.cost - whole.money(books.currency, books.rates)
    seconds = Fraction(total.posted, WHOLE_PPM * 1_000_000) - Fraction(whole.gpu_us, 1_000_000)
    shown_total = figures(total, shown(total.cost))
    return Report(
        window=books.question.window,
        by=books.question.by,
        currency=books.currency,
        coverage_ratio=shown_total["coverage_ratio"],
        price_book=price_book,
        rows=rows,
        total=shown_total,
        identity=Identity(nine(seconds), shown(money)),
        remarks=[*_remarks(total, seconds), *beside.remarks],
        adjustments=beside.lines,
    )


def _remarks(total: Sum, seconds: Fraction) -> list[str]:
    remarks = []
    if total.unpriced:
        remarks.append(
            f"{hours(total.unpriced):f} GPU-hours have no price and are not in the cost: "
            "load a price for their model"
        )
    if seconds:
        remarks.append(
            "a part of the window is not in the ledger yet: build it (unstrand report does so "
            "when it holds the file)"
        )
    return remarks


def _other_purchases(
    known: Known, clusters: Sequence[str], window: Window, prices: Sequence[PriceRow]
) -> list[str]:
    """Prices of a purchase type that the clusters do not pay stood in for one that is missing."""
    days = (window.since, window.until - timedelta(microseconds=1))
    paid = {known.settings(name).at(day).purchase_type for name in clusters for day in days}
    other = sorted({(r["gpu_model"], r["purchase_type"]) for r in prices
                    if r["purchase_type"] not in paid})  # fmt: skip
    return [
        f"{model} is priced as {kind}: there is no price of {' or '.join(sorted(paid))}"
        for model, kind in other
    ]
