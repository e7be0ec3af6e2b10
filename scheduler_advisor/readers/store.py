"""The store's own history for the simulator: jobs of a window, and the cluster they ran on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import UNLIMITED, Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Outage, OutageKind, Partition
from scheduler_advisor.engine.parts.allreduce import comm_of
from scheduler_advisor.engine.parts.places import by_network
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.readers.checkpoints import read_checkpoints, resumed
from scheduler_advisor.readers.communication import Measured, read_communication
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.readers.jobs import JobsRead
from scheduler_advisor.readers.standing import as_it_stood, on_their_nodes

Ints = NDArray[np.int64]


class Facts(Protocol):
    """What is needed of a store."""

    def query(self, sql: str, params: tuple[object, ...] = ()) -> pa.Table:
        """Rows as Arrow, times as UTC without a zone."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]:
        """Rows as dicts, times aware."""


# One row = one job whose last run overlaps the window, with the shape of what that run held.
# A job's earlier runs were lost; its wait is from its first submit to its first start.
_JOBS = """
WITH shape AS (
  SELECT run_id, count(*) AS nodes, max(gpus) AS most, min(gpus) AS least,
    sum(gpus)::BIGINT AS gpus, max(milli) AS milli
  FROM (
    SELECT run_id, node, sum(gpus)::BIGINT AS gpus,
      max(CASE WHEN share_den > 1 THEN share_num * 1000 // share_den ELSE 0 END) AS milli
    FROM allocation WHERE cluster = ? GROUP BY run_id, node)
  GROUP BY run_id),
run AS (
  SELECT job_id, min(submit_at) AS submit_at, min(start_at) AS first_start_at,
    min(eligible_at) AS eligible_at,
    count(start_at) AS attempts, arg_max(r, coalesce(start_at, submit_at)) AS last
  FROM job_run AS r WHERE cluster = ? GROUP BY job_id)
SELECT run.job_id, epoch(run.submit_at)::BIGINT AS submit,
  epoch(run.first_start_at)::BIGINT AS start,
  epoch(greatest(coalesce(run.eligible_at, run.submit_at), run.submit_at))::BIGINT AS eligible,
  (epoch(coalesce(last.end_at, last.last_known_at)) - epoch(last.start_at))::BIGINT
    - coalesce(last.suspended_s, 0) AS run,
  last.end_at IS NULL AND last.start_at IS NOT NULL AS open, run.attempts,
  coalesce(last.limit_s, job.limit_s) AS limit,
  coalesce(shape.gpus, last.gpus, job.req_gpus, 0)::BIGINT AS gpus,
  shape.nodes, shape.most, shape.least, coalesce(shape.milli, 0)::BIGINT AS milli,
  coalesce(last.cpus, job.req_cpus, 0)::BIGINT AS cpus,
  coalesce(last.mem_mib, job.req_mem_mib, 0)::BIGINT AS mem_mib,
  coalesce(last.priority, 0)::BIGINT AS priority, coalesce(last.account, '') AS account,
  coalesce(last.user_name, '') AS user_name, coalesce(last.qos, '') AS qos,
  coalesce(last.partition, '') AS partition, coalesce(job.req_gpu_model, '') AS gpu_model,
  coalesce(job.topology, '') AS topology
FROM run LEFT JOIN shape ON shape.run_id = last.run_id
  LEFT JOIN job ON job.cluster = ? AND job.job_id = run.job_id
WHERE run.submit_at < ?
  AND coalesce(last.end_at, last.last_known_at, ?) > ?
ORDER BY run.submit_at, length(run.job_id), run.job_id
"""
# One row = one node at the end of the window, its pools added up (a mixed node counts as one).
_NODES = """
SELECT node, sum(gpus)::BIGINT AS gpus, max(cpus) AS cpus, max(mem_mib) AS mem_mib,
  coalesce(string_agg(DISTINCT gpu_model, '|' ORDER BY gpu_model), '') AS gpu_model,
  coalesce(any_value(leaf), '') AS leaf,
  coalesce(any_value(spine), '') AS spine, coalesce(any_value(rack), '') AS rack,
  any_value(partitions) AS partitions,
  any_value(features) AS features
FROM node WHERE cluster = ? AND valid_from < ? AND (valid_to IS NULL OR valid_to >= ?)
GROUP BY node ORDER BY node
"""
_STATES = """
SELECT node, epoch(since)::BIGINT AS since, epoch(until)::BIGINT AS until, state FROM node_state
WHERE cluster = ? AND since < ? AND (until IS NULL OR until > ?) ORDER BY node, since
"""
# One row = what a job that began before the window, and ran into it, held on one node.
_STOOD = """
SELECT r.job_id, a.node, sum(a.gpus)::BIGINT AS gpus FROM job_run r
JOIN allocation a ON a.cluster = r.cluster AND a.run_id = r.run_id
WHERE r.cluster = $1 AND r.start_at < $2 AND coalesce(r.end_at, r.last_known_at, $2) > $2
GROUP BY r.job_id, a.node ORDER BY r.job_id, a.node
"""
_FAILURES = ("down", "failed")


