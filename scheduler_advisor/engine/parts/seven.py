"""Small jobs on one GPU: cut by MIG, shared by MPS, handed round, or a GPU each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from scheduler_advisor.engine.parts.interference import (
    Demand,
    mig_speed,
    mps_speeds,
    time_slice_speeds,
)
from scheduler_advisor.engine.parts.mig import Profile, serving, start_for

HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run the jobs: GPUs, when the last job ends, how much slower the jobs run on
    average and at worst, and the money. `fits` False: it cannot be done so, figures are None."""

    name: str
    fits: bool
    gpus: int
    hours: float | None
    mean_slowdown: float | None
    worst_slowdown: float | None
    cost_usd: Decimal | None


def compare_ways(
    jobs: Sequence[Demand],
    run_s: int,
    profiles: Sequence[Profile],
    memory_gb: int,
    usd_per_gpu_hour: Decimal,
    crowding_milli: int = 100,
    switch_milli: int = 50,
) -> list[Way]:
    """All jobs start at once, each with `run_s` seconds of work alone; a GPU is paid for from the
    first start to its last end."""
    fits = sum(job.memory_gb for job in jobs) <= memory_gb
    ways = [_way("whole", [Fraction(1)] * len(jobs), len(jobs), run_s, usd_per_gpu_hour)]
    slices = mig_slices(jobs, profiles)
    if slices is None:
        ways.append(Way("mig", False, 1, None, None, None, None))
    else:
        speeds = [mig_speed(job, cut) for job, cut in zip(jobs, slices, strict=True)]
        ways.append(_way("mig", speeds, 1, run_s, usd_per_gpu_hour))
    for name, speeds in (
        ("mps", mps_speeds(jobs, crowding_milli)),
        ("time-slice", time_slice_speeds(jobs, switch_milli)),
    ):
        if fits:
            ways.append(_way(name, speeds, 1, run_s, usd_per_gpu_hour))
        else:
            ways.append(Way(name, False, 1, None, None, None, None))
    return ways


def mig_slices(jobs: Sequence[Demand], profiles: Sequence[Profile]) -> list[Profile] | None:
    """A slice for each job on one GPU: the smallest with its memory, largest jobs first; None
    where they do not all fit."""
    taken = 0
    slices: dict[int, Profile] = {}
    for at in sorted(range(len(jobs)), key=lambda one: -jobs[one].memory_gb):
        cut = serving(profiles, 0, max(jobs[at].memory_gb, 1))
        start = None if cut is None else start_for(profiles, taken, cut)
        if cut is None or start is None:
            return None
        taken |= cut.bits(start)
        slices[at] = cut
    return [slices[at] for at in range(len(jobs))]


def _way(
    name: str, speeds: Sequence[Fraction], gpus: int, run_s: int, usd_per_gpu_hour: Decimal
) -> Way:
    """Speeds hold until the last job ends: the crowd is not thinned as jobs end, so the figures
    of shared ways err on the slow side."""
    slow = [1 / speed for speed in speeds]
    last_s = run_s * max(slow)
    cents = Decimal(gpus) * usd_per_gpu_hour * last_s.numerator / last_s.denominator / HOUR_S
    return Way(
        name,
        True,
        gpus,
        float(last_s) / HOUR_S,
        float(sum(slow) / len(slow)),
        float(max(slow)),
        cents.quantize(Decimal("0.01")),
    )
