"""The facts that a build reads, without doubles; times are microseconds since 1970.

Every query gives the same rows whatever the order in which facts arrived: doubles are folded by
key,
a known end wins over an open one, and a later inventory row ends the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analytics.window import from_us
from collector.store import Work

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Pool:
    """GPUs of one model on one node over ``[t0, t1)``."""

    node: str
    model: str
    gpus: int
    cpus: int | None
    mem_mib: int | None
    partitions: tuple[str, ...]
    rack: str | None
    leaf: str | None
    spine: str | None
    owned: bool
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a run holds on a node over ``[t0, t1)``; ``gpus`` whole ones, or num/den of a named
    one."""

    run_id: str
    node: str
    model: str | None
    gpu_uuid: str | None
    mig_uuid: str | None
    gpus: int
    num: int
    den: int
    cpus: int
    mem_mib: int
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A named state of a node (or of the cluster: node None) over ``[t0, t1)``."""

    node: str | None
    kind: str
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """GPUs of a node kept for accounts; ``gpus`` None = all of them, no accounts = for
    everybody."""

    name: str
    node: str
    gpus: int | None
    accounts: frozenset[str]
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Fatal:
    """A GPU broke at ``t``; ``by_name``: only who holds it by name can have held it."""

    node: str
    gpu_uuid: str | None
    run_id: str | None
    job_id: str | None
    t: int
    by_name: bool


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run as a whole."""

    run_id: str
    job_id: str
    user: str | None
    account: str | None
    project: str | None
    queue: str | None
    qos: str | None
    state: str
    t0: int | None
    t1: int | None
    limit_s: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything of one cluster that bears on ``[since, until)``."""

    cluster: str
    since: int
    until: int
    pools: list[Pool]
    allocations: list[Allocation]
    states: list[Interval]
    coverage: list[Interval]
    reservations: list[Reservation]
    fatals: list[Fatal]
    runs: dict[str, Run]
    seen: list[tuple[str, int]]
    """(gpu_uuid, instant) at which a GPU that broke was taken out, or given to a run again."""


_NODES = """
WITH folded AS (
  SELECT node, coalesce(gpu_model, 'unknown') AS gpu_model, valid_from, max(gpus) AS gpus,
  max(cpus) AS cpus,
    max(mem_mib) AS mem_mib, max(partitions) AS partitions, max(rack) AS rack, max(leaf) AS leaf,
    max(spine) AS spine, bool_or(owned) AS owned, max(valid_to) AS valid_to
  FROM node WHERE cluster = ? GROUP BY ALL),
ended AS (
  SELECT *, least(coalesce(valid_to, 'infinity'), coalesce(lead(valid_from) OVER
    (PARTITION BY node, gpu_model ORDER BY valid_from), 'infinity')) AS ends FROM folded)
SELECT node, gpu_model, gpus, cpus, mem_mib, partitions, rack, leaf, spine, owned,
epoch_us(valid_from) AS t0,
  CASE WHEN isfinite(ends) THEN epoch_us(ends) END AS t1
FROM ended WHERE valid_from < ? AND ends > ? AND valid_from < ends ORDER BY node, gpu_model,
valid_from"""

_RUNS = """
SELECT run_id, job_id, user_name, account, project, partition, qos, state,
  epoch_us(start_at) AS t0, epoch_us(end_at) AS t1, limit_s
FROM (SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY end_at IS NULL,
        coalesce(end_at, last_known_at) DESC NULLS LAST, start_at DESC NULLS LAST, state, source)
        AS nth
      FROM job_run WHERE cluster = ? AND least(submit_at, eligible_at, start_at) < ?
        AND coalesce(end_at, 'infinity') > ?)
WHERE nth = 1"""

_ALLOCATIONS = """
WITH folded AS (
  SELECT run_id, node, gpu_model, gpu_uuid, mig_uuid, start_at, max(gpus) AS gpus,
    arg_max(share_num, share_num / share_den) AS num, arg_max(share_den, share_num / share_den) AS
    den,
    max(cpus) AS cpus, max(mem_mib) AS mem_mib, max(end_at) AS end_at
  FROM allocation WHERE cluster = ? AND start_at < ? GROUP BY ALL),
run AS (
  SELECT run_id, max(end_at) AS end_at, max(last_known_at) AS last_known_at FROM job_run
  WHERE cluster = ? GROUP BY run_id),
covered AS (
  SELECT node, max(until) AS until FROM fact_window WHERE cluster = ? AND kind = 'scheduler' GROUP
  BY node),
ended AS (
  SELECT f.*, coalesce(f.end_at, r.end_at, r.last_known_at, greatest(
      (SELECT until FROM covered WHERE node IS NULL),
      (SELECT until FROM covered c WHERE c.node = f.node)), f.start_at) AS ends
  FROM folded f LEFT JOIN run r USING (run_id))
SELECT run_id, node, gpu_model, gpu_uuid, mig_uuid, gpus, num, den, coalesce(cpus, 0) AS cpus,
  coalesce(mem_mib, 0) AS mem_mib, epoch_us(start_at) AS t0, epoch_us(ends) AS t1
