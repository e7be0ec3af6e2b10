"""The ordinary work of the demo's teams: who submits what, when, and how busy it keeps a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collector.demo.jobs import DAY, HOUR, DemoJob

# Share of a day's submissions in each hour, UTC: two humps of office hours, a quiet night.
_OFFICE = np.array(
    [1, 1, 1, 1, 1, 1, 3, 6, 10, 12, 12, 9, 7, 10, 12, 11, 9, 7, 5, 4, 3, 2, 2, 1], dtype=float
)
_FLAT = np.ones(24)
_DAYTIME = np.array([0.0] * 7 + [3, 8, 10, 10, 8, 8, 10, 10, 8, 5, 2] + [0.0] * 6)


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of work: ``per_day`` jobs on a weekday with these (nodes, GPUs per node) shapes."""

    name: str
    account: str
    users: tuple[str, ...]
    partition: str
    per_day: float
    weekend_ratio: float
    shapes: tuple[tuple[int, int, float], ...]  # nodes, gpus per node, probability
    mean_hours: float
    activity: float
    cpus_per_gpu: int
    mem_gib_per_gpu: int
    longest_hours: float = 24.0
    daytime_only: bool = False
    host_cpu_ratio: float = 0.55
    project: str | None = None


_LANGUAGE = ("c.dubois", "f.haddad", "o.berg")
_VISION = ("d.meyer", "a.novak", "t.okafor", "e.sato")
_RESEARCH = ("h.kim", "l.rossi", "s.lind", "m.park")
_ROBOTICS = ("b.silva", "k.jensen")
_SPEECH = ("y.chen", "p.nowak")

STREAMS: tuple[Stream, ...] = (
    Stream("tune", "language", _LANGUAGE, "batch", 8.5, 0.5,
           ((1, 4, 0.5), (1, 8, 0.4), (2, 4, 0.1)), 5.0, 0.30, 12, 96, host_cpu_ratio=0.96),
    Stream("classify", "vision", _VISION, "batch", 28, 0.45,
           ((1, 1, 0.65), (1, 2, 0.35)), 6.0, 0.78, 10, 80),
    Stream("train", "research", _RESEARCH, "batch", 5, 0.6,
           ((1, 2, 0.3), (1, 4, 0.5), (1, 8, 0.2)), 6.0, 0.82, 12, 96),
    Stream("policy", "robotics", _ROBOTICS, "batch", 4, 0.6,
           ((1, 2, 0.6), (1, 4, 0.4)), 5.0, 0.70, 12, 64, project="gripper"),
    Stream("dev", "research", _RESEARCH, "interactive", 7, 0.2,
           ((1, 1, 1.0),), 2.5, 0.55, 4, 32, longest_hours=8.0, daytime_only=True),
    Stream("transcribe", "speech", _SPEECH, "inference", 95, 0.12,
           ((1, 1, 0.9), (1, 2, 0.1)), 3.2, 0.95, 8, 32, longest_hours=10.0, daytime_only=True),
    Stream("embed", "vision", _VISION, "inference", 8, 0.3,
           ((1, 1, 1.0),), 2.0, 0.65, 8, 32, longest_hours=8.0, daytime_only=True),
    Stream("trial", "guest", ("visitor7",), "inference", 3, 0.2,
           ((1, 1, 1.0),), 2.0, 0.50, 8, 32, longest_hours=6.0, daytime_only=True),
)  # fmt: skip

# The same teams with nothing to advise: GPUs kept busy at all hours by jobs that fit anywhere.
HEALTHY_STREAMS: tuple[Stream, ...] = (
    Stream("tune", "language", _LANGUAGE, "batch", 16, 1.0,
           ((1, 4, 1.0),), 6.0, 0.86, 12, 96),
    Stream("classify", "vision", _VISION, "batch", 40, 1.0,
           ((1, 1, 0.5), (1, 2, 0.5)), 6.0, 0.88, 12, 96),
    Stream("train", "research", _RESEARCH, "batch", 8, 1.0,
           ((1, 4, 1.0),), 6.0, 0.90, 12, 96),
    Stream("dev", "research", _RESEARCH, "interactive", 30, 1.0,
           ((1, 1, 0.5), (1, 2, 0.5)), 6.0, 0.85, 12, 96),
    Stream("transcribe", "speech", _SPEECH, "inference", 150, 1.0,
           ((1, 1, 1.0),), 4.2, 0.95, 8, 32, longest_hours=10.0),
)  # fmt: skip


def ordinary_jobs(rng: np.random.Generator, days: int, *, faults: bool) -> Iterator[DemoJob]:
    """Submissions of every stream over ``days`` days from the simulated beginning, a Thursday."""
    for stream in STREAMS if faults else HEALTHY_STREAMS:
        yield from _of_stream(rng, stream, days, faults=faults)


def _of_stream(
    rng: np.random.Generator, stream: Stream, days: int, *, faults: bool
) -> Iterator[DemoJob]:
    hours = _DAYTIME if stream.daytime_only else _OFFICE if faults else _FLAT
    shares = hours / hours.sum()
    number = 0
    for day in range(days):
        weekend = day % 7 in (2, 3)
        rate = stream.per_day * (stream.weekend_ratio if weekend else 1.0)
        count = int(rng.poisson(rate)) if faults else round(rate)
        at = np.sort(rng.choice(24, size=count, p=shares) * HOUR + rng.integers(0, HOUR, count))
        for second in at:
            number += 1
            yield _job(rng, stream, number, day * DAY + int(second), faults=faults)


def _job(
    rng: np.random.Generator, stream: Stream, number: int, submit: int, *, faults: bool
) -> DemoJob:
    chances = [share for *_, share in stream.shapes]
    nodes, gpus, _ = stream.shapes[int(rng.choice(len(chances), p=chances))]
    sigma = 0.8 if faults else 0.3
    hours = rng.lognormal(np.log(stream.mean_hours) - sigma**2 / 2, sigma)
    run_s = int(min(max(hours, 0.1), stream.longest_hours) * HOUR)
    limit_s = min(-(-int(run_s * rng.uniform(1.1, 2.5)) // HOUR) * HOUR, 24 * HOUR)
    outcome = _outcome(rng) if faults else "COMPLETED"
    spread = min(stream.activity, 1 - stream.activity) * 0.5
    return DemoJob(
        name=f"{stream.name}-{number}",
        account=stream.account,
        user=str(rng.choice(stream.users)),
        partition=stream.partition,
        submit=submit,
        run_s=run_s,
        limit_s=run_s if outcome == "TIMEOUT" else max(limit_s, run_s),
        nodes=nodes,
        gpus=gpus,
        cpus=gpus * stream.cpus_per_gpu,
        mem_mib=gpus * stream.mem_gib_per_gpu * 1024,
        activity=float(stream.activity + rng.uniform(-spread, spread)),
        vram_ratio=float(rng.uniform(0.55, 0.92)),
        host_cpu_ratio=stream.host_cpu_ratio,
        outcome=outcome,
        project=stream.project,
        patience_s=30 * HOUR if gpus == 8 else None,
        cancel_after_s=5 * HOUR if faults and gpus < 8 and rng.random() < 0.05 else None,
    )


def _outcome(rng: np.random.Generator) -> str:
    """How a run ends; the shares are of the order that public traces show for finished jobs."""
    outcomes = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
    return str(rng.choice(outcomes, p=(0.86, 0.06, 0.05, 0.02, 0.01)))
