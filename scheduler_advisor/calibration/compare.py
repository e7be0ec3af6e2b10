"""A replay beside reality: waits by class, order of starts, occupancy over time, makespan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.calibration.held import contested
from scheduler_advisor.engine.outcome import Outcome
from scheduler_advisor.integrals import blocked_hours, integral
from scheduler_advisor.past import Past

Floats = NDArray[np.float64]
SIZES = ((1, "1"), (4, "2-4"), (8, "5-8"), (32, "9-32"), (1 << 40, "33+"))
BINS = 200  # of the window: hours where it is a week, half a day where it is three months
MANY_QUEUES = 12  # the busiest are named, the others are one class
LEAST_JOBS = 50  # below, a percentile of a class is one or two jobs
TINY_S = 300  # waits below five minutes are told apart by nobody


@dataclass(frozen=True, slots=True)
class ClassFit:
    """One class of jobs: queue and size; seconds. Errors are of each job, replay minus reality."""

    queue: str
    size: str
    jobs: int
    real_mean_s: float
    real_p50_s: float
    real_p95_s: float
    replay_mean_s: float
    replay_p50_s: float
    replay_p95_s: float
    error_p50_s: float
    error_p95_s: float

    @property
    def job_seconds_off(self) -> float:
        """How much waiting the replay has too much (or too little) over all jobs of the class."""
        return (self.replay_mean_s - self.real_mean_s) * self.jobs


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the grade looks at. ``score``: mean log error of waits, smaller is better.

    ``contested``: jobs that waited for GPUs, see `held.contested`.
    """

    jobs: int
    never_started: int
    real_mean_wait_s: float
    replay_mean_wait_s: float
    error_p50_s: float
    error_p95_s: float
    wait_rank_correlation: float
    start_rank_correlation: float
    occupancy_rms: float
    real_occupancy: tuple[float, ...]
    replay_occupancy: tuple[float, ...]
    real_makespan_s: int
    replay_makespan_s: int
    classes: tuple[ClassFit, ...]
    score: float
    real_blocked_gpu_hours: float
    replay_blocked_gpu_hours: float
    contested: int

    @property
    def queue_formed(self) -> bool:
        """Whether the real starts say anything of the scheduler.

        Where hardly a job waited for GPUs and the real waits are minutes beside free ones, these
        are images, hooks and clocks: every policy replays to the same starts, and none is more true
        than another. Long waits beside free GPUs (limits, holds) are the scheduler's: a replay
        without them is graded, and badly.
        """
        return self.contested >= LEAST_JOBS or self.real_mean_wait_s > TINY_S

    @property
    def mean_wait_error(self) -> float:
        """Relative error of the mean wait; five minutes are added, so that zero is a wait."""
        return abs(self.replay_mean_wait_s - self.real_mean_wait_s) / (
            self.real_mean_wait_s + TINY_S
        )

    @property
    def blocked_error(self) -> float:
        """Relative error of the GPU time that stood free while jobs waited; at most 1."""
        larger = max(self.real_blocked_gpu_hours, self.replay_blocked_gpu_hours)
        if larger <= 0:
            return 0.0
        return abs(self.replay_blocked_gpu_hours - self.real_blocked_gpu_hours) / larger

    @property
    def makespan_error(self) -> float:
        """Relative error of first submit to the last end of what really started in the window."""
        return abs(self.replay_makespan_s - self.real_makespan_s) / max(self.real_makespan_s, 1)

    @property
    def tail_factor(self) -> float:
        """By what factor p95 of a class's waits is off, in the median job's class."""
        if not self.classes:
            return 1.0
        factors = [
            float(np.exp(abs(np.log((c.replay_p95_s + TINY_S) / (c.real_p95_s + TINY_S)))))
            for c in self.classes
        ]
        order = np.argsort(factors)
        weight = np.cumsum(np.array([c.jobs for c in self.classes])[order])
        return factors[int(order[np.searchsorted(weight, weight[-1] / 2)])]


