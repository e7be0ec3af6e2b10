"""How fast jobs run that share one GPU: MPS, time slices, MIG, alone.

A job alone keeps part of the multiprocessors busy (`compute`), part of the memory bandwidth
(`bandwidth`), and the GPU as such for part of the time (`busy`). Beside others it gets its max-min
fair part of what they ask for together, and runs at the speed of what it is shortest of:

    MPS         compute and bandwidth are shared; each co-runner's bandwidth costs `crowding` of
                speed besides, for caches and launches
    time slice  time on the GPU is shared; each co-runner costs `switch` of speed
    MIG         nothing is shared: speed is bound by the slice's own compute and bandwidth

Memory is never shared out: what does not fit does not run. MIG keeps faults apart too; under MPS a
fault ends all clients, under time slices none but its own, but memory is not kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from scheduler_advisor.engine.parts.mig import WHOLE, Profile

ISOLATION = {
    "mig": "compute, bandwidth, memory, faults",
    "mps": "memory limits only; a fault ends all clients",
    "time-slice": "faults; not memory",
    "whole": "everything",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job uses when it has the GPU to itself, in thousandths; memory in GB."""

    compute: int
    bandwidth: int
    busy: int
    memory_gb: int = 0
    latency_sensitive: bool = False

    @classmethod
    def of_share(cls, gpu_milli: int, latency_sensitive: bool = False) -> Demand:
        """Of a job of which only the part that it asks for is known: a default."""
        return cls(gpu_milli, gpu_milli, gpu_milli, latency_sensitive=latency_sensitive)


def fair_parts(asked: Sequence[int], have: int) -> list[Fraction]:
    """Max-min fair parts: nobody gets more than is asked, what is left over goes to the others."""
    parts = [Fraction(0)] * len(asked)
    left = Fraction(have)
    order = sorted(range(len(asked)), key=lambda one: asked[one])
    for position, one in enumerate(order):
        parts[one] = min(Fraction(asked[one]), left / (len(order) - position))
        left -= parts[one]
    return parts


def mps_speeds(jobs: Sequence[Demand], crowding_milli: int) -> list[Fraction]:
    """Each job's speed under MPS; 1 = as if alone."""
    compute = fair_parts([job.compute for job in jobs], WHOLE)
    bandwidth = fair_parts([job.bandwidth for job in jobs], WHOLE)
    total = sum(job.bandwidth for job in jobs)
    speeds = []
    for at, job in enumerate(jobs):
        tight = min(_part(compute[at], job.compute), _part(bandwidth[at], job.bandwidth))
        others = Fraction(total - job.bandwidth, WHOLE) * Fraction(crowding_milli, WHOLE)
        speeds.append(tight / (1 + others))
    return speeds


def time_slice_speeds(jobs: Sequence[Demand], switch_milli: int) -> list[Fraction]:
    """Each job's speed when the GPU is handed round."""
    time = fair_parts([job.busy for job in jobs], WHOLE)
    switches = 1 + Fraction(switch_milli * (len(jobs) - 1), WHOLE)
    return [_part(time[at], job.busy) / switches for at, job in enumerate(jobs)]


def mig_speed(job: Demand, slice_: Profile) -> Fraction:
    """The job's speed on a slice of its own."""
    compute = Fraction(WHOLE * slice_.compute, slice_.of_compute)
    bandwidth = Fraction(WHOLE * slice_.slices, slice_.of_slices)
    return min(_part(compute, job.compute), _part(bandwidth, job.bandwidth), Fraction(1))


def may_share(one: Demand, other: Demand) -> bool:
    """Latency-sensitive work never lies beside throughput work."""
    return one.latency_sensitive == other.latency_sensitive


def worst_pair(jobs: Sequence[Demand], crowding_milli: int) -> tuple[int, int, Fraction] | None:
    """The pair that should never share: one that may not, else the one whose slower member is
    slowest under MPS, with that speed; None for fewer than two jobs."""
    found = []
    for one in range(len(jobs)):
        for other in range(one + 1, len(jobs)):
            pair = (jobs[one], jobs[other])
            speed = min(mps_speeds(pair, crowding_milli))
            found.append((may_share(*pair), speed, one, other))
    if not found:
        return None
    _, speed, one, other = min(found)
    return one, other, speed


def _part(got: Fraction, asked: int) -> Fraction:
    return Fraction(1) if asked == 0 else min(Fraction(1), got / asked)
