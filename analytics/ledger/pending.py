"""The queue as facts tell it: who waited from when to when, in which order, for what shape."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from analytics.gpu_models import ModelNames
from analytics.ledger.facts import Facts
from analytics.ledger.fleet import Fleet
from analytics.ledger.kernel import state as k
from analytics.window import from_us
from collector.store import Work

LEVELS = ("leaf", "rack", "spine")
_NO_PRIORITY = -(2**62)
_LIMITS = ("QOS", "Assoc", "License", "JobArrayTaskLimit", "MaxGRES", "Quota", "Limit")
_NOT_ELIGIBLE = ("JobHeld", "BeginTime", "Dependency", "Held")

_WAITING = """
WITH run AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY start_at IS NULL,
      end_at IS NULL, coalesce(end_at, last_known_at) DESC NULLS LAST, state, source) AS nth
    FROM job_run WHERE cluster = $1 AND coalesce(eligible_at, submit_at) < $2) WHERE nth = 1),
wish AS (
  SELECT job_id, max(req_nodes) AS nodes, max(req_gpus) AS gpus, max(req_gpu_model) AS model,
    max(req_cpus) AS cpus, max(req_mem_mib) AS mem_mib, max(topology) AS topology,
    max(partitions) AS partitions, max(limit_s) AS limit_s
  FROM job WHERE cluster = $1 GROUP BY job_id),
waiting AS (
  SELECT run.*, coalesce(eligible_at, submit_at) AS since, coalesce(start_at, end_at, last_known_at,
    (SELECT max(until) FROM fact_window WHERE cluster = $1 AND kind = 'scheduler')) AS until FROM
    run)
SELECT run_id, job_id, epoch_us(since) AS t0, epoch_us(until) AS t1, partition,
  coalesce(wish.gpus, w.gpus) AS gpus, coalesce(wish.nodes, w.nodes) AS nodes, wish.model,
  coalesce(wish.cpus, w.cpus) AS cpus, coalesce(wish.mem_mib, w.mem_mib) AS mem_mib,
  wish.topology, wish.partitions, coalesce(wish.limit_s, w.limit_s) AS limit_s
FROM waiting w LEFT JOIN wish USING (job_id)
WHERE until > $3 AND since < until AND coalesce(wish.gpus, w.gpus) > 0"""

_WISH = (
    "partition", "gpus", "nodes", "model", "cpus", "mem_mib", "topology", "partitions", "limit_s",
)  # fmt: skip
"""The last columns of a row."""

_SNAPSHOTS = """
SELECT DISTINCT epoch_us(ts) AS t, job_id, priority, reason, partition, nodes, gpus, gpus_per_node,
  gpu_model, cpus, mem_mib, limit_s, topology
FROM queue_snapshot WHERE cluster = ? AND ts < ? AND ts > ? ORDER BY t, job_id"""
_LOOK_BACK_US = 3_600_000_000
_TICK_US = 60_000_000


@dataclass(slots=True)
class PendingJobs:
    """Jobs that wait at some time of the window, in the order of their names, with their events.

    ``allowed[group, pool]``: which pools a job of the group may use.
    """

    run_ids: list[str | None]
    jobs: k.Array
    allowed: k.Array
    events: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Instant, kind, job, value."""


@dataclass(slots=True)
class Waiting:
    """One pending run (run None: only snapshots show it), its wish, and when it is in the queue."""

    run_id: str | None
    job_id: str
    wish: dict[str, Any]
    spans: list[tuple[int, int]]
    seen: list[dict[str, Any]] = field(default_factory=list)


def load_pending(
    work: Work, facts: Facts, fleet: Fleet, since: int, names: ModelNames
) -> PendingJobs:
    """Everything that waited for GPUs over ``[since, facts.until)``."""
    params = [facts.cluster, from_us(facts.until), from_us(since)]
    # Column by column: as rows of dicts, the queue of a day took a twentieth of its build.
    columns = [column.to_pylist() for column in work.query(_WAITING, params).columns]
    found = [
        Waiting(run_id, job_id, dict(zip(_WISH, wish, strict=True)), [(t0, t1)])
        for run_id, job_id, t0, t1, *wish in zip(*columns, strict=True)
    ]
    earliest = from_us(since - _LOOK_BACK_US)
    snapshots = work.rows(_SNAPSHOTS, [facts.cluster, from_us(facts.until), earliest])
    if snapshots:
        _add_snapshots(found, snapshots)
    found = [w for w in found if w.spans and _lasts(w.spans)]
    found.sort(key=lambda w: (_natural(w.job_id), w.spans[0][0], w.run_id or ""))
    return _arrays(found, fleet, names)


def _lasts(spans: list[tuple[int, int]]) -> bool:
    t0, t1 = spans[0]
    return t0 < t1 or any(t0 < t1 for t0, t1 in spans)


_PARTS = re.compile(r"\d+|\D+").findall
_PLAIN = re.compile(r"(\D*)(\d+)").fullmatch


def _natural(name: str) -> tuple[int | str, ...]:
    """4002_7 before 4002_10: numbers in a name count as numbers. Three places for each part."""
    if name.isdecimal():
        return 0, int(name), ""
    plain = _PLAIN(name)
    if plain is not None:
        text, number = plain.groups()
        return (1, 0, text, 0, int(number), "") if text else (0, int(number), "")
    found: list[int | str] = []
    for part in _PARTS(name):
        found += (0, int(part), "") if part.isdigit() else (1, 0, part)
    return tuple(found)


