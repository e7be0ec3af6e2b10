"""What preempted spot work cost: the part that was of use, the part that was lost, and what it
would have cost on demand."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from analytics.ledger.closing import closed_at
from analytics.ledger.pricing import PriceTimes
from analytics.money import shown_parts
from analytics.prices_in_force import in_force
from analytics.reports.amounts import nine
from analytics.reports.cost import asked_clusters
from analytics.reports.identity import PER_UNIT
from analytics.reports.rates import Rates, one_currency
from analytics.reports.report import Row
from analytics.reports.source import rows_of
from analytics.reports.table import TableReport
from analytics.window import Window
from collector.store import Store, Work

SPOT, ON_DEMAND = "spot", "on_demand"
_HELD = "used + lost + allocated_idle + allocated_unmeasured + failed_held"
_SQL = f"""
SELECT p.cluster, run.job_id AS job, run.run_id, r.user_name AS user, r.account, p.gpu_model,
  h.since, price.currency, price.amount,
  CAST(sum({_HELD}) AS BIGINT) AS paid, CAST(sum(used) AS BIGINT) AS useful,
  CAST(sum(lost) AS BIGINT) AS lost, CAST(sum(possibly_lost) AS BIGINT) AS possibly_lost
FROM {{hours}} h JOIN ledger_pool p USING (pool_key) JOIN ledger_run run USING (run_key)
JOIN price USING (price_key)
JOIN (SELECT DISTINCT ON (cluster, run_id) cluster, run_id, user_name, account FROM job_run
  WHERE state = 'PREEMPTED' ORDER BY ALL) r ON r.cluster = p.cluster AND r.run_id = run.run_id
WHERE h.since >= $1 AND h.until <= $2 AND price.purchase_type = '{SPOT}'
  AND ($3 IS NULL OR p.cluster = $3)
GROUP BY ALL ORDER BY ALL"""  # noqa: S608 - our own names
_AMOUNTS = ("paid", "useful", "lost", "possibly_lost")
_COSTS = ("useful", "lost", "other", "possibly_lost", "on_demand")


@dataclass(slots=True)
class _Run:
    """Sums of one run on one GPU model."""

    us: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cost: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    unpriced: bool = False


def spot_report(
    store: Store, window: Window, *, cluster: str | None = None, currency: str | None = None
) -> TableReport:
    """Per preempted run that paid spot prices, the dearest first.

    ``cost`` = ``useful_cost`` (active, and kept as far as anybody knows) + ``lost_cost`` (active,
    known to be thrown away) + ``other_cost`` (idle, unmeasured, broken meanwhile).
    ``possibly_lost_cost``: the part of useful that may be lost (modelled). ``on_demand_cost``: the
    GPU time without the lost (nobody preempts on demand) at the price on demand then, and
    ``saved_cost`` what spot saved of it, below 0 where it was dearer; None where the book has no
    such price.
    """
    asked = asked_clusters(store, cluster)
    with store.work() as work:
        source = rows_of(work, window, asked, ("job",)).over(window.since, window.until)
        params = [window.since, window.until, cluster]
        found = work.rows(_SQL.format(hours=source.hours), params)
        unit = one_currency({row["currency"] for row in found}, currency)
        runs = _added_up(work, found, unit, Rates.load(work))
    return _finish(window, unit, runs)


Key = tuple[str, str, str, str | None, str | None, str]


def _added_up(
    work: Work, found: list[dict[str, Any]], unit: str | None, rates: Rates
) -> dict[Key, _Run]:
    runs: dict[Key, _Run] = defaultdict(_Run)
    books: dict[tuple[str, Any], PriceTimes] = {}
    for row in found:
        key = tuple(row[n] for n in ("cluster", "job", "run_id", "user", "account", "gpu_model"))
        run, at = runs[key], row["since"]
        day = (row["cluster"], at.date())
        if day not in books:
            books[day] = PriceTimes.load(work, day[0], ON_DEMAND, closed_at(work, *day))
        rate = rates.rate(row["currency"], unit or row["currency"], at) * PER_UNIT * 10**6
        for name in _AMOUNTS:
            run.us[name] += row[name]
            run.cost[name] += row[name] * Fraction(row["amount"]) * rate
        dear = in_force(books[day].rows_of(row["gpu_model"]), at, ON_DEMAND)
        if dear is None or dear["purchase_type"] != ON_DEMAND:
            run.unpriced = True
            continue
        rate = rates.rate(dear["currency"], unit or dear["currency"], at) * PER_UNIT * 10**6
        run.cost["on_demand"] += (row["paid"] - row["lost"]) * Fraction(dear["amount"]) * rate
    for run in runs.values():
        run.cost["other"] = run.cost["paid"] - run.cost["useful"] - run.cost["lost"]
    return runs


def _finish(window: Window, unit: str | None, runs: dict[Key, _Run]) -> TableReport:
    keys = sorted(runs, key=lambda key: (-runs[key].cost["paid"], str(key)))
    shown = {name: shown_parts([runs[key].cost[name] for key in keys]) for name in _COSTS}
    rows = [
        _row(key, runs[key], {name: shown[name][nth] for name in _COSTS})
        for nth, key in enumerate(keys)
    ]
    names = [name for name in rows[0] if name.endswith(("_cost", "_hours"))] if rows else []
    total: Row = {}
    for name in [*names, "cost"] if rows else ["cost"]:
        values = [row[name] for row in rows]
        total[name] = None if None in values else sum(values, Decimal(0))
    remarks = ["possibly_lost is part of useful, and modelled: no checkpoint is known"]
    if any(run.unpriced for run in runs.values()):
        remarks.append("a part has no price on demand in the book: price load")
    if not rows:
        remarks.append("no preempted run of this window paid a spot price")
    return TableReport(window, unit, rows, total, remarks)


def _row(key: Key, run: _Run, cost: dict[str, Decimal]) -> Row:
    names = ("cluster", "job", "run_id", "user", "account", "gpu_model")
    paid = cost["useful"] + cost["lost"] + cost["other"]
    dear = None if run.unpriced else cost["on_demand"]
    return {
        **dict(zip(names, key, strict=True)),
        "gpu_hours": _hours(run.us["paid"]), "lost_gpu_hours": _hours(run.us["lost"]),
        "cost": paid, "useful_cost": cost["useful"], "lost_cost": cost["lost"],
        "other_cost": cost["other"], "possibly_lost_cost": cost["possibly_lost"],
        "on_demand_cost": dear,
        "saved_cost": None if dear is None else dear - paid,
    }  # fmt: skip


def _hours(us: int) -> Decimal:
    return nine(Fraction(us, 3_600_000_000))