def compare(past: Past, outcome: Outcome) -> Comparison:
    """The replay ``outcome`` of ``past`` beside the real starts of ``past``.

    Waits count until the window ends: who starts later waited for jobs that came later, too, and
    those are not replayed.
    """
    if past.wait_s is None:
        raise ValueError("no real starts: there is nothing to compare with")
    judged = past.judged & outcome.started
    submit = past.jobs.submit[judged]
    starts = [np.minimum(start[judged], past.until)
              for start in (past.real_start, outcome.first_start)]  # fmt: skip
    real, replay = ((start - submit).astype(float) for start in starts)
    error = np.abs(replay - real)
    occupancy = _occupancies(past, outcome)
    first, ends = int(past.jobs.submit.min()), past.real_end
    inside = outcome.started & (past.real_start < past.until)
    return Comparison(
        jobs=int(judged.sum()),
        never_started=int((past.judged & ~outcome.started).sum()),
        real_mean_wait_s=_mean(real),
        replay_mean_wait_s=_mean(replay),
        error_p50_s=_quantile(error, 0.5),
        error_p95_s=_quantile(error, 0.95),
        wait_rank_correlation=rank_correlation(real, replay),
        start_rank_correlation=rank_correlation(starts[0].astype(float), starts[1].astype(float)),
        occupancy_rms=float(np.sqrt(np.mean((occupancy[0] - occupancy[1]) ** 2))),
        real_occupancy=tuple(np.round(occupancy[0], 4).tolist()),
        replay_occupancy=tuple(np.round(occupancy[1], 4).tolist()),
        real_makespan_s=int(ends[inside].max(initial=first)) - first,
        replay_makespan_s=int(outcome.end[inside].max(initial=first)) - first,
        classes=tuple(_classes(past, judged, real, replay)),
        score=_mean(np.abs(np.log((replay + TINY_S) / (real + TINY_S)))),
        real_blocked_gpu_hours=_blocked(past, outcome, past.real_start, ends),
        replay_blocked_gpu_hours=_blocked(past, outcome, outcome.first_start, outcome.end),
        contested=contested(past, outcome),
    )


def _blocked(
    past: Past, outcome: Outcome, start: NDArray[np.int64], end: NDArray[np.int64]
) -> float:
    never = np.int64(1) << 40
    done = outcome.started
    edges = np.array([past.since, past.until], float)
    first, last = np.where(done, start, never), np.where(done, end, never)
    return float(blocked_hours(outcome, first, last, past.gpus_held, edges)[0])


def size_of(gpus: Floats) -> NDArray[np.int64]:
    """The place in `SIZES` of each job."""
    edges = np.array([edge for edge, _ in SIZES], float)
    return np.searchsorted(edges, np.maximum(gpus, 1))


def _classes(past: Past, judged: NDArray[np.bool_], real: Floats, replay: Floats) -> list[ClassFit]:
    names = np.array(past.jobs.qos.names, dtype=object)[past.jobs.qos.codes][judged]
    parts = np.array(past.jobs.partitions.names, dtype=object)[past.jobs.partitions.codes][judged]
    queues = np.where(parts == "", names, parts)
    found, counts = np.unique(queues.astype(str), return_counts=True)
    busiest = set(found[np.argsort(-counts)][:MANY_QUEUES].tolist())
    queues = np.array([name if name in busiest else "others" for name in queues.tolist()])
    sizes = size_of(past.gpus_held[judged])
    classes = []
    for queue in sorted(set(queues.tolist())):
        for place, (_, size) in enumerate(SIZES):
            own = (queues == queue) & (sizes == place)
            if own.any():
                classes.append(_class(queue, size, real[own], replay[own]))
    return classes


def _class(queue: str, size: str, real: Floats, replay: Floats) -> ClassFit:
    error = np.abs(replay - real)
    return ClassFit(
        queue, size, len(real),
        _mean(real), _quantile(real, 0.5), _quantile(real, 0.95),
        _mean(replay), _quantile(replay, 0.5), _quantile(replay, 0.95),
        _quantile(error, 0.5), _quantile(error, 0.95),
    )  # fmt: skip


def _occupancies(past: Past, outcome: Outcome) -> tuple[Floats, Floats]:
    gpus, done = past.gpus_held, outcome.started
    real = held_over_time(past.real_start, past.real_end, gpus, past)
    # From the first start, as in reality: a job that was stopped counts while it waits again, too.
    replay = held_over_time(outcome.first_start[done], outcome.end[done], gpus[done], past)
    installed = max(past.cluster.total_gpus, 1)
    return real / installed, replay / installed


def held_over_time(
    start: NDArray[np.int64], end: NDArray[np.int64], gpus: Floats, past: Past, bins: int = BINS
) -> Floats:
    """Mean GPUs held in each of ``bins`` equal parts of the window."""
    edges = np.linspace(past.since, past.until, bins + 1)
    held = integral(start, gpus, edges) - integral(end, gpus, edges)
    return np.diff(held) / np.diff(edges)


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's rho with mean ranks for ties; 1 where both sides are constant, 0 where one is."""
    if len(one) < 2:
        return 1.0
    a, b = _ranks(one), _ranks(other)
    spread = float(a.std() * b.std())
    if spread == 0:
        return 1.0 if a.std() == b.std() else 0.0
    return float(np.mean((a - a.mean()) * (b - b.mean())) / spread)


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[inverse]
    return ranks


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _quantile(values: Floats, at: float) -> float:
    return float(np.quantile(values, at)) if len(values) else 0.0
