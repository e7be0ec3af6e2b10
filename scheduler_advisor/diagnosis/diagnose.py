"""Is this cluster held back by packing, urgency, gangs, limits, idle, topology, lost work?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from scheduler_advisor.caps import Caps
from scheduler_advisor.diagnosis.blocked import Blocked, blocked
from scheduler_advisor.diagnosis.seen import Seen
from scheduler_advisor.past import Past
from scheduler_advisor.search.bench import Bench


class Bottleneck(StrEnum):
    """What holds a cluster back."""

    PACKING = "packing"
    URGENCY = "urgency"
    GANG = "gang"
    QUOTA = "quota"
    IDLE = "idle"
    TOPOLOGY = "topology"
    LOST = "lost"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which value on a cause counts, and why."""

    value: float
    unit: str
    reason: str


THRESHOLDS = {
    Bottleneck.PACKING: Threshold(
        0.02, "ratio", "of installed GPUs, free beside waiting jobs that their shape keeps off: "
        "the best packer leaves 2 to 5% of a full cluster unallocated on published traces"),
    Bottleneck.GANG: Threshold(
        0.04, "ratio", "of installed GPUs, free behind or for a big job: an EASY queue at load 0.9 "
        "holds about this much back; less cannot be won"),
    Bottleneck.QUOTA: Threshold(
        0.02, "ratio", "of installed GPUs, free beside jobs that only a limit of their team holds "
        "back: a change of limits has to be agreed between teams, and that is not done for less"),
    Bottleneck.URGENCY: Threshold(
        900, "s", "wait that one urgent job in fifty exceeds: a person who waits a quarter of an "
        "hour has gone to do something else (a class's own goal, at p95, replaces it)"),
    Bottleneck.IDLE: Threshold(
        0.15, "ratio", "of held GPU time: starting up, loading and saving take about a tenth of a "
        "healthy job"),
    Bottleneck.TOPOLOGY: Threshold(
        0.02, "ratio", "of held GPU time lost against the same job placed closer: below, the "
        "spread of run times of equal jobs is larger"),
    Bottleneck.LOST: Threshold(
        0.03, "ratio", "of held GPU time thrown away by stops: checkpoints at the best interval "
        "lose and write about this much where a job is stopped twice a day"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause with its measured value (None = not measured); severity 1 = at its threshold."""

    bottleneck: Bottleneck
    value: float | None
    threshold: Threshold

    @property
    def severity(self) -> float:
        """Value over threshold; 0 where it is not measured."""
        return 0.0 if self.value is None else self.value / self.threshold.value


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The leading cause and all of them, the most severe first; ``blocked`` is the evidence."""

    leading: Bottleneck
    findings: tuple[Finding, ...]
    blocked: Blocked


def diagnose(bench: Bench, seen: Seen, caps: Caps | None = None) -> Diagnosis:
    """From real starts and placements; nothing is simulated. ``caps``: the limits in force."""
    past = bench.past
    free = blocked(past, seen, caps)
    installed = max(past.cluster.total_gpus, 1)
    values: dict[Bottleneck, float | None] = {
        Bottleneck.PACKING: (free.shape + free.cpu_mem) / installed,
        Bottleneck.GANG: (free.gang + free.behind) / installed,
        Bottleneck.QUOTA: free.quota / installed,
        Bottleneck.URGENCY: _urgent_tail(bench, past),
        Bottleneck.IDLE: seen.idle_ratio,
        Bottleneck.TOPOLOGY: seen.topology_ratio,
        Bottleneck.LOST: seen.lost_ratio,
    }
    limits = THRESHOLDS | {
        Bottleneck.URGENCY: replace(THRESHOLDS[Bottleneck.URGENCY], value=bench.urgent_goal_s)
    }
    findings = sorted(
        (Finding(cause, value, limits[cause]) for cause, value in values.items()),
        key=lambda finding: -finding.severity,
    )
    leading = findings[0].bottleneck if findings[0].severity >= 1 else Bottleneck.NOTHING
    return Diagnosis(leading, tuple(findings), free)


def _urgent_tail(bench: Bench, past: Past) -> float | None:
    own = past.judged & bench.groups.urgent
    if past.wait_s is None or not own.any():
        return None
    return float(np.quantile(past.wait_s[own], bench.groups.urgent_at))
