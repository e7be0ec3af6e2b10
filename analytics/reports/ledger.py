"""GPU-hours and cost per ledger class, and the proof that they are all there is."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from analytics.ledger.classes import LedgerClass
from analytics.reports.cost import cost_report
from analytics.reports.keys import CLASS_KEY
from analytics.reports.report import Report, Row
from analytics.window import Window
from collector.store import Store

_ORDER = {name.value: place for place, name in enumerate(LedgerClass)}


def ledger_report(
    store: Store,
    window: Window,
    by: Sequence[str] = (CLASS_KEY,),
    *,
    cluster: str | None = None,
    currency: str | None = None,
) -> Report:
    """Rows of ``gpu_hours`` and ``cost``; by class, every class has a row, in the ledger's
    order."""
    report = cost_report(store, window, by, cluster=cluster, currency=currency)
    keep = (*report.by, "gpu_hours", "cost", "coverage_ratio")
    rows = [{name: row[name] for name in keep} for row in report.rows]
    if report.by == (CLASS_KEY,):
        rows = _every_class(rows)
    total = {name: report.total[name] for name in ("gpu_hours", "cost", "coverage_ratio")}
    return Report(
        window=report.window,
        by=report.by,
        currency=report.currency,
        coverage_ratio=report.coverage_ratio,
        price_book=report.price_book,
        rows=rows,
        total=total,
        identity=report.identity,
        remarks=report.remarks,
    )


def _every_class(rows: list[Row]) -> list[Row]:
    have = {row[CLASS_KEY]: row for row in rows}
    empty: Row = {"gpu_hours": Decimal(0), "cost": Decimal(0), "coverage_ratio": None}
    return [have.get(name, {CLASS_KEY: name, **empty}) for name in _ORDER]
