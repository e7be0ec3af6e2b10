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
from analytics.ledger import pendingqueries as sql
from analytics.ledger.facts import Facts
from analytics.ledger.fleet import Fleet
from analytics.ledger.kernel import state as k
from analytics.ledger.naturalorder import natural_order
from analytics.window import from_us
from collector.store import Work

LEVELS = ("leaf", "rack", "spine")
_NO_PRIORITY = -(2**62)
_LIMITS = ("QOS", "Assoc", "License", "JobArrayTaskLimit", "MaxGRES", "Quota", "Limit")
_NOT_ELIGIBLE = ("JobHeld", "BeginTime", "Dependency", "Held")

_WISH = (
    "partition", "gpus", "nodes", "model", "cpus", "mem_mib", "topology", "partitions", "limit_s",
)  # fmt: skip
"""The last columns of a row."""

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
    events: k.Array
    """Rows of instant, kind, job, value."""


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
    facts_as = sql.FOLDED if work.value(sql.TOLD_TWICE, params[:2]) else sql.AS_TOLD
    columns = [column.to_pylist() for column in work.query(facts_as + sql.WAITING, params).columns]
    found = [
        Waiting(run_id, job_id, dict(zip(_WISH, wish, strict=True)), [(t0, t1)])
        for run_id, job_id, t0, t1, *wish in zip(*columns, strict=True)
    ]
    earliest = from_us(since - _LOOK_BACK_US)
    snapshots = work.rows(sql.SNAPSHOTS, [facts.cluster, from_us(facts.until), earliest])
    if snapshots:
        _add_snapshots(found, snapshots)
    found = [w for w in found if w.spans and _lasts(w.spans)]
    natural = natural_order([w.job_id for w in found])
    found.sort(key=lambda w: (natural(w.job_id), w.spans[0][0], w.run_id or ""))
    return _arrays(found, fleet, names)


def _lasts(spans: list[tuple[int, int]]) -> bool:
    t0, t1 = spans[0]
    return t0 < t1 or any(t0 < t1 for t0, t1 in spans)


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
    numbers: list[int] = []
    known: dict[tuple[Any, ...], int] = {}
    widest = max((n for line in fleet.installed for _, _, n in line), default=1)
    for waiting in found:
        wish = waiting.wish
        partitions = tuple(wish["partitions"] or ([wish["partition"]] if wish["partition"] else []))
        alike = (_SHAPED(wish), wish.get("gpus_per_node"), partitions)
        if alike not in known:
            group = (wish["model"], partitions)
            if group not in groups:
                groups[group] = len(groups)
                masks.append(_mask(fleet, names, wish["model"], partitions))
            shape = tuple(_shape(wish, widest, groups[group]))
            known[alike] = shapes.setdefault(shape, len(shapes))
        numbers.append(known[alike])
    return PendingJobs(
        run_ids=[w.run_id for w in found],
        jobs=_table(found, list(shapes), numbers),
        allowed=np.array(masks or [[1] * len(fleet.pools)], np.int64),
        events=_events(found),
    )


def _table(found: list[Waiting], shapes: list[tuple[int, ...]], numbers: list[int]) -> k.Array:
    """The sweep's table of jobs; ``numbers`` = the shape of each."""
    table = np.zeros((k.JOB_ROWS, len(found)), np.int64)
    if found:
        table[: k.J_ELIGIBLE] = np.array(shapes, np.int64).T[:, numbers]
    table[k.J_ELIGIBLE] = [w.spans[0][0] for w in found]
    table[k.J_LIMIT_US] = [w.wish["limit_s"] or 0 for w in found]
    table[k.J_LIMIT_US] *= 1_000_000
    table[k.J_PRIORITY], table[k.J_FIT_PASS], table[k.J_PLACEABLE] = _NO_PRIORITY, -2, -1
    table[k.J_SHAPE] = numbers
    return table


def _events(found: list[Waiting]) -> k.Array:
    """Rows of instant, kind, job, value: job by job, as they come and go and as listings show
    them."""
    if not any(w.seen or len(w.spans) > 1 for w in found):
        rows = np.empty((2 * len(found), 4), np.int64)
        rows[:, 0] = np.array([w.spans[0] for w in found], np.int64).reshape(-1)
        rows[:, 1], rows[:, 2] = k.PENDING, np.repeat(np.arange(len(found)), 2)
        rows[::2, 3], rows[1::2, 3] = 1, -1
        return rows
    events: list[tuple[int, int, int, int]] = []
    for j, waiting in enumerate(found):
        for t0, t1 in waiting.spans:
            events += [(t0, k.PENDING, j, 1), (t1, k.PENDING, j, -1)]
        for row in waiting.seen:
            limited = (row["reason"] or "").startswith(_LIMITS)
            events.append((row["t"], k.LIMITED, j, int(limited)))
            if row["priority"] is not None:
                events.append((row["t"], k.PRIORITY, j, row["priority"]))
    return np.array(events, np.int64).reshape(-1, 4)


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
