"""A report as long work: the ledger, a replay of each cluster, the report, and all of it kept."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from collector.store import Store, Work
from scheduler_advisor.compiled import wait_for_compiler
from scheduler_advisor.followup.record import save_outcomes
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.forms import rendered
from scheduler_advisor.report.json_form import report_json
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.window import Window

if TYPE_CHECKING:
    from scheduler_advisor.crew import Crew
    from scheduler_advisor.followup.follow import Outcome
    from scheduler_advisor.replayed import Replayed
    from scheduler_advisor.report.contents import WeeklyReport
    from scheduler_advisor.running.run import Run
    from scheduler_advisor.workers import Workers

Keep = Callable[[Callable[[Work], int]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWish:
    """What to make; ``forms`` of `report.forms.FORMS` come with it as files."""

    window: Window
    goals: Goals
    cluster: str | None = None
    language: str = "en"
    forms: tuple[str, ...] = ()
    replay: bool = True
    thorough: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is made. ``account`` builds the window's ledger; ``keep`` writes, all or nothing."""

    store: Store
    clock: Callable[[], datetime]
    account: Callable[[Window], object]
    keep: Keep


def made(run: Run, crew: Crew, wish: ReportWish, place: Place) -> dict[str, Any]:
    """The report as JSON with ``files`` in base64, and kept with the judgement of what was changed;
    CancelledError, with nothing kept, where somebody has stopped the run."""
    report = worked_out(run, crew, wish, place)
    files = {form: rendered(report, form, wish.language) for form in wish.forms}
    outcomes = judged(place, wish.goals, wish.replay)
    run.tell("report")
    place.keep(lambda work: kept(work, report, outcomes, place.clock()))
    encoded = {form: base64.b64encode(content).decode() for form, content in files.items()}
    return {**report_json(report, wish.language), "files": encoded}


def worked_out(run: Run, crew: Workers, wish: ReportWish, place: Place) -> WeeklyReport:
    """The report; nothing is written but the window's ledger."""
    run.tell("ledger")
    place.account(wish.window)
    replays = _replays(run, crew, wish, place.store) if wish.replay else ()
    run.part = max(run.parts - 1, 0)
    run.tell("report")
    return make_report(
        place.store, wish.window, wish.goals, at=place.clock(), cluster=wish.cluster,
        replays=replays,
    )  # fmt: skip


def judged(place: Place, goals: Goals, replays: bool = True) -> list[Outcome]:
    """What became of every change of the last months; without ``replays`` of advice from facts."""
    from scheduler_advisor.followup.follow import judge  # loads the compiler for replays

    return judge(place.store, place.clock(), replays=replays, goals=goals)


def kept(work: Work, report: WeeklyReport, outcomes: list[Outcome], ts: datetime) -> int:
    """The report and the judgements as rows; how many."""
    return save_report(work, report) + save_outcomes(work, outcomes, ts)


def _replays(run: Run, crew: Workers, wish: ReportWish, store: Store) -> Sequence[Replayed]:
    from scheduler_advisor.steps import Watch, clusters_of, replay_advice  # loads the compiler

    wait_for_compiler(run)
    names = [wish.cluster] if wish.cluster is not None else clusters_of(store, wish.window)
    run.parts = max(len(names), 1)
    watch = Watch(progress=run.tell, cancelled=run.stop.is_set, workers=crew,
                  thorough=wish.thorough)  # fmt: skip
    found = []
    for place, name in enumerate(names):
        run.part = place
        run.tell("read")
        found.append(replay_advice(store, wish.window, wish.goals, name, watch))
    return found