@dataclass(frozen=True, slots=True)
class History:
    """Jobs and cluster of one window. ``origin_s``: the simulator's second 0 in Unix time."""

    read: JobsRead
    cluster: Cluster
    origin_s: int


def read_history(
    facts: Facts,
    cluster: str,
    since: datetime,
    until: datetime,
    network: Policy | None = None,
    *,
    preempts: bool = False,
) -> History:
    """What ran in ``[since, until)`` on ``cluster``, as jobs, on the nodes as they were at the end.

    Jobs that ran already when the window began come with it, from their real start and on their
    nodes; jobs that waited then wait until it begins. An open run counts until it was last known.
    Nodes that were down or drained are so in the replay too. A job whose checkpoints are known and
    that went on after a stop counts with all of its runs; stops that come again in the replay
    (failed nodes; preemption with ``preempts``, where priorities differ) cost there what they cost.
    With ``network``, a policy in which the network matters, gangs have the communication fractions
    that the store shows, and the run times that they would have had where they lie best.
    Raises ReaderError where the store holds no jobs or no nodes for it.
    """
    params = (cluster, cluster, cluster, until, until, since)
    table = facts.query(_JOBS, params)
    if table.num_rows == 0:
        raise ReaderError(
            f"no job of cluster {cluster} ran from {since:%Y-%m-%d} to {until:%Y-%m-%d} UTC: "
            "see `unstrand doctor` for what the store covers"
        )
    origin = int(min(pc.min(table.column("submit")).as_py(), since.timestamp()))
    fleet = _cluster(facts, cluster, since, until, origin)
    stood = facts.query(_STOOD, (cluster, since))
    read = _jobs(table, origin)
    preempts = preempts and int(np.ptp(read.jobs.priority)) > 0
    known = read_checkpoints(facts, cluster, (since, until), (fleet.outages, origin),
                             preempts=preempts)  # fmt: skip
    read = resumed(read, known, origin)
    read = _as_it_stood(read, stood, int(since.timestamp()) - origin)
    if network is not None and by_network(network):
        read = _communicating(read, read_communication(facts, cluster, until, fleet, network),
                              network)  # fmt: skip
    return History(read=read, cluster=fleet, origin_s=origin)


def _as_it_stood(read: JobsRead, stood: pa.Table, since: int) -> JobsRead:
    assert read.observed_wait_s is not None  # a store has starts
    waits = np.maximum(read.observed_wait_s, 0)
    jobs, waits = as_it_stood(read.jobs, waits, since)
    held = list(zip(*(stood.column(at).to_pylist() for at in range(3)), strict=True))
    jobs = on_their_nodes(jobs, since, held)
    known = read.checkpoints
    return replace(read, jobs=jobs, observed_wait_s=waits,
                   checkpoints=known.of(jobs.job_id) if known is not None else None)  # fmt: skip


def _communicating(read: JobsRead, known: Measured, network: Policy) -> JobsRead:
    jobs = read.jobs
    ids = [str(name) for name in jobs.job_id]
    own = [known.milli(job_id) for job_id in ids]
    run = jobs.run
    if network.topology.slowdown:
        fractions = comm_of(own, jobs.gpus.tolist(), network.topology.comm_milli)
        best = [
            known.on_the_best(job_id, seconds, milli)
            for job_id, seconds, (milli, _) in zip(ids, run.tolist(), fractions, strict=True)
        ]
        run = np.array(best, np.int64)
    return replace(
        read,
        jobs=jobs.changed(comm_milli=np.array(own, np.int64), run=run),
        remarks=(*read.remarks, *known.remarks()),
        communication=known,
    )


def _jobs(table: pa.Table, origin: int) -> JobsRead:
    run = _ints(table, "run", -1)
    gpus, cpus = _ints(table, "gpus"), _ints(table, "cpus")
    never, instant = run < 0, run == 0
    empty = (gpus <= 0) & (cpus <= 0) & (run > 0)
    dropped = {
        "never ran: no run time is known": int(never.sum()),
        "run time of 0 or less": int(instant.sum()),
        "holds no GPU and no CPU": int(empty.sum()),
    }
    kept = table.filter(pa.array(~(never | instant | empty)))
    if kept.num_rows == 0:
        raise ReaderError("no job of the window can be replayed: none of them ran")
    jobs = Jobs.build(**_columns(kept, origin))
    remarks = _remarks(kept, jobs)
    waits = _ints(kept, "start") - _ints(kept, "submit")
    return JobsRead(
        jobs=jobs,
        format="store",
        kept=len(jobs),
        dropped={reason: count for reason, count in dropped.items() if count},
        remarks=remarks,
        capacity=None,
        observed_wait_s=waits,
    )


