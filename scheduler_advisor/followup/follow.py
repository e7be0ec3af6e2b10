"""Step 9: every change is judged by what happened after it, and the judgement stays on record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from scheduler_advisor.followup.changes import Changed, changes
from scheduler_advisor.followup.fact_days import fact_days
from scheduler_advisor.followup.realised import Days, Realised, realised
from scheduler_advisor.followup.record import save_outcomes
from scheduler_advisor.followup.verdict import Verdict, verdict
from scheduler_advisor.goals import Goals

if TYPE_CHECKING:
    from collector.store import Store
    from scheduler_advisor.past import Past

SIDE = timedelta(days=28)  # four weeks on each side, as the design's four weeks after "applied"
WEEK = timedelta(days=8)  # seven whole days, of what was promised as it stood in the last week
OLDEST = timedelta(days=120)  # a change that long ago has been judged


@dataclass(frozen=True, slots=True)
class Outcome:
    """One change with what was seen and the verdict."""

    change: Changed
    found: Realised
    verdict: Verdict


def judge(
    store: Store, at: datetime, *, replays: bool = True, goals: Goals | None = None
) -> list[Outcome]:
    """Every change of the last months, before against after at equal load; nothing is written.

    ``replays`` False: only what is judged by the ledger, which needs no simulator. ``goals`` say
    which work is urgent, for advice that promised it shorter waits.
    """
    with store.work() as work:
        known = [each for each in changes(work, at) if each.at >= at - OLDEST]
    outcomes = []
    for change in known:
        if change.measure is None and not replays:
            continue
        others = [c.at for c in known if c is not change and c.disturbs(change)]
        side = WEEK if change.measure is not None and change.measure.now else SIDE
        since = max([t for t in others if t < change.at] + [change.at - side])
        until = min([t for t in others if t > change.at] + [change.at + SIDE, at])
        if change.measure is None:  # the ledger's days are counted where it holds them whole
            since, until = _known(store, change.cluster, since, until)
        spans = (since, change.at), (change.at, until)
        before, after = _sides(store, change, spans, goals or Goals())
        if before is not None and after is not None:
            found = realised(before, after)
            outcomes.append(Outcome(change, found, verdict(found, change.predicted)))
    return outcomes


def _known(store: Store, cluster: str, since: datetime, until: datetime) -> _Span:
    """The part of the span that the scheduler's facts cover: a day before them is no quiet day."""
    with store.work() as work:
        [known] = work.rows(
            "SELECT min(since) AS since, max(until) AS until FROM fact_window "
            "WHERE cluster = $1 AND kind = 'scheduler'", [cluster],
        )  # fmt: skip
    if known["since"] is None:
        return since, until
    return max(since, known["since"]), min(until, known["until"])


_Span = tuple[datetime, datetime]
_NO_DAYS = Days(np.zeros(0), np.zeros(0))


def _sides(
    store: Store, change: Changed, spans: tuple[_Span, _Span], goals: Goals
) -> tuple[Days | None, Days | None]:
    """Days before and after in the change's own measure; None where nothing is known."""
    if change.waits is None:
        return _days(store, change, *spans[0]), _days(store, change, *spans[1])
    if not all(_some(*_whole_days(*span)) for span in spans):
        return _NO_DAYS, _NO_DAYS
    from scheduler_advisor.followup.wait_days import wait_days  # loads the compiler
    from scheduler_advisor.search.candidate import Gain

    before, after = (_past(store, change.cluster, *_whole_days(*span)) for span in spans)
    if before is None or after is None:
        return None, None
    return wait_days(before, after, Gain(change.waits), goals)


def _some(first: datetime, last: datetime) -> bool:
    return first < last


def _days(store: Store, change: Changed, since: datetime, until: datetime) -> Days | None:
    """Days of the change's own measure."""
    if change.measure is None:
        return days_of(store, change.cluster, since, until)
    first, last = _whole_days(since, until)
    if not _some(first, last):
        return _NO_DAYS
    with store.work() as work:
        return fact_days(work, change, first, last)


def days_of(store: Store, cluster: str, since: datetime, until: datetime) -> Days | None:
    """Blocked and asked GPU-hours of the whole UTC days between; None where nothing is known."""
    first, last = _whole_days(since, until)
    if not _some(first, last):
        return _NO_DAYS
    past = _past(store, cluster, first, last)
    return None if past is None else observed_days(past)


def _past(store: Store, cluster: str, first: datetime, last: datetime) -> Past | None:
    from scheduler_advisor.past import past_of  # this and the next load the compiler
    from scheduler_advisor.readers.errors import ReaderError
    from scheduler_advisor.readers.store import read_history

    try:
        history = read_history(store, cluster, first, last)
    except ReaderError:
        return None  # the cluster or its jobs are not known there: nothing to judge by
    return past_of(
        history.read, history.cluster, since=int(first.timestamp()) - history.origin_s,
        until=int(last.timestamp()) - history.origin_s, origin_s=history.origin_s,
    )  # fmt: skip


def observed_days(past: Past) -> Days:
    """From real starts: GPU-hours free while jobs waited, and asked for, by day."""
    from scheduler_advisor.followup.wait_days import asked_by_day
    from scheduler_advisor.integrals import blocked_between
    from scheduler_advisor.past import DAY_S

    edges = np.arange(past.since, past.until + 1, DAY_S, dtype=float)
    gpus, start = past.gpus_held, past.real_start
    asked = [(past.jobs.eligible, gpus), (start, -gpus)]
    blocked = blocked_between(past.cluster, asked, (start, past.real_end, gpus), edges)
    return Days(blocked, asked_by_day(past, edges))


def _whole_days(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    return _midnight(since + timedelta(days=1) - timedelta(microseconds=1)), _midnight(until)


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


__all__ = ["Outcome", "days_of", "judge", "observed_days", "save_outcomes"]
