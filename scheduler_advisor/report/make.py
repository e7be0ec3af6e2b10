"""Make a weekly report from a store."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analytics.reports.price_book import book_version
from collector.store import Store
from scheduler_advisor.advice.advise import Advice, advise
from scheduler_advisor.advice.recommendation import PriceUse
from scheduler_advisor.advice.saving import joint_saving
from scheduler_advisor.advice.site import CLASSES, Site
from scheduler_advisor.goals import Goals
from scheduler_advisor.measurements.bundle import Measurements, measure
from scheduler_advisor.report.contents import Bottleneck, ClassTotal, WeeklyReport
from scheduler_advisor.window import Window

if TYPE_CHECKING:
    from scheduler_advisor.replayed import Replayed

_TOTALS = "SELECT price, {sums} FROM advice_cell GROUP BY price"
_PRICES = """
SELECT DISTINCT p.gpu_model, d.price_id, d.amount, d.currency, d.kind, d.purchase_type, d.source,
  d.retrieved_on
FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
JOIN price d ON d.price_key = h.price_key
WHERE h.hour >= $1 AND h.hour < $2 AND ($3::VARCHAR IS NULL OR p.cluster = $3)
ORDER BY p.gpu_model, d.price_id
"""
_BOTTLENECKS = {
    "idle_allocations": ("allocated_idle",),
    "packing": ("stranded_cpu", "stranded_mem", "stranded_shape"),
    "gangs": ("gang_wait", "policy_blocked"),
    "failures": ("failed", "failed_held", "drained", "lost"),
    "reservations": ("reserved",),
    "topology": ("stranded_topology",),
}
WORTH = 0.01  # a cause that holds back less than a hundredth is not what holds the cluster back


def make_report(
    store: Store,
    window: Window,
    goals: Goals,
    *,
    at: datetime,
    cluster: str | None = None,
    replays: Sequence[Replayed] = (),
) -> WeeklyReport:
    """The report over ``window`` as of ``at``; nothing is written.

    ``replays``: what replays of the window found (see `steps.replay_all`); without them the report
    is from facts alone.

    The ledger of the window must have been built; hours that are not are not accounted.
    """
    with store.work() as work:
        site = Site(work, window, goals, cluster)
        totals = _totals(site)
        accounted = work.value("SELECT count(DISTINCT hour) FROM advice_cell")
        enough = accounted >= 24
        advice = advise(site, at, replays) if enough else _nothing(window)
        measurements: Measurements = measure(work, window, cluster)
        prices = _prices(work.rows(_PRICES, [window.since, window.until, cluster]))
        kind = work.value("SELECT value FROM store_info WHERE key = 'kind'")
    goals_version = hashlib.sha256(goals.model_dump_json().encode()).hexdigest()[:12]
    identity = f"{cluster}|{window.since}|{window.until}|{at.isoformat()}|{goals_version}"
    return WeeklyReport(
        report_id=hashlib.sha256(identity.encode()).hexdigest()[:16], made_at=at, window=window,
        cluster=cluster, demo=kind == "demo", currency=site.currency,
        coverage_ratio=_coverage(totals), prices=prices, classes=totals, cost=_cost(totals),
        accounted_hours=accounted, diagnosis=_diagnosis(totals), advice=advice,
        measurements=measurements, goals=goals, goals_version=goals_version,
        replays=replays,
    )  # fmt: skip


def _nothing(window: Window) -> Advice:
    return Advice([], joint_saving([], window), [], [])


def _totals(site: Site) -> list[ClassTotal]:
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in CLASSES)
    rows = site.rows(_TOTALS.format(sums=sums))
    return [_total(name, rows) for name in CLASSES]


def _total(name: str, rows: list[dict[str, Any]]) -> ClassTotal:
    micro = sum(row[name] for row in rows)
    priced = [row for row in rows if row["price"] is not None]
    cost = sum((row["price"] * row[name] for row in priced), Decimal(0)) / 3_600_000_000
    return ClassTotal(name, micro / 3.6e9, cost if priced else None)


def _cost(totals: list[ClassTotal]) -> Decimal | None:
    known = [entry.cost for entry in totals if entry.cost is not None]
    return sum(known, Decimal(0)) if known else None


def _coverage(totals: list[ClassTotal]) -> float | None:
    """Share of GPU time that is neither unknown nor held without a measurement."""
    total = sum(entry.gpu_hours for entry in totals)
    dark = sum(e.gpu_hours for e in totals if e.name in ("unknown", "allocated_unmeasured"))
    return 1 - dark / total if total else None


def _diagnosis(totals: list[ClassTotal]) -> list[Bottleneck]:
    """What holds the cluster back, largest first; causes below `WORTH` are left out."""
    by_name = {entry.name: entry for entry in totals}
    total = sum(entry.gpu_hours for entry in totals)
    found = []
    for name, classes in _BOTTLENECKS.items():
        entries = [by_name[each] for each in classes]
        hours = sum(entry.gpu_hours for entry in entries)
        if total and hours >= WORTH * total:
            found.append(Bottleneck(name, hours, _cost(entries)))
    return sorted(found, key=lambda entry: (-entry.gpu_hours, entry.name))


def _prices(rows: list[dict[str, Any]]) -> PriceUse:
    models: dict[str, str] = {}
    for row in rows:
        day = f", {row['retrieved_on']:%Y-%m-%d}" if row["retrieved_on"] else ""
        amount = f"{row['amount'].normalize():f} {row['currency']} / GPU-h"
        text = f"{amount}, {row['kind']} {row['purchase_type']}, {row['source']}{day}"
        models[row["gpu_model"]] = "; ".join(filter(None, (models.get(row["gpu_model"]), text)))
    used = {row["price_id"]: row for row in rows}  # a price without a model stands at several
    version = book_version([used[price] for price in sorted(used)]) or "none"
    return PriceUse(
        version=version, kinds=tuple(sorted({row["kind"] for row in rows})), models=models
    )
