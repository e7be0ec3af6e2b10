"""The demand profile: how much CPU and memory a GPU of this cluster's jobs asks for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from analytics.ledger.settings import LedgerSettings
from collector.store import Work


@dataclass(frozen=True, slots=True)
class Demand:
    """CPU (thousandths) and memory (MiB) per GPU; None = no history: the node's own ratio."""

    cpu_milli: int | None
    mem_mib: int | None


@dataclass(frozen=True, slots=True)
class DemandProfile:
    """The profile of one day and its bounds, from GPU jobs that started in the days before it."""

    day: datetime
    jobs: int
    quantile: float
    middle: Demand
    low: Demand
    high: Demand

    @property
    def profile_hash(self) -> str:
        text = f"{self.quantile}|{self.middle}|{self.low}|{self.high}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


_HISTORY = """
SELECT gpus, cpus, mem_mib FROM (SELECT run_id, max(gpus) AS gpus, max(cpus) AS cpus, max(mem_mib)
AS mem_mib
  FROM job_run WHERE cluster = ? AND start_at >= ? AND start_at < ? AND gpus > 0 GROUP BY run_id)"""


def demand_profile(
    work: Work, cluster: str, day: datetime, settings: LedgerSettings
) -> DemandProfile:
    """The profile that decides the rows of ``day`` (its midnight, UTC)."""
    since = day - timedelta(days=settings.demand_days)
    rows = work.rows(_HISTORY, [cluster, since, day])
    cpus = sorted(1000 * r["cpus"] // r["gpus"] for r in rows if r["cpus"] is not None)
    mems = sorted(r["mem_mib"] // r["gpus"] for r in rows if r["mem_mib"] is not None)
    own = Demand(settings.demand_cpu_milli_per_gpu, settings.demand_mem_mib_per_gpu)
    if len(rows) < settings.demand_min_jobs:
        cpus, mems = [], []

    def at(quantile: float) -> Demand:
        return Demand(
            own.cpu_milli if own.cpu_milli is not None else _nearest_rank(cpus, quantile),
            own.mem_mib if own.mem_mib is not None else _nearest_rank(mems, quantile),
        )

    return DemandProfile(
        day,
        len(rows),
        settings.demand_quantile,
        at(settings.demand_quantile),
        at(settings.demand_low),
        at(settings.demand_high),
    )


def _nearest_rank(ordered: list[int], quantile: float) -> int | None:
    """The smallest value with at least this share of values at or below it."""
    if not ordered:
        return None
    return ordered[max(ceil(quantile * len(ordered)) - 1, 0)]
