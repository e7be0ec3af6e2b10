"""The largest differences between replay and reality, each with its likely cause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.calibration.compare import SIZES, ClassFit, Comparison, size_of
from scheduler_advisor.calibration.held import held_at
from scheduler_advisor.past import Past

MOST = 5
CAP_RATIO = 0.9  # of a user's own most: with less in use the next job was not stopped by a cap
CAP_SHARE = 0.5  # of the jobs that waited beside free GPUs: a limit touches most of them
FULL_RATIO = 0.95  # of installed: a cluster that never comes near this has less than it says
SAMPLED = 2000  # jobs looked at per class: the share is known to a percent


class Cause(StrEnum):
    """Why reality differs; the sentence is in the message files under ``cause.<name>``."""

    QUOTA = "quota"
    USER_LIMIT = "user_limit"
    LESS_CAPACITY = "less_capacity"
    HELD_BACK = "held_back"
    EARLIER = "earlier"
    SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One class whose waits the replay misses; ``evidence`` is a ratio, see `Cause`."""

    fit: ClassFit
    cause: Cause
    evidence: float


def mismatches(past: Past, found: Comparison) -> list[Mismatch]:
    """The classes with the most waiting off, the largest first."""
    worst = sorted(found.classes, key=lambda fit: -abs(fit.job_seconds_off))
    total = sum(abs(fit.job_seconds_off) for fit in worst) or 1.0
    named = [fit for fit in worst[:MOST] if abs(fit.job_seconds_off) >= 0.02 * total]
    if not named or past.wait_s is None:
        return []
    facts = _Reality(past, past.wait_s)
    return [_explained(facts, fit) for fit in named]


def _explained(facts: _Reality, fit: ClassFit) -> Mismatch:
    if fit.replay_mean_s > fit.real_mean_s:
        return Mismatch(fit, Cause.EARLIER, fit.real_mean_s / max(fit.replay_mean_s, 1.0))
    told = facts.told_of_limits(fit)
    if told >= CAP_SHARE:
        return Mismatch(fit, Cause.QUOTA, told)
    room, capped = facts.room_and_cap(fit)
    if room < 1 - CAP_SHARE:
        if facts.most_held < FULL_RATIO:
            return Mismatch(fit, Cause.LESS_CAPACITY, facts.most_held)
        return Mismatch(fit, Cause.SHAPE, room)
    if capped >= CAP_SHARE:
        return Mismatch(fit, Cause.USER_LIMIT, capped)
    return Mismatch(fit, Cause.HELD_BACK, room)


class _Reality:
    """What was free, and what each user held, at any instant of the past."""

    def __init__(self, past: Past, wait: NDArray[np.int64]) -> None:
        self._past = past
        self._start = past.jobs.submit + wait
        self._end = past.real_end
        self._gpus = past.gpus_held
        self._wait = wait
        self._installed = past.cluster.total_gpus
        held = self._held(np.sort(self._start), np.ones(len(past.jobs), bool))
        self.most_held = float(held.max(initial=0.0)) / max(self._installed, 1)

    def _held(self, at: NDArray[np.int64], own: NDArray[np.bool_]) -> NDArray[np.float64]:
        """GPUs held at each instant by the jobs of ``own``."""
        return held_at(self._start[own], self._end[own], self._gpus[own], at)

    def room_and_cap(self, fit: ClassFit) -> tuple[float, float]:
        """Share of the class's waiting jobs that had room half-way through their wait, and the
        share of those whose user then held (nearly) the most that this user ever held."""
        jobs, chosen = self._past.jobs, self._of_class(fit)
        half = self._past.jobs.submit[chosen] + self._wait[chosen] // 2
        everyone = np.ones(len(jobs), bool)
        free = self._installed - self._held(half, everyone)
        room = free >= self._gpus[chosen]
        if not room.any():
            return 0.0, 0.0
        capped = [
            self._at_own_most(int(user), half[room][jobs.user.codes[chosen][room] == user],
                              float(self._gpus[chosen].mean()))
            for user in np.unique(jobs.user.codes[chosen][room])
        ]  # fmt: skip
        counts = sum(len(flags) for flags in capped)
        return float(room.mean()), float(sum(flags.sum() for flags in capped) / max(counts, 1))

    def told_of_limits(self, fit: ClassFit) -> float:
        """Share of the class's hours of waiting by jobs that the scheduler said a limit held back;
        0 where it said nothing."""
        by_limit = self._past.by_limit
        if by_limit is None:
            return 0.0
        chosen = self._of_class(fit)
        waited = self._wait[chosen].astype(float)
        return float(waited[by_limit[chosen] > 0].sum() / max(waited.sum(), 1.0))

    def _of_class(self, fit: ClassFit) -> NDArray[np.intp]:
        names = [name for _, name in SIZES]
        size = size_of(self._gpus) == names.index(fit.size)
        chosen = np.flatnonzero(self._past.judged & size & (self._wait > 60))
        if len(chosen) > SAMPLED:
            chosen = chosen[:: len(chosen) // SAMPLED + 1]
        return chosen

    def _at_own_most(self, user: int, at: NDArray[np.int64], gpus: float) -> NDArray[np.bool_]:
        own = self._past.jobs.user.codes == user
        most = float(self._held(np.sort(self._start[own]), own).max(initial=0.0))
        held = self._held(at, own)
        capped: NDArray[np.bool_] = (held >= CAP_RATIO * most) | (held + gpus > most)
        return capped & (held > 0)