def _columns(table: pa.Table, origin: int) -> dict[str, Any]:
    run = _ints(table, "run")
    gpus, milli = _ints(table, "gpus"), _ints(table, "milli")
    tasks, each, rest = _shape(table, gpus)
    parts = np.maximum(tasks + (rest > 0), 1)
    limit = np.where(pc.is_valid(table.column("limit")).to_numpy(), _ints(table, "limit"), run)
    return {
        "job_id": table.column("job_id").to_pylist(),
        "submit": _ints(table, "submit") - origin,
        "eligible": _ints(table, "eligible") - origin,
        "run": run,
        "limit": limit,
        "gpus": gpus,
        "tasks": tasks,
        "gpus_per_task": each,
        "rest_gpus": rest,
        "gpu_milli": np.where((gpus == 1) & (milli > 0), milli, 0),
        "cpu_milli": -(-_ints(table, "cpus") * 1000 // parts),
        "mem_mib": -(-_ints(table, "mem_mib") // parts),
        "priority": _ints(table, "priority"),
        "team": _texts(table, "account"),
        "account": _texts(table, "account"),
        "user": _texts(table, "user_name"),
        "qos": _texts(table, "qos"),
        "partitions": [text.replace(",", "|") for text in _texts(table, "partition")],
        "gpu_models": _texts(table, "gpu_model"),
        "topology": _texts(table, "topology"),
    }


def _shape(table: pa.Table, gpus: Ints) -> tuple[Ints, Ints, Ints]:
    """One task for each node held, where all held the same or one held less; else left open."""
    nodes, most, least = (_ints(table, name) for name in ("nodes", "most", "least"))
    uneven = (nodes > 0) & (most * (nodes - 1) + least == gpus) & (least < most)
    even = (nodes > 0) & (most * nodes == gpus)
    none = gpus == 0
    tasks = np.where(even, nodes, np.where(uneven, nodes - 1, np.where(none, 1, 0)))
    each = np.where(even | uneven, most, 0)
    return tasks, each, np.where(uneven, least, 0)


def _remarks(table: pa.Table, jobs: Jobs) -> tuple[str, ...]:
    still = int(pc.sum(table.column("open")).as_py() or 0)
    again = int((_ints(table, "attempts") > 1).sum())
    told = (
        (jobs.raised_limits, "limits lay below the run time and were raised to it"),
        (still, "jobs were still running: their run time so far counts"),
        (again, "jobs ran more than once: the run time of the last run counts"),
    )
    return tuple(f"{count:,} {what}" for count, what in told if count)


def _cluster(facts: Facts, cluster: str, since: datetime, until: datetime, origin: int) -> Cluster:
    table = facts.query(_NODES, (cluster, until, until))
    if table.num_rows == 0:
        raise ReaderError(f"the store knows no nodes of cluster {cluster} at {until:%Y-%m-%d} UTC")
    nodes = table.to_pylist()
    states = facts.query(_STATES, (cluster, until, since)).to_pylist()
    names = {node["node"] for node in nodes}
    members: dict[str, list[str]] = {}
    for node in nodes:
        for partition in node["partitions"] or ():
            members.setdefault(partition, []).append(node["node"])
    return Cluster.build(
        gpus=[node["gpus"] for node in nodes],
        names=[node["node"] for node in nodes],
        cpu_milli=[_amount(node["cpus"], 1000) for node in nodes],
        mem_mib=[_amount(node["mem_mib"], 1) for node in nodes],
        gpu_model=[node["gpu_model"] for node in nodes],
        leaf=[node["leaf"] for node in nodes],
        spine=[node["spine"] for node in nodes],
        rack=[node["rack"] for node in nodes],
        features=[frozenset(node["features"] or ()) for node in nodes],
        partitions=tuple(Partition(name, tuple(held)) for name, held in sorted(members.items())),
        outages=tuple(_outage(row, origin) for row in states if row["node"] in names),
    )


def _outage(row: dict[str, Any], origin: int) -> Outage:
    kind = OutageKind.FAIL if row["state"] in _FAILURES else OutageKind.DRAIN
    until = None if row["until"] is None else row["until"] - origin
    return Outage(row["node"], max(0, row["since"] - origin), until, kind)


def _amount(value: int | None, unit: int) -> int:
    return UNLIMITED if value is None else value * unit


def _ints(table: pa.Table, name: str, default: int = 0) -> Ints:
    values: Ints = pc.fill_null(table.column(name), default).to_numpy().astype(np.int64)
    return values


def _texts(table: pa.Table, name: str) -> list[str]:
    texts: list[str] = pc.fill_null(table.column(name), "").to_pylist()
    return texts
