"""What happened on a small cluster, as the slow reference takes it; times are microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

MIN = 60_000_000
HOUR = 60 * MIN
INF = 10**18
F = Fraction
ONE = Fraction(1)
HELD = ("used", "lost", "allocated_idle", "allocated_unmeasured", "failed_held")
FREE = (
    "failed",
    "drained",
    "unknown",
    "reserved",
    "gang_wait",
    "stranded_cpu",
    "stranded_mem",
    "stranded_shape",
    "stranded_topology",
    "policy_blocked",
    "free",
)


MEMORY = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
PROFILES = [
    (1, 1, range(7)), (2, 2, (0, 2, 4)), (3, 4, (0, 4)), (4, 4, (0,)), (7, 8, (0,)),
]  # fmt: skip
"""Of an A100: compute slices, memory slices, where an instance may begin."""


@dataclass
class Node:
    name: str
    gpus: int
    t0: int
    t1: int
    cpus: int | None = None
    mem: int | None = None
    leaf: str | None = None
    owned: bool = True


@dataclass
class Run:
    """A run that holds ``gpus`` of each node, or ``share`` of one named GPU."""

    name: str
    nodes: list[str]
    t0: int
    t1: int
    gpus: int = 1
    cpus: int = 0
    mem: int = 0
    gpu: str | None = None
    share: F = ONE
    state: str = "COMPLETED"
    account: str = "lab"
    marks: list[int] = field(default_factory=list)
    limit: int | None = None
    mig: tuple[int, int] | None = None
    """Compute slices and first memory slice of the instance of ``gpu`` that it holds."""

    @property
    def instance(self):
        return self.mig and f"MIG-{self.gpu}-{self.mig[0]}-{self.mig[1]}"


@dataclass
class Wait:
    name: str
    t0: int
    t1: int
    gpus: int
    nodes: int = 1
    cpus: int = 0
    mem: int = 0
    leaf: bool = False
    limit: int | None = None


@dataclass
class History:
    nodes: list[Node]
    known: list[tuple[int, int]]
    runs: list[Run]
    waits: list[Wait] = field(default_factory=list)
    states: list[tuple[str, str, int, int]] = field(default_factory=list)
    kept: list[tuple[str, int | None, str | None, int, int]] = field(default_factory=list)
    broken: list[tuple[str, str | None, str | None, int]] = field(default_factory=list)
    samples: list[tuple[str, str, str, int, int, int]] = field(default_factory=list)
    """(node, device, run, ts, step, active ppm)"""
    price_changes: list[int] = field(default_factory=list)
    headroom: int = 0
    profile: tuple[int | None, int | None] = (None, None)
    """CPU (thousandths) and memory (MiB) per GPU that the operator set."""


def half_up(x: F) -> int:
    return floor(x + F(1, 2))


def taken_late(taken):
    """Jobs that fill and do not end in time: the head must fit beside them."""
    return [(w, spot) for w, spot, in_time in taken if not in_time]


def share_out(amount, weights):
    """Exactly ``amount`` by largest remainder, ties in the order of the names."""
    total = sum(w for _, w in weights)
    exact = [F(amount * w) / total for _, w in weights]
    parts = [floor(x) for x in exact]
    order = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in order[: amount - sum(parts)]:
        parts[i] += 1
    return [(name, part) for (name, _), part in zip(weights, parts, strict=True)]
