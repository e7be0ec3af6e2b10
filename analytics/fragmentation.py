"""Fragmentation F of Weng et al. (FGD, USENIX ATC'23): idle GPU that a random task could not use.

An indicator beside the ledger, never a part of it: it always names the task distribution it is
measured against. Amounts are thousandths of a GPU.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

COVERED = Fraction(95, 100)
"""Typical tasks: the most frequent ones until this share of all tasks is covered."""
WHOLE = 1000


@dataclass(frozen=True, slots=True, order=True)
class Task:
    """A shape: CPU in thousandths, ``gpus`` GPUs of ``gpu_milli`` each; no models = any model."""

    cpu_milli: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """What is free on a node: CPU in thousandths, and thousandths of each GPU."""

    model: str
    cpu_milli: int
    idle_milli: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Typical tasks with their counts; popularity = count / total."""

    tasks: tuple[tuple[Task, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.tasks)

    @property
    def version(self) -> str:
        """A hash to print beside every F."""
        return hashlib.sha256(repr(self.tasks).encode()).hexdigest()[:12]


def typical(tasks: Iterable[Task]) -> Distribution:
    """The most frequent shapes, in falling order, until 95% of the tasks are covered."""
    counts = Counter(tasks)
    every, seen = sum(counts.values()), 0
    chosen = []
    for task, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if seen >= COVERED * every:
            break
        chosen.append((task, count))
        seen += count
    return Distribution(tuple(chosen))


def fragmentation(machine: Machine, distribution: Distribution) -> Fraction:
    """Expected idle thousandths of the node's GPUs that a task of the distribution cannot use."""
    if not distribution.tasks:
        return Fraction(0)
    lost = sum(count * _unusable(machine, task) for task, count in distribution.tasks)
    return Fraction(lost, distribution.total)


def _unusable(machine: Machine, task: Task) -> int:
    """All of it for a task that does not fit or wants no GPU; else the GPUs too full for it."""
    idle = machine.idle_milli
    if task.gpus == 0 or not _fits(machine, task):
        return sum(idle)
    return sum(part for part in idle if part < task.gpu_milli)


def _fits(machine: Machine, task: Task) -> bool:
    return (
        machine.cpu_milli >= task.cpu_milli
        and (not task.models or machine.model in task.models)
        and sum(part // task.gpu_milli for part in machine.idle_milli) >= task.gpus
        and (task.gpu_milli < WHOLE or sum(p >= WHOLE for p in machine.idle_milli) >= task.gpus)
    )


def total(machines: Sequence[Machine], distribution: Distribution) -> Fraction:
    """F of a rack or a cluster: the sum over its nodes."""
    seen: dict[Machine, Fraction] = {}
    for machine in machines:
        if machine not in seen:
            seen[machine] = fragmentation(machine, distribution)
    return sum((seen[machine] for machine in machines), Fraction(0))
