"""The store's own evidence of checkpoints: how often, how dear, and which stops the jobs had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median_low
from typing import Any

import numpy as np

from scheduler_advisor.checkpoints import LEAST_S, Checkpoints, Evidence, in_engine, optimum_s
from scheduler_advisor.engine.limits import Outage
from scheduler_advisor.readers.attempts import Attempt, Facts, Job, read_jobs
from scheduler_advisor.readers.jobs import JobsRead

DEFAULT_COST_S = 120
"""A checkpoint of 40 GiB a GPU (weights and optimizer state of an 80 GiB board half full) at a
third of a GiB/s for each GPU: what a shared file system gives eight of them."""
LEAST_STOPS = 3  # fewer say little about the mean between them: those of all classes count then
TOLD_STATES = frozenset({"PREEMPTED", "REQUEUED"})  # whoever stops such a run can tell it before


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is known of one job, as `Checkpoints` has it; ``start``: of its first run that held
    GPUs in the window."""

    start: int
    every: int
    cost: int
    restore: int
    wrote: bool
    has_read: bool
    evidence: str
    work: int
    held: int
    spanned: int
    since_stop: int
    stops: tuple[int, ...]
    told: tuple[bool, ...]
    between: float
    best: int
    of_class: int


@dataclass(frozen=True, slots=True)
class Known:
    """By job id, those whose interval is known and that go on after a stop."""

    jobs: Mapping[str, Resumed]
    classes: tuple[str, ...]


def read_checkpoints(
    facts: Facts,
    cluster: str,
    span: tuple[datetime, datetime],
    outages: tuple[Sequence[Outage], int],
    *,
    preempts: bool = False,
) -> Known:
    """Of the jobs that ran in ``span``. Intervals by the ledger's own evidence, the strongest
    first: marks of the job, declared, learnt from jobs alike.

    ``outages``: of the replayed cluster, with its second 0 in Unix time: stops by them happen in
    the replay. ``preempts``: so does preemption, by the policy in force.
    """
    jobs = read_jobs(facts, cluster, span, outages)
    known = [job for job in jobs if job.every_with_cost > 0]
    if not known:
        return Known({}, ())
    classes = sorted({job.of for job in known})
    rates = _rates(known, preempts=preempts)
    place = {of: at for at, of in enumerate(classes)}
    costs = _costs(known)
    return Known(
        {job.job_id: _resumed(job, costs[job.of], rates[job.of], place[job.of],
                              preempts=preempts)
         for job in known},
        tuple(f"{name or '?'} ({account})" if account else name for account, name in classes),
    )  # fmt: skip


