"""Which nodes the jobs of a trace held, where the file says when but not where.

A modelled answer by one stated rule, so that held and stranded GPU-hours can be told per node.
Events are taken in the order of time, ends before starts, then in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collector.traces.inventory import NodeSpec
from collector.traces.trace import Trace

RULE = (
    "where the file names no node: the fullest node that still fits, lowest name on ties; CPU-only "
    "jobs on the node with the fewest GPUs; wider jobs fill the emptiest nodes first"
)
_UNLIMITED = 2**50
_MILLI = 1000

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Held:
    """What one job holds on one node: whole GPUs by index, or ``milli`` thousandths of one."""

    job: int
    node: int
    gpus: tuple[int, ...]
    milli: int
    cpu_milli: int | None
    mem_mib: int | None


@dataclass(slots=True)
class Placements:
    """All holdings, and jobs that got none: there was no room, or more than the nodes had."""

    held: list[Held] = field(default_factory=list)
    without_room: list[int] = field(default_factory=list)
    over_cpu_or_memory: int = 0


@dataclass(frozen=True, slots=True)
class _Need:
    """A job's needs: GPUs in all, thousandths of each, CPU and memory in all."""

    gpus: int
    milli: int
    cpu: int
    mem: int
    models: frozenset[str]
    nodes: tuple[str, ...] | None


def place(trace: Trace, nodes: Sequence[NodeSpec]) -> Placements:
    """Where every started job of ``trace`` ran on ``nodes``; jobs that held nothing are skipped."""
    fleet = _Fleet(nodes)
    needs = _needs(trace)
    start, end = trace.column("start_s"), trace.column("end_s")
    found = Placements()
    holding: dict[int, list[Held]] = {}
    for _, kind, job in _events(start, end):
        if kind == 0:
            for held in holding.pop(job, ()):
                fleet.change(held, 1)
            continue
        taken, within = fleet.place(job, needs[job])
        if not taken:
            found.without_room.append(job)
            continue
        found.over_cpu_or_memory += not within
        for held in taken:
            fleet.change(held, -1)
        holding[job] = taken
        found.held += taken
    return found


def _events(start: Sequence[int | None], end: Sequence[int | None]) -> list[tuple[int, int, int]]:
    events = []
    for job, (since, until) in enumerate(zip(start, end, strict=True)):
        if since is None or (until is not None and until <= since):
            continue
        events.append((since, 1, job))
        if until is not None:
            events.append((until, 0, job))
    return sorted(events)


def _needs(trace: Trace) -> list[_Need]:
    names = ("gpus", "gpu_milli", "tasks", "cpu_milli", "mem_mib", "gpu_models", "node_names")
    return [
        _Need(
            gpus,
            milli or _MILLI,
            (cpu or 0) * (tasks or 1),
            (mem or 0) * (tasks or 1),
            frozenset(filter(None, (models or "").split("|"))),
            tuple(named) if named else None,
        )
        for gpus, milli, tasks, cpu, mem, models, named in zip(
            *map(trace.column, names), strict=True
        )
    ]


