"""Fragmentation F of every node, hour by hour: free GPUs that a typical job could not use.

Beside the ledger, never a part of it; `analytics.fragmentation` has the formula.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analytics.fragmentation import WHOLE, Distribution, Machine, Task, fragmentation
from analytics.gpu_models import ModelNames
from analytics.ledger.broken import Breakage
from analytics.ledger.frame import Frame
from analytics.ledger.freestates import UNKNOWN_CPU, closed, free_states, shared_pools
from analytics.ledger.held import Piece
from analytics.ledger.host import HostShares
from analytics.ledger.kernel.state import Array
from analytics.ledger.slices import cut
from analytics.ledger.tasks import tasks_table
from analytics.window import HOUR_US, from_us


@dataclass(slots=True)
class Fragments:
    """Rows of ``fragmentation_hour`` and of ``task_distribution``."""

    hours: pa.Table
    tasks: pa.Table


def fragments(
    frame: Frame,
    host: HostShares,
    loose: list[Breakage],
    known: dict[datetime, Distribution],
    names: ModelNames,
) -> Fragments:
    """F of the frame's hours; ``known`` = the distribution of each of its days."""
    since, until = int(frame.bounds[0]), int(frame.bounds[-1])
    pool, t0, t1, idle, cpu = free_states(frame, host, loose, since, until)
    edges = np.array(sorted({since, until, *range(-(-since // HOUR_US) * HOUR_US, until, HOUR_US)}))
    which, slot, begin, end = cut(t0, t1, edges)
    days = [from_us(int(t)).replace(hour=0, minute=0, second=0, microsecond=0) for t in edges[:-1]]
    found: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    node_of = np.array(frame.fleet.node_of, np.int64)
    some = known and any(distribution.tasks for distribution in known.values())
    unusable = _Unusable(frame, (pool, idle, cpu), known, names)
    for nth, day in enumerate(days) if some else ():
        mine = np.flatnonzero(slot == nth)
        rows = which[mine]
        lost = unusable.of(rows, day)
        dt = (end - begin)[mine]
        for column, amount in enumerate((idle[rows] * dt, lost * dt)):
            sums = np.bincount(node_of[pool[rows]], amount, minlength=len(frame.fleet.nodes))
            for node in np.flatnonzero(sums).tolist():
                found[nth, node][column] += float(sums[node])
    for nth, node, free, lost_us in _shared(frame, host, edges, known, names) if some else ():
        found[nth, node][0] += free
        found[nth, node][1] += lost_us
    return Fragments(_hours(frame, found, edges, days, known), tasks_table(known))


class _Unusable:
    """GPUs of pools that a task of a day cannot use, in the mean; pools alike are asked for
    once."""

    def __init__(
        self, frame: Frame, states: tuple[Array, Array, Array], known: dict[datetime, Distribution],
        names: ModelNames,
    ) -> None:  # fmt: skip
        """``states``: pool, whole GPUs that are free, and free CPU."""
        pool, idle, cpu = states
        self._models = sorted({model for _, model in frame.fleet.pools})
        rank = {model: place for place, model in enumerate(self._models)}
        model_of = np.array([rank[model] for _, model in frame.fleet.pools], np.int64)
        self._width, self._most = int(cpu.max(initial=0)) + 1, int(idle.max(initial=0)) + 1
        key = (model_of[pool] * self._most + idle) * self._width + cpu if pool.size else pool
        self._unique, self._of = np.unique(key, return_inverse=True)
        self._known, self._names = known, names
        self._tasks: dict[tuple[int, datetime], Distribution] = {}
        self._found: dict[datetime, Array] = {}

    def of(self, rows: Array, day: datetime) -> Array:
        """Per row of the states."""
        found = self._found.setdefault(day, np.full(self._unique.shape[0], np.nan))
        kinds = self._of[rows]
        for kind in np.unique(kinds[np.isnan(found[kinds])]).tolist():
            found[kind] = self._one(int(self._unique[kind]), day)
        return found[kinds]

    def _one(self, key: int, day: datetime) -> float:
        model, idle = divmod(key // self._width, self._most)
        if (model, day) not in self._tasks:
            name = self._models[model]
            self._tasks[model, day] = _named(name, self._known[day], self._names)
        machine = Machine(self._models[model], key % self._width, (WHOLE,) * idle)
        return float(fragmentation(machine, self._tasks[model, day])) / WHOLE


def _named(model: str, distribution: Distribution, names: ModelNames) -> Distribution:
    """The tasks with this machine's own name for its model where they mean it."""
    mine = set(names.candidates(model))
    return Distribution(
        tuple(
            (
                task if not task.models else Task(
                    task.cpu_milli, task.gpus, task.gpu_milli,
                    (model,) if any(mine & set(names.candidates(m)) for m in task.models)
                    else task.models,
                ),
                count,
            )
            for task, count in distribution.tasks
        )
    )  # fmt: skip


def _shared(
    frame: Frame, host: HostShares, edges: Array, known: dict[datetime, Distribution],
    names: ModelNames,
) -> list[tuple[int, int, float, float]]:  # fmt: skip
    """(slot, node, free us, fragmented us) of pools with GPUs held in parts, instant by instant."""
    result = []
    shut = closed(frame, int(edges[0]), int(edges[-1]))
    for pool in sorted(shared_pools(frame)):
        node = frame.fleet.node_of[pool]
        name, model = frame.fleet.pools[pool]
        mine = [p for p in frame.held.pieces if p.pool == pool]
        out = [(t0, t1) for t0, t1, of in shut if of in (None, name)]
        here = np.flatnonzero(host.node == node).tolist()
        cuts = {*edges.tolist(), *(t for span in out for t in span)}
        cuts |= {t for p in mine for t in (p.t0, p.t1)}
        cuts |= {int(t) for h in here for t in (host.t0[h], host.t1[h])}
        cuts |= {t for row in frame.fleet.installed[pool] for t in row[:2]}
        times = [t for t in sorted(cuts) if edges[0] <= t <= edges[-1]]
        for t0, t1 in pairwise(times):
            if any(a <= t0 < b for a, b in out):
                continue
            slot = int(np.searchsorted(edges, t0, "right")) - 1
            day = from_us(t0).replace(hour=0, minute=0, second=0, microsecond=0)
            used = sum(int(host.cpus[h]) for h in here if host.t0[h] <= t0 < host.t1[h])
            row = [r for r in frame.fleet.inventory[pool] if r.t0 <= t0][-1:]
            total = UNKNOWN_CPU if not row or row[0].cpus is None else row[0].cpus * 1000
            idle = _idle(frame, pool, mine, t0)
            machine = Machine(model, max(total - 1000 * used, 0), idle)
            lost = fragmentation(machine, _named(model, known[day], names))
            free = float(sum(idle)) / WHOLE * (t1 - t0)
            result.append((slot, node, free, float(lost) / WHOLE * (t1 - t0)))
    return result


def _idle(frame: Frame, pool: int, pieces: list[Piece], t: int) -> tuple[int, ...]:
    """Thousandths of each GPU of the pool that are free at ``t``."""
    installed = sum(n for t0, t1, n in frame.fleet.installed[pool] if t0 <= t < t1)
    boards: dict[str, int] = defaultdict(int)
    for p in pieces:
        if p.t0 <= t < p.t1:
            if p.gpu is None:
                installed -= p.units // frame.held.per_gpu
            else:
                boards[p.gpu] += p.units
    parts = [WHOLE - units * WHOLE // frame.held.per_gpu for units in boards.values()]
    return (*parts, *(WHOLE,) * max(installed - len(boards), 0))


def _hours(
    frame: Frame, found: dict[tuple[int, int], list[float]], edges: Array, days: list[datetime],
    known: dict[datetime, Distribution],
) -> pa.Table:  # fmt: skip
    keys = sorted(found)
    rack = {row.node: row.rack for row in frame.facts.pools}
    nodes = [frame.fleet.nodes[node] for _, node in keys]
    version = {day: distribution.version for day, distribution in known.items()}
    text = pa.string()
    return pa.table(
        {
            "cluster": pa.array([frame.facts.cluster] * len(keys), text),
            "hour": pa.array(
                [int(edges[slot]) // HOUR_US * HOUR_US for slot, _ in keys], pa.timestamp("us")
            ),
            "node": pa.array(nodes, text),
            "rack": pa.array([rack.get(node) for node in nodes], text),
            "distribution": pa.array([version[days[slot]] for slot, _ in keys], text),
            "free_us": pa.array([round(found[key][0]) for key in keys], pa.int64()),
            "fragmented_us": pa.array([round(found[key][1]) for key in keys], pa.int64()),
        }
    )
