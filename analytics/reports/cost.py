"""What each group held, used and pays; every grouping adds up to the same total."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from analytics.errors import ReportError
from analytics.ledger.build import clusters as known_clusters
from analytics.ledger.classes import HELD, STRANDED, LedgerClass, Overlay
from analytics.money import SHOWN, shown, shown_parts
from analytics.org import WHOLE_PPM, OrgMap
from analytics.reports.cells import Cell, Question, cause_cells, cells, epochs
from analytics.reports.identity import PER_UNIT, Installed, installed
from analytics.reports.keys import CLASS_KEY, HOLDER_KEYS, checked
from analytics.reports.rates import Rates, one_currency
from analytics.reports.report import Identity, Report, Row
from analytics.reports.source import rows_of
from analytics.who_pays import Payer, WhoPays
from analytics.window import Window
from collector.store import Store, Work

_HOUR = Fraction(1, 3_600_000_000 * WHOLE_PPM)
_PLACES = Decimal("0.000000001")
CLASS_NAMES = frozenset(name.value for name in LedgerClass)
_BESIDE = {
    Overlay.POSSIBLY_LOST: "used",
    Overlay.SUSPECT_HANG: "used",
    Overlay.FILLABLE: "gang_wait",
    Overlay.STRANDED_LOW: "stranded_cpu",
    Overlay.STRANDED_HIGH: "stranded_cpu",
    Overlay.CONTESTED: "used",
}
Key = tuple[str | None, ...]


@dataclass(slots=True)
class Sum:
    """One row in the making: GPU time per class (x ppm), money, time without a price."""

    time: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stranded: int = 0
    unpriced: int = 0
    cost: Fraction = Fraction(0)
    priced: bool = False


@dataclass(slots=True)
class Books:
    """What the sums of one report are made with."""

    question: Question
    pays: WhoPays
    rates: Rates
    currency: str | None
    sums: dict[Key, Sum] = field(default_factory=lambda: defaultdict(Sum))

    def key(self, cell: Cell, name: str, *, platform: bool = False) -> Key:
        """The row of a cell's amount; what the platform pays has no holder."""
        values = dict(zip(self.question.keys, cell.keys, strict=True))
        return tuple(
            name if key == CLASS_KEY else None if platform and key in HOLDER_KEYS else values[key]
            for key in self.question.by
        )

    def money(self, cell: Cell, amount: int) -> Fraction:
        if cell.currency is None or self.currency is None:
            return Fraction(0)
        rate = self.rates.rate(cell.currency, self.currency, cell.at)
        return amount * PER_UNIT * rate / WHOLE_PPM


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
    Raises ReportError for unknown keys or a cluster that does not exist, PriceError for currencies
    that cannot be joined.
    """
    names = checked(by)
    with store.work() as work:
        return _report(work, store, Question(window, names, cluster), currency, as_of)


def _report(
    work: Work, store: Store, question: Question, currency: str | None, as_of: str
) -> Report:
    window = question.window
    asked = asked_clusters(store, question.cluster)
    org, pays, rates = OrgMap.load(work), WhoPays.load(work), Rates.load(work)
    if as_of == "now" and org.changes:
        question = Question(window, question.by, question.cluster, org.changes[-1])
    changes = [*(org.changes if as_of == "was" else ()), *pays.changes, *rates.changes]
    spans = epochs(question, changes)
    source = rows_of(work, window, asked)
    have = list(cells(work, question, spans, source.hours))
    books = Books(
        question, pays, rates, one_currency({c.currency for c in have if c.currency}, currency)
    )
    causes = list(cause_cells(work, question, spans, source.causes))
    _fill(books, have, causes)
    whole = installed(work, asked, window, spans)
    return _finish(books, whole, _price_book(work, window, source.hours))


def asked_clusters(store: Store, cluster: str | None) -> list[str]:
    """All clusters, or the one named; ReportError where it does not exist."""
    found = known_clusters(store)
    if cluster is not None and cluster not in found:
        raise ReportError(f"no cluster {cluster!r} here: there is {', '.join(found) or 'none'}")
    return [cluster] if cluster is not None else found


def _fill(books: Books, have: Iterable[Cell], causes: Iterable[Cell]) -> None:
    """Post time to holders, cost to payers."""
    for cell in have:
        payers = books.pays.at(cell.at)
        for name, amount in cell.time.items():
            row = books.sums[books.key(cell, _class_of(name))]
            row.time[name] += amount
            row.priced = row.priced or cell.currency is not None
            if cell.currency is None and name in CLASS_NAMES:
                row.unpriced += amount
        for name, amount in cell.cost.items():
            own = payers[LedgerClass(name)] is Payer.HOLDER
            row = books.sums[books.key(cell, name, platform=not own)]
            row.cost += books.money(cell, amount)
            row.priced = True
    for cell in causes:
        _charge(books, cell, books.pays.at(cell.at))


def _class_of(name: str) -> str:
    """The row of a measure where rows are classes: beside the class that it is a part of."""
    return name if name in CLASS_NAMES else _BESIDE[Overlay(name)]


def _charge(books: Books, cell: Cell, payers: Mapping[LedgerClass, Payer]) -> None:
    """Stranded time is told to its causer; its cost moves there only where the table says so."""
    for label, amount in cell.time.items():
        name, role, _ = label.split("/")
        row = books.sums[books.key(cell, name)]
        if role == "causer" and name in STRANDED:
            row.stranded += amount
        if payers[LedgerClass(name)].value == role and label in cell.cost:
            money = books.money(cell, cell.cost[label])
            row.cost += money
            books.sums[books.key(cell, name, platform=True)].cost -= money


def _finish(books: Books, whole: Installed, price_book: str | None) -> Report:
    keys = sorted(books.sums, key=lambda key: tuple((v is None, v or "") for v in key))
    sums = [books.sums[key] for key in keys]
    costs = shown_parts([row.cost for row in sums])
    rows: list[Row] = [
        {**dict(zip(books.question.by, key, strict=True)), **figures(row, cost)}
        for key, row, cost in zip(keys, sums, costs, strict=True)
    ]
    total = _total(sums)
    posted = sum(sum(row.time[name] for name in LedgerClass) for row in sums)
    money = Fraction(0)
    if books.currency is not None:
        money = total.cost - whole.money(books.currency, books.rates)
    seconds = Fraction(posted, WHOLE_PPM * 1_000_000) - Fraction(whole.gpu_us, 1_000_000)
    shown_total = figures(total, shown(total.cost))
    return Report(
        window=books.question.window,
        by=books.question.by,
        currency=books.currency,
        coverage_ratio=shown_total["coverage_ratio"],
        price_book=price_book,
        rows=rows,
        total=shown_total,
        identity=Identity(_decimal(seconds), shown(money)),
        remarks=_remarks(total, seconds),
    )


def _total(sums: Iterable[Sum]) -> Sum:
    total = Sum()
    for row in sums:
        for name, amount in row.time.items():
            total.time[name] += amount
        total.stranded += row.stranded
        total.unpriced += row.unpriced
        total.cost += row.cost
        total.priced = total.priced or row.priced
    return total


def figures(row: Sum, cost: Decimal) -> Row:
    """The columns of a cost row."""
    time = row.time
    every = sum(time[name] for name in LedgerClass)
    dark = (
        time[LedgerClass.UNKNOWN] + time[LedgerClass.ALLOCATED_UNMEASURED] + time[Overlay.CONTESTED]
    )
    return {
        "gpu_hours": hours(every),
        "held_gpu_hours": hours(sum(time[name] for name in HELD)),
        **{f"{name}_gpu_hours": hours(time[name]) for name in HELD},
        "stranded_gpu_hours": hours(row.stranded),
        "unpriced_gpu_hours": hours(row.unpriced),
        "cost": cost if row.priced or not every else None,
        "coverage_ratio": float(1 - Fraction(dark, every)) if every else None,
    }


def hours(amount: int) -> Decimal:
    """GPU-hours of micro-GPU-seconds x ppm, to nine decimals."""
    return _decimal(amount * _HOUR)


def hours_parts(amounts: Sequence[int]) -> list[Decimal]:
    """The same for rows whose decimals must add up to those of their sum."""
    finer = SHOWN / _PLACES
    parts = shown_parts([amount * _HOUR * int(finer) for amount in amounts])
    return [(part / finer).quantize(_PLACES) for part in parts]


def _decimal(exact: Fraction) -> Decimal:
    return (Decimal(exact.numerator) / Decimal(exact.denominator)).quantize(_PLACES)


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


def _price_book(work: Work, window: Window, source: str) -> str | None:
    """A hash of the price rows that the window's rows name."""
    rows = work.rows(
        f"SELECT DISTINCT price_id FROM {source} JOIN price USING (price_key) "  # noqa: S608 - our own names
        "WHERE since >= ? AND until <= ? ORDER BY price_id",
        [window.since, window.until],
    )
    if not rows:
        return None
    return hashlib.sha256("|".join(row["price_id"] for row in rows).encode()).hexdigest()[:12]
