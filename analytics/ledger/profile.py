"""The demand profile: how much CPU and memory a GPU of this cluster's jobs asks for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


_HISTORY = """-- what a job asked for per GPU of it, rounded down
SELECT CAST(cpus AS BIGINT) * 1000 // gpus AS cpu_milli, mem_mib // gpus AS mem_mib
FROM (
  SELECT run_id, max(gpus) AS gpus, max(cpus) AS cpus, max(mem_mib) AS mem_mib
  FROM job_run WHERE cluster = ? AND start_at >= ? AND start_at < ? AND gpus > 0 GROUP BY run_id)"""


def demand_profile(
    work: Work, cluster: str, day: datetime, settings: LedgerSettings
) -> DemandProfile:
    """The profile that decides the rows of ``day`` (its midnight, UTC)."""
    since = day - timedelta(days=settings.demand_days)
    history = work.query(_HISTORY, [cluster, since, day])
    jobs = history.num_rows
    cpus, mems = _ordered(history["cpu_milli"]), _ordered(history["mem_mib"])
    own = Demand(settings.demand_cpu_milli_per_gpu, settings.demand_mem_mib_per_gpu)
    if jobs < settings.demand_min_jobs:
        cpus, mems = cpus[:0], mems[:0]

    def at(quantile: float) -> Demand:
        return Demand(
            own.cpu_milli if own.cpu_milli is not None else _nearest_rank(cpus, quantile),
            own.mem_mib if own.mem_mib is not None else _nearest_rank(mems, quantile),
        )

    return DemandProfile(
        day,
        jobs,
        settings.demand_quantile,
        at(settings.demand_quantile),
        at(settings.demand_low),
        at(settings.demand_high),
    )


def _ordered(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    known = column.drop_null().to_numpy()
    return np.sort(known.astype(np.int64, copy=False))


def _nearest_rank(ordered: npt.NDArray[np.int64], quantile: float) -> int | None:
    """The smallest value with at least this share of values at or below it."""
    if not len(ordered):
        return None
    return int(ordered[max(ceil(quantile * len(ordered)) - 1, 0)])