def checkpoints_of(known: Known, job_ids: Sequence[str]) -> Checkpoints | None:
    """One entry per job; None where nothing is known of any."""
    nothing = Resumed(0, 0, 0, 0, False, False, "", 0, 0, 0, 0, (), (), 0.0, 0, -1)
    rows = [known.jobs.get(name, nothing) for name in job_ids]
    if not any(row.every for row in rows):
        return None

    def ints(name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array([getattr(row, name) for row in rows], np.int64)

    every, cost, held, work = ints("every"), ints("cost"), ints("held"), ints("work")
    run, _ = in_engine(held, np.maximum(every, 1), cost)
    own = every > 0
    return Checkpoints(
        job_id=tuple(job_ids), every=every, cost=cost, restore=ints("restore"),
        wrote=np.array([row.wrote for row in rows]),
        has_read=np.array([row.has_read for row in rows]),
        evidence=tuple(row.evidence for row in rows), work=work, held=held,
        spanned=ints("spanned"), since_stop=ints("since_stop"),
        stops=tuple(row.stops for row in rows), told=tuple(row.told for row in rows),
        between=np.array([row.between for row in rows]), best=ints("best"),
        again=np.where(own, np.maximum(run - work, 0), 0), run=np.where(own, run, 0),
        of_class=ints("of_class"), classes=known.classes, origin=np.arange(len(rows)),
        size=len(rows),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds of a checkpoint and of reading it back; whether each was measured of the class."""

    write: int
    read: int
    wrote: bool
    has_read: bool


def _costs(jobs: Sequence[Job]) -> dict[tuple[str, str], _Cost]:
    """By class: the medians of its marks, else those of all, else the default. Reading is also seen
    where the first checkpoint after a stop came later than the next ones; else it is taken to be
    as long as writing."""
    writes: dict[tuple[str, str], list[float]] = defaultdict(list)
    reads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for job in jobs:
        for place, each in enumerate(job.attempts):
            writes[job.of] += [end - begin for begin, end in each.writes if end > begin]
            marked = [end - begin for begin, end in each.reads if end > begin]
            reads[job.of] += marked or (_late_first(job, each) if place else [])
    every_write = [one for some in writes.values() for one in some]
    every_read = [one for some in reads.values() for one in some]
    usual = median_low(every_write) if every_write else DEFAULT_COST_S
    found = {}
    for of in {job.of for job in jobs}:
        write = median_low(writes[of] or [usual])
        read = median_low(reads[of] or every_read or [write])
        found[of] = _Cost(max(1, round(write)), max(0, round(read)), bool(writes[of]),
                          bool(reads[of]))  # fmt: skip
    return found


def _late_first(job: Job, each: Attempt) -> list[float]:
    """By how much the first checkpoint after a stop was later than its interval."""
    if not each.ends or job.evidence != Evidence.MARK.value:
        return []
    return [max(0.0, each.ends[0] - each.start - job.every_with_cost)]


@dataclass(frozen=True, slots=True)
class _Rate:
    """Running seconds between stops: of all, which an optimum rests on, and of those that only the
    past has; 0 where too few were seen."""

    between: float
    foreign: float


def _rates(jobs: Sequence[Job], *, preempts: bool) -> dict[tuple[str, str], _Rate]:
    """By class, from its own stops; from those of all where it had too few."""
    ran: dict[tuple[str, str], int] = defaultdict(int)
    stops: dict[tuple[str, str], int] = defaultdict(int)
    foreign: dict[tuple[str, str], int] = defaultdict(int)
    for job in jobs:
        ran[job.of] += sum(each.seconds for each in job.attempts)
        stops[job.of] += len(job.stops())
        foreign[job.of] += sum(not _replayed(each, preempts=preempts) for each in job.stops())
    whole = sum(ran.values())
    found = {}
    for of, seconds in ran.items():
        all_stops, own = (stops[of], foreign[of]) if stops[of] >= LEAST_STOPS else (
            sum(stops.values()), sum(foreign.values()))  # fmt: skip
        seconds = seconds if stops[of] >= LEAST_STOPS else whole
        enough = all_stops >= LEAST_STOPS
        found[of] = _Rate(seconds / all_stops if enough else 0.0,
                          seconds / own if enough and own else 0.0)  # fmt: skip
    return found


def _replayed(each: Attempt, *, preempts: bool) -> bool:
    """Whether the replay stops such runs by itself."""
    return each.by_node or (preempts and each.state == "PREEMPTED")


def _resumed(job: Job, cost: _Cost, rate: _Rate, of_class: int, *, preempts: bool) -> Resumed:
    """What the job achieved, as if it had written a checkpoint at each full interval. Of a run that
    the replay would stop by itself only what was kept counts, and not the reading after it."""
    every = max(job.every_with_cost - cost.write, LEAST_S)
    cycle = every + cost.write
    stops: list[int] = []
    told: list[bool] = []
    ran = work = waited = 0  # ran: since the last stop that is kept
    unread = False  # the reading of this attempt is the replay's
    for each, after in zip(job.attempts, [*job.attempts[1:], None], strict=True):
        reading = min(cost.read, each.seconds - 1) if work else 0
        seconds = each.seconds - reading
        ran += 0 if unread else reading
        if after is None:
            break
        cycles = seconds // cycle
        work += cycles * every
        unread = _replayed(each, preempts=preempts)
        ran += cycles * cycle if unread else seconds
        waited += after.start - each.start - each.seconds if unread else 0
        if not unread:
            stops.append(ran)
            told.append(each.state in TOLD_STATES)
            ran = 0
    since = ran + seconds
    left, _ = in_engine(np.array([seconds]), np.array([every]), np.array([cost.write]))
    best = max(round(optimum_s(cost.write, rate.between)), LEAST_S) if rate.between else 0
    return Resumed(
        job.attempts[0].start, every, cost.write, cost.read, cost.wrote, cost.has_read,
        job.evidence, work + int(left[0]), sum(stops) + since,
        sum(each.seconds for each in job.attempts) + waited, since, tuple(stops), tuple(told),
        rate.foreign, best, of_class,
    )  # fmt: skip


def resumed(read: JobsRead, known: Known, origin: int) -> JobsRead:
    """The jobs with their checkpoints; those that went on after stops with all of their runs."""
    ids = [str(name) for name in read.jobs.job_id]
    found = checkpoints_of(known, ids)
    if found is None:
        return read
    jobs, own = read.jobs, found.known
    run, apart = in_engine(found.held, np.maximum(found.every, 1), found.cost)
    columns = {
        "run": np.where(own, run, jobs.run),
        "checkpoint_every": np.where(own, apart, 0),
        "checkpoint_cost": np.where(own, found.cost, 0),
        "restore_cost": np.where(own, found.restore, 0),
    }
    waits = read.observed_wait_s
    if waits is not None:
        # A job that waited again when the window began waits for its first run in it.
        starts = [known.jobs[name].start - origin if name in known.jobs else 0 for name in ids]
        waits = np.where(own, np.array(starts, np.int64) - jobs.submit, waits)
    again = sum(len(known.jobs[name].stops) > 0 for name in ids if name in known.jobs)
    remarks = read.remarks
    if again:
        remarks = (*remarks, f"of these {again:,} went on from a checkpoint: all their runs count")
    return replace(read, jobs=jobs.changed(**columns), observed_wait_s=waits, checkpoints=found,
                   remarks=remarks)  # fmt: skip
