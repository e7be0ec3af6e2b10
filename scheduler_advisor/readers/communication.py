"""How much of each gang's run time goes into communication, from what the store holds.

First from a class's own repeated runs: those that lay tighter beside those that lay looser give the
slowdown, and with the all-reduce times of both placements the fraction f. Then from traffic: bytes
sent per GPU over NVLink, and over the network where it held whole nodes, against the line rate;
never more than the share of time in which the multiprocessors stood still, since what is hidden
behind work costs nothing. Else nothing is known, and the policy's default stands.
A class is one user's job of one name and GPU count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analytics.counters import gained
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.parts.allreduce import slowdown_ppm
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.readers.lies import Lies

LOOK_BACK = timedelta(days=180)
EACH = 2  # runs on either side, at least
SHORTEST_S = 600  # start-up noise decides below ten minutes
MOST = 0.9

# One row = one run on several GPUs that ended in the span, with the nodes it held.
_RUNS = """
SELECT r.run_id, r.job_id, coalesce(j.name, '') AS name, coalesce(r.user_name, '') AS user_name,
  r.gpus, r.state, epoch(r.end_at - r.start_at) - coalesce(r.suspended_s, 0) AS run_s,
  list(a.node ORDER BY a.node) AS nodes, list(a.gpus ORDER BY a.node) AS held
FROM job_run r
JOIN (SELECT run_id, node, sum(gpus)::BIGINT AS gpus FROM allocation WHERE cluster = ?
      GROUP BY run_id, node) a ON a.run_id = r.run_id
LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE r.cluster = ? AND r.gpus > 1 AND r.start_at IS NOT NULL AND r.end_at >= ? AND r.end_at < ?
GROUP BY ALL ORDER BY r.run_id
"""
# One row = one run: bytes that a GPU of it sent over NVLink a second, and how much of the time its
# multiprocessors were at work.
_LINKS = f"""
WITH gpu AS (
  SELECT run_id, gpu_uuid, epoch(max(ts) - min(ts)) AS seconds, avg(sm_active_ratio) AS sm,
    {gained("nvlink_tx_bytes")} AS sent
  FROM sample
  WHERE cluster = ? AND ts >= ? AND ts < ? AND run_id IS NOT NULL AND gpu_uuid IS NOT NULL
    AND mig_uuid IS NULL
  GROUP BY run_id, gpu_uuid HAVING max(ts) > min(ts))
SELECT run_id, sum(sent) / sum(CASE WHEN sent IS NOT NULL THEN seconds END) AS link,
  avg(sm) AS active
FROM gpu GROUP BY run_id ORDER BY run_id
"""  # noqa: S608 - our own names
# One row = one run: bytes that its nodes sent over the network a second and GPU, where it held all
# GPUs of each of them.
_NETWORK = f"""
WITH own AS (
  SELECT run_id, node, min(start_at) AS since, max(end_at) AS until, sum(gpus)::BIGINT AS gpus
  FROM allocation WHERE cluster = ? AND end_at >= ? AND end_at < ?
  GROUP BY run_id, node),
whole AS (
  SELECT own.* FROM own
  JOIN (SELECT node, max(gpus)::BIGINT AS gpus FROM node WHERE cluster = ? GROUP BY node) n
    ON n.node = own.node AND n.gpus = own.gpus),
sent AS (
  SELECT w.run_id, w.node, w.gpus, epoch(max(h.ts) - min(h.ts)) AS seconds,
    {gained("h.net_tx_bytes", "h.ts")} AS bytes
  FROM whole w
  JOIN host_sample h ON h.cluster = ? AND h.node = w.node AND h.run_id IS NULL
    AND h.ts > w.since AND h.ts <= w.until AND h.net_tx_bytes IS NOT NULL
  GROUP BY w.run_id, w.node, w.gpus HAVING max(h.ts) > min(h.ts))
SELECT run_id, sum(bytes) / sum(seconds * gpus) AS net
FROM sent GROUP BY run_id
HAVING count(*) = count(bytes)
  AND count(*) = (SELECT count(*) FROM own WHERE own.run_id = sent.run_id)
