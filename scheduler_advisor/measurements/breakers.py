"""Which small jobs break up which big nodes, and when.

A big node has at least four GPUs. A small job holds at most half of the node's GPUs. While it is
there, the node's free GPUs are "broken": no job that wants the whole node can have them. The
broken GPU-hours of a moment are split over the small jobs on the node by the GPUs they hold
(modelled); the node's total is counted (observed). ``hurt`` is the part during which a job that
needs more GPUs on one node than this node had free was waiting.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

from collector.store import Work
from scheduler_advisor.window import Window

BIG_NODE_GPUS = 4

# One row = a stretch of a big node during which the same small runs sat on it and GPUs were free.
_STRETCHES = """
WITH big AS (
  SELECT cluster, node, max(gpus)::BIGINT AS total, any_value(partitions) AS queues FROM node
  WHERE gpus >= 4 AND valid_from < $2 AND coalesce(valid_to, $2) >= $1
    AND ($3::VARCHAR IS NULL OR cluster = $3) GROUP BY cluster, node),
held AS (
  SELECT a.cluster, a.node, a.run_id, b.total, b.queues,
    sum(a.gpus * a.share_num / a.share_den) AS gpus,
    greatest(min(a.start_at), $1) AS s, least(max(coalesce(a.end_at, $2)), $2) AS e
  FROM allocation a JOIN big b ON b.cluster = a.cluster AND b.node = a.node
  WHERE a.start_at < $2 AND coalesce(a.end_at, $2) > $1 AND a.gpus > 0
  GROUP BY a.cluster, a.node, a.run_id, b.total, b.queues),
cut AS (
  SELECT cluster, node, t, lead(t) OVER (PARTITION BY cluster, node ORDER BY t) AS t_next
  FROM (SELECT DISTINCT cluster, node, unnest([s, e]) AS t FROM held))
SELECT c.cluster, c.node, c.t AS since, c.t_next AS until, h.total::INTEGER AS total, h.queues,
  h.total - sum(h.gpus) AS free,
  list(h.run_id ORDER BY h.run_id) FILTER (h.gpus * 2 <= h.total) AS runs,
  list(h.gpus ORDER BY h.run_id) FILTER (h.gpus * 2 <= h.total) AS run_gpus
FROM cut c JOIN held h ON h.cluster = c.cluster AND h.node = c.node AND h.s <= c.t AND h.e > c.t
WHERE c.t_next IS NOT NULL
GROUP BY c.cluster, c.node, c.t, c.t_next, h.total, h.queues
HAVING sum(h.gpus) < h.total AND count(*) FILTER (h.gpus * 2 <= h.total) > 0
ORDER BY c.cluster, c.node, c.t
"""

# One row = a job that waited in the window, with the GPUs it needs on one node.
_WAITERS = """
SELECT r.cluster, any_value(r.partition) AS queue,
  ceil(max(r.gpus) / greatest(1, max(coalesce(r.nodes, j.req_nodes, 1))))::INTEGER AS per_node,
  min(coalesce(r.eligible_at, r.submit_at)) AS since,
  min(coalesce(r.start_at, r.end_at, $2)) AS until
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE ($3::VARCHAR IS NULL OR r.cluster = $3) AND r.gpus > 1
GROUP BY r.cluster, r.job_id
HAVING min(coalesce(r.start_at, r.end_at, $2)) > $1
   AND min(coalesce(r.eligible_at, r.submit_at)) < $2
   AND min(coalesce(r.eligible_at, r.submit_at)) < min(coalesce(r.start_at, r.end_at, $2))
"""

# One row = who a run belongs to.
_RUNS = """
SELECT r.cluster, r.run_id, r.job_id, j.name, r.user_name, r.account
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE ($1::VARCHAR IS NULL OR r.cluster = $1)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """One small run on one big node, with its share of the node's broken GPU-hours."""

    cluster: str
    node: str
    run_id: str
    job_id: str | None
    name: str | None
    user_name: str | None
    account: str | None
    gpus: float
    node_gpus: int
    since: datetime
    until: datetime
    broken_gpu_hours: float
    hurt_gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hurt:
    """Free GPUs of one big node over ``[since, until)`` while a job waited for the whole node."""

    cluster: str
    node: str
    since: datetime
    until: datetime
    free: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerReport:
    """All breakers, largest first, and the observed totals per node and local hour of the day."""

    breakers: list[Breaker]
    broken_gpu_hours: float
    hurt_gpu_hours: float
    by_node: dict[str, float]
    by_hour: dict[int, float]
    hurt: list[Hurt]


