"""The weekly report on time: a cron in a stated zone, one catch-up after downtime, never twice.

The watermark row says up to which planned time the report has been made. At each look the latest
planned time that has passed is compared with it: if it is newer, one report is made, however many
were missed, and the watermark moves in the same transaction as the report is stored.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apscheduler.triggers.cron import CronTrigger

from analytics.health.span import facts_span
from analytics.ledger import ensure_built
from collector.store import Store, Work
from scheduler_advisor.delivery.deliver import deliver
from scheduler_advisor.delivery.receivers import load_receivers
from scheduler_advisor.errors import GoalsError
from scheduler_advisor.goals import Goals, load_goals
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.running.report import Place, ReportWish, judged, kept, worked_out
from scheduler_advisor.running.run import Run
from scheduler_advisor.running.runs import runs_of
from scheduler_advisor.window import Window, window_back
from scheduler_advisor.workers import CancelledError

if TYPE_CHECKING:
    from scheduler_advisor.crew import Crew

log = logging.getLogger(__name__)

TASK = "weekly_report"
LOOK_EVERY = timedelta(minutes=1)
SEARCH_DAYS = (8, 32, 128, 400)  # back from now; less than once a year is refused


@dataclass(slots=True)
class WeeklyReports:
    """Makes, stores and sends the report whenever it is due."""

    store: Store
    clock: Callable[[], datetime]
    goals_file: Path | None = None
    delivery_file: Path | None = None
    replay: bool = True  # try changes of scheduling too, which takes minutes of two processes
    account: Callable[[Window], object] | None = None  # default: build the window's ledger here
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run_if_due(self) -> WeeklyReport | None:
        """One report if one is due, else None; safe to call from several threads."""
        with self._lock:
            goals = load_goals(self.goals_file)
            now = self.clock()
            span = facts_span(self.store)
            planned = self._due(goals, now)
            if planned is None or span is None:
                return None
            runs = runs_of(self.store, self.clock)
            try:
                report = self._made(goals, min(planned, span.until))
            except CancelledError:
                if runs.closing:
                    raise
                self._skip(planned, now)
                return None
            if self.delivery_file is not None:
                receivers = load_receivers(self.delivery_file)
                for result in deliver(self.store, report, receivers, clock=self.clock):
                    if result.error is not None:
                        log.error("the weekly report was not delivered: %s", result.error)
            # Last: after a crash before this line the report is made again, but nobody gets it
            # twice, because deliveries are kept by window.
            self._finish(report, goals, planned, now)
            return report

    def _due(self, goals: Goals, now: datetime) -> datetime | None:
        last = last_planned(goals.report.cron, goals.report.time_zone, now)
        done = self.store.value("SELECT max(done_until) FROM watermark WHERE task = ?", [TASK])
        # Without a watermark there is no report yet: the first one comes with the first facts.
        return last if done is None or last > done else None

    def _made(self, goals: Goals, until: datetime) -> WeeklyReport:
        """As long work, which people can follow and cancel (CancelledError)."""
        window = window_back(goals.report.window, until, goals.report.time_zone)
        wish = ReportWish(window=window, goals=goals, replay=self.replay)
        found: list[WeeklyReport] = []

        def doing(run: Run, crew: Crew) -> dict[str, Any]:
            found.append(worked_out(run, crew, wish, self._place()))
            return {"report_id": found[0].report_id}

        runs_of(self.store, self.clock).here("advice", None, window, doing)
        return found[0]

    def _place(self) -> Place:
        account = self.account or (lambda window: ensure_built(self.store, window))
        return Place(self.store, self.clock, account, keep=lambda write: write)

    def _finish(self, report: WeeklyReport, goals: Goals, planned: datetime, now: datetime) -> None:
        outcomes = judged(self._place(), goals, self.replay)
        with self.store.work() as work, work.transaction():
            kept(work, report, outcomes, now)
            _mark(work, planned, now)
        log.info("the weekly report %s of %s is made", report.report_id, planned.isoformat())

    def _skip(self, planned: datetime, now: datetime) -> None:
        """Somebody cancelled it: the next one comes at its time, not in a minute."""
        with self.store.work() as work, work.transaction():
            _mark(work, planned, now)
        log.warning("the weekly report of %s was cancelled", planned.isoformat())


def _mark(work: Work, planned: datetime, now: datetime) -> None:
    work.execute("DELETE FROM watermark WHERE task = ?", [TASK])
    work.append("watermark", {"task": [TASK], "done_until": [planned], "ts": [now]})


def last_planned(cron: str, time_zone: str, now: datetime) -> datetime:
    """The latest time at or before ``now`` at which the cron fires, in UTC.

    Raises GoalsError for a cron that cannot be read or that never fires.
    """
    try:
        trigger = CronTrigger.from_crontab(_named_days(cron), timezone=time_zone)
    except ValueError as error:
        raise GoalsError(
            f"report.cron: {cron!r} is no cron of five fields (minute hour day month weekday): "
            f"{error}"
        ) from error
    for days in SEARCH_DAYS:
        found = _last_within(trigger, now - timedelta(days=days), now)
        if found is not None:
            return found
    raise GoalsError(
        f"report.cron: {cron!r} does not fire once a year: the report would never come"
    )


def _named_days(cron: str) -> str:
    """Weekday numbers as names: in every cron 0 and 7 are Sunday, in APScheduler 0 is Monday."""
    *others, days = cron.split() or [""]
    names = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
    named = re.sub(r"(?<![/\d])[0-7](?!\d)", lambda found: names[int(found[0])], days)
    return " ".join([*others, named])


def _last_within(trigger: CronTrigger, since: datetime, now: datetime) -> datetime | None:
    last, at = None, trigger.get_next_fire_time(None, since)
    while at is not None and at <= now:
        last = at.astimezone(UTC)
        at = trigger.get_next_fire_time(at, at + timedelta(microseconds=1))
    return last