ORDER BY run_id
"""  # noqa: S608 - our own names


class Facts(Protocol):
    """What is needed of a store."""

    def query(self, sql: str, params: tuple[object, ...] = ()) -> pa.Table:
        """Rows as Arrow, times as UTC without a zone."""


class Origin(StrEnum):
    """Where a communication fraction comes from, the best first."""

    REPEATS = "repeats"
    TRAFFIC = "traffic"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ClassOfJobs:
    """One user's job of one name and size, with its fraction; `runs`: how many it rests on."""

    user: str
    name: str
    gpus: int
    fraction: float | None
    origin: Origin
    runs: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Fractions by class and the class of each job; `excess`: t(placement) / t(best) - 1 as each
    job really lay."""

    classes: tuple[ClassOfJobs, ...]
    of_job: Mapping[str, int]
    excess: Mapping[str, float]

    def milli(self, job_id: str) -> int:
        """Thousandths of run time in communication; 0: not known."""
        at = self.of_job.get(job_id)
        fraction = None if at is None else self.classes[at].fraction
        return 0 if fraction is None else max(1, round(fraction * 1000))

    def by_traffic(self, job_ids: Iterable[str]) -> NDArray[np.int64]:
        """Thousandths of those whose links were measured; 0 for all others."""
        found = [
            self.milli(str(job_id)) if self.origin(str(job_id)) is Origin.TRAFFIC else 0
            for job_id in job_ids
        ]
        return np.array(found, np.int64)

    def origin(self, job_id: str) -> Origin:
        """Where the job's fraction comes from."""
        at = self.of_job.get(job_id)
        return Origin.DEFAULT if at is None else self.classes[at].origin

    def on_the_best(self, job_id: str, run: int, milli: int) -> int:
        """The job's run time as it would have been where its tasks lie best."""
        excess = self.excess.get(job_id, 0.0)
        return max(1, round(run * 1e6 / slowdown_ppm(milli, 1.0 + excess, 1.0)))

    def remarks(self) -> tuple[str, ...]:
        """For people: how many classes rest on what."""
        counts = Counter(one.origin for one in self.classes)
        told = ", ".join(f"{counts[origin]} by {origin}" for origin in Origin if counts[origin])
        return (f"communication of {len(self.classes)} classes of gangs: {told}",) if told else ()


def read_communication(
    facts: Facts, cluster: str, until: datetime, fleet: Cluster, policy: Policy
) -> Measured:
    """What is known of the gangs that ended in the half year before `until`."""
    since = until - LOOK_BACK
    rows = facts.query(_RUNS, (cluster, cluster, since, until)).to_pylist()
    links = _by_run(facts.query(_LINKS, (cluster, since, until)))
    net = _by_run(facts.query(_NETWORK, (cluster, since, until, cluster, cluster)))
    lies = Lies(fleet, policy)
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        row["excess"] = lies.excess(row["nodes"], row["held"])
        groups[row["user_name"], row["name"], row["gpus"]].append(row)
    classes: list[ClassOfJobs] = []
    of_job: dict[str, int] = {}
    for (user, name, gpus), runs in sorted(groups.items()):
        fraction, origin, count = _fraction(runs, links, net, lies)
        of_job |= {row["job_id"]: len(classes) for row in runs}
        classes.append(ClassOfJobs(user, name, gpus, fraction, origin, count))
    excess = {row["job_id"]: row["excess"] for row in rows if row["excess"] is not None}
    return Measured(tuple(classes), of_job, excess)


def _by_run(table: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["run_id"]: row for row in table.to_pylist()}


def _fraction(
    runs: Sequence[dict[str, Any]],
    links: Mapping[str, dict[str, Any]],
    net: Mapping[str, dict[str, Any]],
    lies: Lies,
) -> tuple[float | None, Origin, int]:
    named = [row for row in runs if row["name"]]
    if (found := from_repeats(named)) is not None:
        return found, Origin.REPEATS, len(named)
    shares = [
        share
        for row in runs
        if (share := lies.busy(row["nodes"], links.get(row["run_id"]), net.get(row["run_id"])))
        is not None
    ]
    if shares:
        return min(MOST, median(shares)), Origin.TRAFFIC, len(shares)
    return None, Origin.DEFAULT, len(runs)


def from_repeats(runs: Iterable[Mapping[str, Any]]) -> float | None:
    """f with which the all-reduce model makes the looser runs as much slower as they were.

    run = best x (1 + f x excess), so with r the ratio of the medians f = (r - 1) / (loose - r x
    tight). 0 where the looser ones were no slower; None without runs on both sides."""
    ended = [
        row
        for row in runs
        if row["state"] == "COMPLETED" and row["excess"] is not None and row["run_s"] >= SHORTEST_S
    ]
    tightest = min((row["excess"] for row in ended), default=0.0)
    tight = [row["run_s"] for row in ended if row["excess"] <= tightest + 1e-9]
    loose = [row for row in ended if row["excess"] > tightest + 0.05]
    if len(tight) < EACH or len(loose) < EACH:
        return None
    ratio = median(row["run_s"] for row in loose) / median(tight)
    if ratio <= 1:
        return 0.0
    room = median(row["excess"] for row in loose) - ratio * tightest
    return min(MOST, (ratio - 1) / room) if room > 0 else None