def _add_snapshots(found: list[Waiting], snapshots: list[dict[str, Any]]) -> None:
    """What only the scheduler's own listing knows: priority, reason, and jobs without a record."""
    ticks = sorted({row["t"] for row in snapshots})
    after = dict(pairwise([*ticks, *(t + _TICK_US for t in ticks[-1:])]))
    by_job: dict[str, list[Waiting]] = defaultdict(list)
    for waiting in found:
        by_job[waiting.job_id].append(waiting)
    for row in snapshots:
        known = by_job[row["job_id"]]
        if not known and (row["gpus"] or 0) > 0:
            wish = {**row, "model": row["gpu_model"], "partitions": None, "t0": row["t"]}
            known.append(Waiting(None, row["job_id"], wish, []))
            found.extend(known)
        for waiting in (w for w in known if _shown(w, row["t"])):
            waiting.seen.append(row)
            if waiting.run_id is None:
                _extend(waiting.spans, row["t"], after[row["t"]])
            if row["gpus_per_node"]:
                waiting.wish["gpus_per_node"] = row["gpus_per_node"]
    for waiting in found:
        waiting.spans = _without_holds(waiting, after)


def _shown(waiting: Waiting, t: int) -> bool:
    """Whether a listing at ``t`` can mean this run."""
    return waiting.run_id is None or any(t0 <= t < t1 for t0, t1 in waiting.spans)


def _extend(spans: list[tuple[int, int]], t0: int, t1: int) -> None:
    if spans and spans[-1][1] >= t0:
        spans[-1] = (spans[-1][0], t1)
    else:
        spans.append((t0, t1))


def _without_holds(waiting: Waiting, after: dict[int, int]) -> list[tuple[int, int]]:
    """A job that its user or a dependency holds back is not in the queue."""
    spans = waiting.spans
    for row in waiting.seen:
        if (row["reason"] or "").startswith(_NOT_ELIGIBLE):
            t0, t1 = row["t"], after[row["t"]]
            cut = [((a, min(b, t0)), (max(a, t1), b)) for a, b in spans]
            spans = [(a, b) for pair in cut for a, b in pair if a < b]
    return spans


_SHAPED = itemgetter("model", "gpus", "nodes", "cpus", "mem_mib", "topology")


def _arrays(found: list[Waiting], fleet: Fleet, names: ModelNames) -> PendingJobs:
    groups: dict[tuple[Any, ...], int] = {}
    shapes: dict[tuple[int, ...], int] = {}
    masks: list[list[int]] = []
    columns: list[list[int]] = []
    events: list[tuple[int, int, int, int]] = []
    known: dict[tuple[Any, ...], tuple[list[int], int]] = {}
    widest = max((n for line in fleet.installed for _, _, n in line), default=1)
    for j, waiting in enumerate(found):
        wish = waiting.wish
        partitions = tuple(wish["partitions"] or ([wish["partition"]] if wish["partition"] else []))
        alike = (_SHAPED(wish), wish.get("gpus_per_node"), partitions)
        if alike not in known:
            group = (wish["model"], partitions)
            if group not in groups:
                groups[group] = len(groups)
                masks.append(_mask(fleet, names, wish["model"], partitions))
            shape = _shape(wish, widest, groups[group])
            known[alike] = (shape, shapes.setdefault(tuple(shape), len(shapes)))
        shape, number = known[alike]
        limit = (wish["limit_s"] or 0) * 1_000_000
        state = [waiting.spans[0][0], _NO_PRIORITY, 0, limit, 0, -2, -1, number]
        columns.append([*shape, *state])
        for t0, t1 in waiting.spans:
            events += [(t0, k.PENDING, j, 1), (t1, k.PENDING, j, -1)]
        for row in waiting.seen:
            limited = (row["reason"] or "").startswith(_LIMITS)
            events.append((row["t"], k.LIMITED, j, int(limited)))
            if row["priority"] is not None:
                events.append((row["t"], k.PRIORITY, j, row["priority"]))
    table = np.ascontiguousarray(np.array(columns, np.int64).reshape(-1, k.JOB_ROWS).T)
    return PendingJobs(
        run_ids=[w.run_id for w in found],
        jobs=table,
        allowed=np.array(masks or [[1] * len(fleet.pools)], np.int64),
        events=events,
    )


def _mask(
    fleet: Fleet, names: ModelNames, model: str | None, partitions: Iterable[str]
) -> list[int]:
    """Which pools a job with this model and these partitions may use; what is not known allows."""
    wanted = set(partitions)
    aliases = {name for one in re.split(r"[|,]", model or "") for name in names.candidates(one)}
    mask = []
    for (_, pool_model), rows in zip(fleet.pools, fleet.inventory, strict=True):
        there = {name for row in rows for name in row.partitions}
        fits_model = not aliases or bool(aliases & set(names.candidates(pool_model)))
        mask.append(int(fits_model and (not wanted or not there or bool(wanted & there))))
    return mask


def _shape(wish: dict[str, Any], widest: int, group: int) -> list[int]:
    """The first rows of the sweep's table of jobs: nodes x GPUs per node, host resources per full
    node."""
    gpus = int(wish["gpus"])
    per_node = wish.get("gpus_per_node")
    if not per_node:
        nodes = wish["nodes"] or -(-gpus // widest)
        per_node = widest if gpus > widest and not wish["nodes"] else -(-gpus // nodes)
    full = gpus // per_node
    cpu = -(-(wish["cpus"] or 0) * 1000 * per_node // gpus)
    mem = -(-(wish["mem_mib"] or 0) * per_node // gpus)
    topology = (wish["topology"] or "").lower()
    level = next((i for i, name in enumerate(LEVELS) if topology.startswith(name)), -1)
    if topology.startswith("switch"):
        level = 0
    rest = gpus - full * per_node
    return [gpus, per_node, full, rest, cpu, mem, level, group]