def breakers(work: Work, window: Window, cluster: str | None = None) -> BreakerReport:
    """The small runs that broke up big nodes in the window."""
    span = [window.since, window.until, cluster]
    waiters = _Waiters(work.rows(_WAITERS, span))
    tally = _Tally(window.zone)
    for stretch in work.rows(_STRETCHES, span):
        tally.add(stretch, waiters.during(stretch))
    who = {(run["cluster"], run["run_id"]): run for run in work.rows(_RUNS, [cluster])}
    return tally.report(who)


_Span = tuple[datetime, datetime]


class _Waiters:
    """When jobs waited that a node of some kind could hold only when emptier.

    Nodes of a kind (cluster, GPUs, free GPUs, queues) share one answer, which is made once.
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in sorted(rows, key=itemgetter("since", "until")):
            self._rows[row["cluster"]].append(row)
        self._waits: dict[tuple[Any, ...], list[_Span]] = {}

    def during(self, stretch: dict[str, Any]) -> list[_Span]:
        """The parts of the stretch in which such a job waited, in order, none touching another."""
        queues = tuple(stretch["queues"] or ())
        kind = (stretch["cluster"], stretch["total"], stretch["free"], queues)
        if kind not in self._waits:
            self._waits[kind] = self._of(*kind)
        waits, found = self._waits[kind], []
        at = max(bisect_right(waits, stretch["since"], key=itemgetter(0)) - 1, 0)
        while at < len(waits) and waits[at][0] < stretch["until"]:
            since, until = max(waits[at][0], stretch["since"]), min(waits[at][1], stretch["until"])
            if since < until:
                found.append((since, until))
            at += 1
        return found

    def _of(self, cluster: str, total: int, free: float, queues: tuple[str, ...]) -> list[_Span]:
        waits: list[_Span] = []
        for row in self._rows[cluster]:
            if not free < row["per_node"] <= total:
                continue
            if row["queue"] is not None and queues and row["queue"] not in queues:
                continue
            since, until = row["since"], row["until"]
            if waits and since <= waits[-1][1]:
                waits[-1] = (waits[-1][0], max(until, waits[-1][1]))
            else:
                waits.append((since, until))
        return waits


class _Tally:
    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._runs: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._by_node: dict[str, float] = defaultdict(float)
        self._by_hour: dict[int, float] = defaultdict(float)
        self._hurt: list[Hurt] = []

    def add(self, stretch: dict[str, Any], spans: list[_Span]) -> None:
        hours = (stretch["until"] - stretch["since"]).total_seconds() / 3600
        free, small = stretch["free"], sum(stretch["run_gpus"])
        self._by_node[stretch["node"]] += free * hours
        hurt_hours = sum((stop - start).total_seconds() for start, stop in spans) / 3600
        for start, stop in spans:
            self._hurt.append(
                Hurt(cluster=stretch["cluster"], node=stretch["node"], since=start, until=stop,
                     free=free)
            )  # fmt: skip
        for start, stop in _hours_of(stretch["since"], stretch["until"]):
            hour = start.astimezone(self._zone).hour
            self._by_hour[hour] += free * (stop - start).total_seconds() / 3600
        for run_id, gpus in zip(stretch["runs"], stretch["run_gpus"], strict=True):
            key = (stretch["cluster"], stretch["node"], run_id)
            entry = self._runs.setdefault(
                key,
                {"gpus": gpus, "node_gpus": stretch["total"], "since": stretch["since"],
                 "broken_gpu_hours": 0.0, "hurt_gpu_hours": 0.0},
            )  # fmt: skip
            entry["until"] = stretch["until"]
            entry["broken_gpu_hours"] += free * hours * gpus / small
            entry["hurt_gpu_hours"] += free * hurt_hours * gpus / small

    def report(self, who: dict[tuple[str, str], dict[str, Any]]) -> BreakerReport:
        nobody = {"job_id": None, "name": None, "user_name": None, "account": None}
        found = []
        for (cluster, node, run_id), entry in self._runs.items():
            owner = who.get((cluster, run_id), nobody)
            names = {key: owner[key] for key in nobody}
            found.append(Breaker(cluster=cluster, node=node, run_id=run_id, **names, **entry))
        found.sort(key=lambda b: (-b.broken_gpu_hours, b.node, b.run_id))
        return BreakerReport(
            breakers=found, broken_gpu_hours=sum(self._by_node.values()),
            hurt_gpu_hours=sum(
                h.free * (h.until - h.since).total_seconds() / 3600 for h in self._hurt
            ),
            by_node=dict(self._by_node), by_hour=dict(sorted(self._by_hour.items())),
            hurt=self._hurt,
        )  # fmt: skip


def _hours_of(since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """``[since, until)`` cut at every full UTC hour."""
    pieces, start = [], since
    while start < until:
        stop = min(start.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1), until)
        pieces.append((start, stop))
        start = stop
    return pieces
