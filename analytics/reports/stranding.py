"""Why free GPUs could not be used, who caused it and who waited; causes are modelled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from analytics.ledger.classes import STRANDED, LedgerClass
from analytics.money import shown_parts
from analytics.org import WHOLE_PPM, OrgMap
from analytics.reports.amounts import hours, hours_parts
from analytics.reports.asked import Asked, Question
from analytics.reports.cells import cause_cells, cells, epochs
from analytics.reports.cost import asked_clusters
from analytics.reports.identity import PER_UNIT
from analytics.reports.keys import checked
from analytics.reports.price_book import PriceBook
from analytics.reports.rates import Rates, one_currency
from analytics.reports.report import Identity, Report, Row
from analytics.reports.source import Source, rows_of
from analytics.window import Window
from collector.store import Store, Work

EXPLAINED = (*STRANDED, LedgerClass.GANG_WAIT, LedgerClass.POLICY_BLOCKED)
"""The classes that have a cause."""
_ORDER = {name.value: place for place, name in enumerate(LedgerClass)}


def stranding_report(
    store: Store,
    window: Window,
    by: Sequence[str] = ("team",),
    *,
    cluster: str | None = None,
    currency: str | None = None,
) -> Report:
    """Rows of class, rule, role and the group keys of the run that caused it (or waited).

    ``role`` causer: this run's excess strands the GPUs (key null = the platform); waiter: this job
    waits for them. Rows add up to the ledger's classes: the identity is that difference. The total
    carries the amounts beside: ``fillable``, and the stranding by CPU and memory at the low and the
    high quantile of the demand profile.
    """
    names = checked([key for key in by if key != "class"])
    with store.work() as work:
        return _report(work, Question(window, names, cluster), currency)


def _report(work: Work, question: Question, currency: str | None) -> Report:
    asked = asked_clusters(work, question.cluster)
    rates, book = Rates.load(work), PriceBook.load(work)
    source = rows_of(work, question.window, asked, question.keys)
    window = question.window
    priced = source.over(window.since, window.until).causes
    have = {row["currency"] for row in book.used(work, question, priced)}
    unit = one_currency(have, currency)
    org = OrgMap.load(work)
    spans = epochs(question, [*org.changes, *rates.changes(have, unit)])
    asking = Asked(work, question, org, days=source.in_days(spans))
    found = list(cause_cells(asking, spans, source, book))
    time: dict[tuple[Any, ...], int] = defaultdict(int)
    cost: dict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for cell in found:
        for label, amount in cell.time.items():
            if label.split("/")[0] not in EXPLAINED:
                continue
            key = (*label.split("/"), *cell.keys)
            time[key] += amount
            if unit is not None and cell.currency is not None and label in cell.cost:
                rate = rates.rate(cell.currency, unit, cell.at)
                cost[key] += cell.cost[label] * PER_UNIT * rate / WHOLE_PPM
    keys = sorted(time, key=_listed)
    times = hours_parts([time[key] for key in keys])
    money = shown_parts([cost[key] for key in keys])
    columns = ("class", "role", "rule", *question.by)
    rows: list[Row] = [
        {
            **dict(zip(columns, key, strict=True)),
            "gpu_hours": gpu_hours,
            "cost": amount if unit is not None else None,
        }
        for key, gpu_hours, amount in zip(keys, times, money, strict=True)
    ]
    return _finish(asking, source, book, rows, (unit, sum(time.values())))


def _finish(
    asked: Asked, source: Source, book: PriceBook, rows: list[Row], whole: tuple[str | None, int]
) -> Report:
    """Totals from the ledger's own rows; what causes do not explain shows as a difference."""
    (unit, explained), question = whole, asked.question
    plain = Question(question.window, (), question.cluster)
    sums: dict[str, int] = defaultdict(int)
    for cell in cells(Asked(asked.work, plain), epochs(plain, []), source, book):
        for name, amount in cell.time.items():
            sums[name] += amount
    classes = sum(sums[name] for name in EXPLAINED)
    total: Row = {
        "gpu_hours": hours_parts([classes])[0],
        "cost": sum(row["cost"] for row in rows) if unit is not None else None,
        "fillable_gpu_hours": hours(sums["fillable"]),
        "stranded_low_gpu_hours": hours(sums["stranded_low"]),
        "stranded_high_gpu_hours": hours(sums["stranded_high"]),
        **_fragmented(asked.work, question),
    }
    every = sum(sums[name] for name in LedgerClass)
    dark = sums["unknown"] + sums["allocated_unmeasured"] + sums["contested"]
    return Report(
        window=question.window,
        by=("class", "role", "rule", *question.by),
        currency=unit,
        coverage_ratio=float(1 - Fraction(dark, every)) if every else None,
        price_book=None,
        rows=rows,
        total=total,
        identity=Identity(hours((explained - classes) * 3600), hours(0)),
        remarks=["causes are modelled: each row names the rule"],
    )


def _fragmented(work: Work, question: Question) -> Row:
    """Free GPU time that a typical job could not use, in whole hours of the window: an indicator
    beside the classes, which names the task distribution that it is measured against."""
    window = question.window
    row = work.rows(
        "SELECT CAST(sum(fragmented_us) AS BIGINT) AS us, max(distribution) AS distribution "
        "FROM fragmentation_hour WHERE hour >= ? AND hour + INTERVAL 1 HOUR <= ? "
        "AND (? IS NULL OR cluster = ?)",
        [window.since, window.until, question.cluster, question.cluster],
    )[0]
    amount = None if row["us"] is None else hours(row["us"] * WHOLE_PPM)
    return {"fragmented_gpu_hours": amount, "task_distribution": row["distribution"]}


def _listed(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Classes in the ledger's order, then by name, nobody last."""
    return (_ORDER[key[0]], [(value is None, value or "") for value in key[1:]])
