"""How jobs write checkpoints, which stops they had, and how long they would hold GPUs otherwise.

A stop that the replay makes by itself (a node that fails, preemption by a policy) is the engine's.
One that nothing in the replay would make again is kept here: it comes after the same seconds of
running in every replay of a past, whatever else is changed, and the job goes on at once. What it
costs depends on the interval between checkpoints, so a job holds its GPUs longer or shorter with
another one. A job that then needs longer than it was ever seen to run meets more stops, at the rate
of its class (running on is memoryless: an exponential time beyond what was seen).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.jobs import Jobs

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SEED = 20261130
MOST_ATTEMPTS = 500
LEAST_S = 60  # nobody writes more often than every minute


class Writing(StrEnum):
    """Another way to write checkpoints: at the optimum of each class of jobs, half or twice as far
    apart, or once more on being told to leave."""

    AS_IT_IS = ""
    OPTIMUM = "optimum"
    HALF = "half"
    DOUBLE = "double"
    ON_STOP = "on_stop"


class Evidence(StrEnum):
    """How an interval is known, the strongest first, as in the ledger."""

    MARK = "mark"
    DECLARED = "declared"
    LEARNT = "learnt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """One entry per job; seconds.

    ``every``: work between two checkpoints, 0: none are known, or nothing shows that the job goes
    on from them. ``cost``/``restore``: to write one and to read it back; ``wrote``/``has_read``:
    whether that was seen of its class. ``work``: what the job achieves, without what it does again,
    writes and reads. ``held``: how long it ran in all, where the replay makes no stop of its
    own; ``spanned``: from its first start to its end as it was, without waits after stops that the
    replay does not make; ``since_stop``: running seconds after the last of these.
    ``stops``: per job, running seconds before each stop since the one before it; ``told``: whether
    it was stopped by somebody who could have told it before. ``between``: running seconds per stop
    of its class, 0: none was seen. ``best``: the class's optimum, 0: not known. ``again``: of the
    replayed run time, what is no progress. ``run``: the run time as replayed. ``of_class``: place
    in ``classes``, whose names people know; -1: none. ``origin``: the place of the job in the past
    that was read, which has ``size`` jobs.
    """

    job_id: tuple[str, ...]
    every: Ints
    cost: Ints
    restore: Ints
    wrote: NDArray[np.bool_]
    has_read: NDArray[np.bool_]
    evidence: tuple[str, ...]
    work: Ints
    held: Ints
    spanned: Ints
    since_stop: Ints
    stops: tuple[tuple[int, ...], ...]
    told: tuple[tuple[bool, ...], ...]
    between: Floats
    best: Ints
    again: Ints
    run: Ints
    of_class: Ints
    classes: tuple[str, ...]
    origin: Ints
    size: int

    def take(self, order: NDArray[np.intp]) -> Checkpoints:
        """Those of the jobs at ``order``."""
        places = order.tolist()
        arrays = {
            name: getattr(self, name)[order]
            for name in ("every", "cost", "restore", "wrote", "has_read", "work", "held", "spanned",
                         "since_stop", "between", "best", "again", "run", "of_class", "origin")
        }  # fmt: skip
        return replace(
            self, **arrays, job_id=tuple(self.job_id[at] for at in places),
            evidence=tuple(self.evidence[at] for at in places),
            stops=tuple(self.stops[at] for at in places),
            told=tuple(self.told[at] for at in places),
        )  # fmt: skip

    def of(self, job_ids: Sequence[str] | NDArray[np.str_]) -> Checkpoints:
        """Those of these jobs, in their order; every one of them is here."""
        place = {name: at for at, name in enumerate(self.job_id)}
        return self.take(np.array([place[str(name)] for name in job_ids], np.intp))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Jobs whose interval is known, and that go on after a stop."""
        return self.every > 0

    def apart(self, how: Writing) -> Ints:
        """Seconds of work between checkpoints, written that way."""
        if how is Writing.OPTIMUM:
            return np.where(self.known & (self.best > 0), self.best, self.every)
        if how is Writing.HALF:
            return np.where(self.known, np.maximum(self.every // 2, LEAST_S), 0)
        return self.every * 2 if how is Writing.DOUBLE else self.every

    @property
    def told_any(self) -> bool:
        """Whether somebody outside the replay stopped jobs who could have told them before."""
        return any(any(each) for each in self.told)

    def grace_s(self) -> int:
        """Notice in which nine of ten jobs (by running time) have written a checkpoint, and half as
        much again."""
        own = self.known
        if not own.any():
            return LEAST_S
        order = np.argsort(self.cost[own], kind="stable")
        weight = np.cumsum(self.held[own][order])
        at = int(np.searchsorted(weight, 0.9 * weight[-1]))
        return max(LEAST_S, int(np.ceil(self.cost[own][order][at] * 1.5)))

    def rewritten(self, jobs: Jobs, how: Writing, dear: float) -> tuple[Jobs, Checkpoints]:
        """The jobs as they would run with checkpoints written that way, each ``dear`` times as
        costly; ``jobs`` are those that this speaks of, in its order."""
        own = np.flatnonzero(self.known)
        every, cost = self.apart(how)[own], np.rint(self.cost[own] * dear).astype(np.int64)
        restore = np.rint(self.restore[own] * dear).astype(np.int64)
        held = self.held[own]
        if dear != 1.0 or how is not Writing.AS_IT_IS:
            held = self._held(own, (every, cost, restore), told=how is Writing.ON_STOP)
        run, apart = in_engine(held, every, cost)
        again = np.maximum(run - self.work[own], 0)
        # Where run times are those on the best placement they stay so.
        scale = jobs.run[own] / np.maximum(self.run[own], 1)
        columns = {name: getattr(jobs, name).copy() for name in
                   ("run", "checkpoint_every", "checkpoint_cost", "restore_cost")}  # fmt: skip
        columns["run"][own] = np.maximum(np.rint(run * scale), 1)
        columns["checkpoint_every"][own] = apart
        columns["checkpoint_cost"][own] = cost
        # Told to leave, a job writes in its grace, in which the engine lets it work.
        columns["restore_cost"][own] = restore + (self.grace_s() if how is Writing.ON_STOP else 0)
        redone = self.again.copy()
        redone[own] = np.rint(again * scale)
        return jobs.changed(**columns), replace(self, again=redone)

    def _held(self, own: NDArray[np.intp], writing: tuple[Ints, Ints, Ints], *, told: bool) -> Ints:
        """Running seconds of the jobs at ``own`` until all of their work is done; ``writing``:
        their intervals, the cost of a checkpoint and of reading it; ``told``: who stops a job
        tells it before, and it writes once more."""
        every, cost, restore = writing
        left, held = self.work[own].copy(), np.zeros(len(own), np.int64)
        counts = np.array([len(self.stops[at]) for at in own.tolist()], np.int64)
        active = np.arange(len(own))
        for attempt in range(MOST_ATTEMPTS):
            lasts, warned = self._lasts(own[active], counts[active], attempt)
            reading = np.where(left[active] < self.work[own[active]], restore[active], 0)
            writes = np.maximum(left[active] - 1, 0) // every[active]
            need = reading + left[active] + writes * cost[active]
            done = (need <= lasts) | (attempt == MOST_ATTEMPTS - 1)
            worked = np.maximum(np.minimum(lasts, need) - reading, 0).astype(np.int64)
            cycles = np.minimum(writes, worked // (every[active] + cost[active]))
            kept = cycles * every[active]
            if told:
                all_of_it = worked - (cycles + 1) * cost[active]
                kept = np.where(warned, np.maximum(kept, np.minimum(all_of_it, left[active])), kept)
            held[active] += np.where(done, need, lasts).astype(np.int64)
            left[active] -= np.where(done, left[active], kept)
            active = active[~done]
            if not len(active):
                break
        return held

    def _lasts(
        self, jobs: NDArray[np.intp], counts: Ints, attempt: int
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Running seconds until the stop number ``attempt`` of each job, and whether somebody makes
        it who can tell the job. A stop that was never seen is as those that were."""
        drawn = np.random.default_rng([SEED, attempt]).exponential(size=self.size)
        between = np.where(self.between[jobs] > 0, self.between[jobs], np.inf)
        beyond = drawn[self.origin[jobs]] * between
        beyond = np.where(attempt == counts, beyond + self.since_stop[jobs], beyond)
        rows = list(zip(jobs.tolist(), counts.tolist(), strict=True))
        seen = [self.stops[job][attempt] if attempt < count else 0 for job, count in rows]
        told = [self.told[job][attempt] if attempt < count else any(self.told[job])
                for job, count in rows]  # fmt: skip
        lasts = np.where(attempt < counts, np.array(seen, float), np.maximum(np.ceil(beyond), 1.0))
        return lasts, np.array(told, bool)


def in_engine(held: Ints, every: Ints, cost: Ints) -> tuple[Ints, Ints]:
    """Service and interval with which the engine lets a job hold exactly ``held`` seconds.

    The engine writes no checkpoint at the very end of a job. One that ended while it wrote, or
    just after it, had its checkpoints that little further apart.
    """
    writes = np.maximum(held - 1, 0) // (every + cost)
    run = held - writes * cost
    return run, np.where((run - 1) // every > writes, -(-run // (writes + 1)), every)


def optimum_s(cost_s: float, between_s: float) -> float:
    """Daly's first order optimum of the work between checkpoints (Young 1974, Daly 2006)."""
    return float(max(cost_s, np.sqrt(2 * cost_s * between_s) - cost_s))


def as_asked(jobs: Jobs) -> Checkpoints | None:
    """From the jobs' own columns, without any stop of theirs; None where no job writes one."""
    every = jobs.checkpoint_every
    if not every.any():
        return None
    count, zeros = len(jobs), np.zeros(len(jobs), np.int64)
    writes = np.where(every > 0, (jobs.run - 1) // np.maximum(every, 1), 0)
    held = (jobs.run + writes * jobs.checkpoint_cost).astype(np.int64)
    return Checkpoints(
        job_id=tuple(str(name) for name in jobs.job_id), every=every, cost=jobs.checkpoint_cost,
        restore=jobs.restore_cost, wrote=every > 0, has_read=every > 0,
        evidence=tuple(Evidence.DECLARED.value if each else "" for each in every.tolist()),
        work=jobs.run, held=held, spanned=held, since_stop=held, stops=((),) * count,
        told=((),) * count,
        between=np.zeros(count), best=zeros, again=zeros, run=jobs.run, of_class=zeros - 1,
        classes=(), origin=np.arange(count), size=count,
    )  # fmt: skip