FROM ended WHERE ends > ? AND start_at < ends
ORDER BY start_at, run_id, node, gpu_model, gpu_uuid, mig_uuid"""

_STATES = """
SELECT node, state, epoch_us(since) AS t0, epoch_us(max(until)) AS t1 FROM node_state
WHERE cluster = ? AND since < ? GROUP BY node, state, since HAVING coalesce(max(until), 'infinity')
> ?
ORDER BY ALL"""

_COVERAGE = """
SELECT DISTINCT node, kind, epoch_us(since) AS t0, epoch_us(until) AS t1 FROM fact_window
WHERE cluster = ? AND since < ? AND until > ? ORDER BY ALL"""

_RESERVATIONS = """
SELECT name, node, max(gpus) AS gpus, max(accounts) AS accounts, epoch_us(since) AS t0,
epoch_us(max(until)) AS t1
FROM reservation WHERE cluster = ? AND since < ? GROUP BY name, node, since
HAVING coalesce(max(until), 'infinity') > ? ORDER BY ALL"""

_FATALS = """
SELECT DISTINCT node, gpu_uuid, run_id, job_id, epoch_us(ts) AS t, EXISTS (
  SELECT 1 FROM allocation a WHERE a.cluster = event.cluster AND a.gpu_uuid = event.gpu_uuid
    AND coalesce(a.end_at, 'infinity') > event.ts) AS by_name
FROM event
WHERE cluster = ? AND ts < ? AND fatal AND kind IN ('xid', 'gpu_lost') AND node IS NOT NULL ORDER
BY t, node, gpu_uuid, run_id, job_id"""

_SEEN = """
WITH broke AS (
  SELECT DISTINCT gpu_uuid FROM event WHERE cluster = $1 AND fatal AND gpu_uuid IS NOT NULL)
SELECT gpu_uuid, epoch_us(valid_to) AS t FROM device_seen JOIN broke USING (gpu_uuid)
WHERE cluster = $1 AND valid_to IS NOT NULL
UNION SELECT gpu_uuid, epoch_us(start_at) FROM allocation JOIN broke USING (gpu_uuid)
WHERE cluster = $1 ORDER BY ALL"""


def load(work: Work, cluster: str, since: int, until: int, *, lead: int = 0) -> Facts:
    """Facts of ``cluster`` that overlap ``[since - lead, until)``."""
    span = [from_us(until), from_us(since - lead)]
    runs = [Run(*row) for row in _tuples(work, _RUNS, [cluster, *span])]
    states_ever = work.rows(_STATES, [cluster, span[0], from_us(0)])
    return Facts(
        cluster=cluster,
        since=since,
        until=until,
        pools=[_pool(row) for row in work.rows(_NODES, [cluster, *span])],
        allocations=_allocations(work, cluster, span),
        states=[
            Interval(row["node"], row["state"], row["t0"], _end(row["t1"])) for row in states_ever
        ],
        coverage=[Interval(**row) for row in work.rows(_COVERAGE, [cluster, *span])],
        reservations=[_reservation(row) for row in work.rows(_RESERVATIONS, [cluster, *span])],
        fatals=[Fatal(**row) for row in work.rows(_FATALS, [cluster, span[0]])],
        runs={run.run_id: run for run in runs},
        seen=[(row["gpu_uuid"], row["t"]) for row in work.rows(_SEEN, [cluster])],
    )


def inventory(work: Work, cluster: str, since: int, until: int) -> Facts:
    """Only what decides how many GPUs are installed."""
    span = [from_us(until), from_us(since)]
    states = [
        Interval(row["node"], row["state"], row["t0"], _end(row["t1"]))
        for row in work.rows(_STATES, [cluster, *span])
    ]
    pools = [_pool(row) for row in work.rows(_NODES, [cluster, *span])]
    return Facts(cluster, since, until, pools, [], states, [], [], [], {}, [])


def _end(t1: int | None) -> int:
    return FOREVER if t1 is None else t1


def _pool(row: dict[str, Any]) -> Pool:
    return Pool(
        row["node"], row["gpu_model"], row["gpus"], row["cpus"], row["mem_mib"],
        tuple(row["partitions"] or ()), row["rack"], row["leaf"], row["spine"], row["owned"],
        row["t0"], _end(row["t1"]),
    )  # fmt: skip


def _allocations(work: Work, cluster: str, span: list[Any]) -> list[Allocation]:
    params = [cluster, span[0], cluster, cluster, span[1]]
    return [Allocation(*row) for row in _tuples(work, _ALLOCATIONS, params)]


def _tuples(work: Work, sql: str, params: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of many integers and words, cheaper than as dicts; no timestamps among them."""
    return zip(*(column.to_pylist() for column in work.query(sql, params).columns), strict=True)


def _reservation(row: dict[str, Any]) -> Reservation:
    return Reservation(
        row["name"], row["node"], row["gpus"], frozenset(row["accounts"] or ()),
        row["t0"], _end(row["t1"]),
    )  # fmt: skip
