"""The demo's sixteen nodes: eight big A100 ones, eight small T4 ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

CLUSTER = "demo"
SINCE = datetime(2026, 10, 5, tzinfo=UTC)
UNTIL = datetime(2026, 11, 2, tzinfo=UTC)
# Runs begin before the window so that it opens on a cluster at work, not on an empty one.
EPOCH = SINCE - timedelta(days=4)
SAMPLE_STEP_S = 300


def seconds(at: datetime) -> int:
    """``at`` as whole seconds since the simulated beginning, four days before the window."""
    return round((at - EPOCH).total_seconds())


def instant(second: int) -> datetime:
    """The inverse of `seconds`."""
    return EPOCH + timedelta(seconds=second)


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A GPU model as the demo's devices report it; powers in watts."""

    model: str
    raw_name: str
    mem_mib: int
    idle_w: float
    busy_w: float
    nvlinks: int = 0  # each to a switch


A100 = GpuKind("A100-40", "NVIDIA A100-SXM4-40GB", 40960, 55.0, 400.0, nvlinks=12)
T4 = GpuKind("T4", "Tesla T4", 15360, 10.0, 70.0)


@dataclass(frozen=True, slots=True)
class DemoNode:
    """One node of the demo; ``cpus`` are hardware threads."""

    name: str
    kind: GpuKind
    gpus: int
    cpus: int
    mem_mib: int
    partition: str
    rack: str
    leaf: str

    def uuid(self, index: int) -> str:
        """The UUID of the node's GPU ``index``; made from the name, so a seed changes none."""
        number = int(self.name.rsplit("-", 1)[1])
        family = "a100" if self.kind is A100 else "0074"
        return f"GPU-{family}{number:04d}-0000-4000-8000-{index:012d}"


def _a100(number: int) -> DemoNode:
    return DemoNode(
        name=f"a100-{number:02d}",
        kind=A100,
        gpus=8,
        cpus=128,
        mem_mib=1024 * 1024,
        partition="batch" if number <= 6 else "interactive",
        rack=f"r{(number + 3) // 4}",
        leaf=f"leaf{(number + 1) // 2}",
    )


def _t4(number: int) -> DemoNode:
    return DemoNode(
        name=f"t4-{number:02d}",
        kind=T4,
        gpus=4,
        cpus=48,
        mem_mib=192 * 1024,
        partition="inference",
        rack="r3",
        leaf=f"leaf{5 + (number > 4)}",
    )


FLEET: tuple[DemoNode, ...] = (
    *(_a100(number) for number in range(1, 9)),
    *(_t4(number) for number in range(1, 9)),
)
NODE_INDEX = {node.name: index for index, node in enumerate(FLEET)}