class _Fleet:
    """What is free on each node, rows by name. CPU and memory may go below 0: the past is a fact
    and the rule for where a job ran is ours."""

    def __init__(self, nodes: Sequence[NodeSpec]) -> None:
        self.order = sorted(range(len(nodes)), key=lambda i: nodes[i].name)
        ordered = [nodes[i] for i in self.order]
        self.row = {node.name: i for i, node in enumerate(ordered)}
        self.gpus = np.array([node.gpus for node in ordered], dtype=np.int64)
        self.cpu = _known(node.cpu_milli for node in ordered)
        self.mem = _known(node.mem_mib for node in ordered)
        width = max(1, int(self.gpus.max()))
        self.free = np.where(np.arange(width) < self.gpus[:, None], _MILLI, 0)
        self.whole = self.gpus.copy()
        models = np.array([node.gpu_model or "" for node in ordered])
        self.has = {model: models == model for model in set(models.tolist())}

    def place(self, job: int, need: _Need) -> tuple[list[Held], bool]:
        """The job's holdings, empty if there is no room, and whether CPU and memory sufficed."""
        if need.nodes is not None:
            return self._named(job, need), True
        allowed = self._allowed(need.models)
        roomy = allowed & (self.cpu >= need.cpu) & (self.mem >= need.mem)
        for able in (roomy, allowed):
            if need.gpus == 0:
                taken = self._without_gpu(job, need, able)
            elif need.milli < _MILLI:
                taken = self._shared(job, need, able)
            else:
                taken = self._on_one(job, need, able)
            if taken:
                return taken, able is roomy
        return self._over_many(job, need, allowed), True

    def change(self, held: Held, sign: int) -> None:
        """Give back (1) or take (-1) what is held."""
        self.cpu[held.node] += sign * (held.cpu_milli or 0)
        self.mem[held.node] += sign * (held.mem_mib or 0)
        row = self.free[held.node]
        for gpu in held.gpus:
            before = row[gpu]
            after = before + sign * held.milli
            row[gpu] = after
            self.whole[held.node] += int(after == _MILLI) - int(before == _MILLI)

    def _allowed(self, models: frozenset[str]) -> NDArray[np.bool_]:
        if not models:
            return np.ones(len(self.gpus), dtype=bool)
        allowed = np.zeros(len(self.gpus), dtype=bool)
        for model in models & self.has.keys():
            allowed |= self.has[model]
        return allowed

    def _without_gpu(self, job: int, need: _Need, able: NDArray[np.bool_]) -> list[Held]:
        rows = np.flatnonzero(able)
        if not len(rows):
            return []
        row = int(rows[np.lexsort((rows, self.cpu[rows], self.gpus[rows]))[0]])
        return [Held(job, row, (), 0, need.cpu, need.mem)]

    def _shared(self, job: int, need: _Need, able: NDArray[np.bool_]) -> list[Held]:
        fits = able[:, None] & (self.free >= need.milli)
        if not fits.any():
            return []
        left = np.where(fits, self.free, _MILLI + 1)
        row, gpu = np.unravel_index(int(left.argmin()), left.shape)
        return [Held(job, int(row), (int(gpu),), need.milli, need.cpu, need.mem)]

    def _on_one(self, job: int, need: _Need, able: NDArray[np.bool_]) -> list[Held]:
        rows = np.flatnonzero(able & (self.whole >= need.gpus))
        if not len(rows):
            return []
        row = int(rows[self.whole[rows].argmin()])
        return [Held(job, row, self._idle(row, need.gpus), _MILLI, need.cpu, need.mem)]

    def _over_many(self, job: int, need: _Need, able: NDArray[np.bool_]) -> list[Held]:
        rows = np.flatnonzero(able & (self.whole > 0))
        rows = rows[np.argsort(-self.whole[rows], kind="stable")]
        counts: dict[int, int] = {}
        left = need.gpus if need.milli == _MILLI else 0
        for row in rows.tolist():
            if left <= 0:
                break
            counts[row] = min(left, int(self.whole[row]))
            left -= counts[row]
        return self._spread(job, need, counts) if left == 0 else []

    def _named(self, job: int, need: _Need) -> list[Held]:
        counts: dict[int, int] = {}
        for name in need.nodes or ():
            row = self.row.get(name)
            if row is None:
                return []
            counts[row] = counts.get(row, 0) + 1
        if need.milli < _MILLI:
            only = np.zeros(len(self.gpus), dtype=bool)
            only[list(counts)] = True
            return self._shared(job, need, only)
        enough = all(self.whole[row] >= count for row, count in counts.items())
        return self._spread(job, need, counts) if enough else []

    def _spread(self, job: int, need: _Need, counts: dict[int, int]) -> list[Held]:
        """CPU and memory go with the GPUs, the remainder to the first nodes."""
        held, done = [], 0
        for row, count in counts.items():
            cpu, mem = (
                (done + count) * amount // need.gpus - done * amount // need.gpus
                for amount in (need.cpu, need.mem)
            )
            held.append(Held(job, row, self._idle(row, count), _MILLI, cpu, mem))
            done += count
        return held

    def _idle(self, row: int, count: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.free[row] == _MILLI)[:count].tolist())


def _known(values: Iterable[int | None]) -> Ints:
    return np.array([_UNLIMITED if v is None else v for v in values], dtype=np.int64)
