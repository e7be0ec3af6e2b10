"""A report made from the file, or by the service that holds it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.health.span import facts_span
from collector.errors import StoreError
from collector.store import Store
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.goals import Goals, load_goals
from scheduler_advisor.window import Window, window_back
from unstrand.clock import utc_now
from unstrand.commands.followed import done_by_service
from unstrand.commands.progress import working
from unstrand.commands.source import ask, opened

if TYPE_CHECKING:
    from scheduler_advisor.delivery.receivers import Receivers
    from scheduler_advisor.replayed import Replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A report as asked for on the command line."""

    length: str
    until: datetime | None
    time_zone: str | None
    goals: Path | None
    cluster: str | None
    forms: tuple[str, ...]
    language: str | None
    delivery: Path | None
    replay: bool = True
    thorough: bool = False


def made_from_file(wish: Wish, db: Path | None) -> dict[str, Any]:
    """The report as JSON with ``files`` in base64; it is kept in the store."""
    from analytics.ledger import ensure_built
    from scheduler_advisor.delivery.receivers import load_receivers
    from scheduler_advisor.followup.follow import judge, save_outcomes
    from scheduler_advisor.report.forms import check, rendered
    from scheduler_advisor.report.json_form import report_json
    from scheduler_advisor.report.make import make_report
    from scheduler_advisor.report.saved import save_report

    goals = load_goals(wish.goals)
    language = wish.language or goals.report.language
    check(wish.forms, language)
    # Whoever cannot be sent to is told now, not after the minutes that a report takes.
    receivers = None if wish.delivery is None else load_receivers(wish.delivery)
    with opened(db) as store:
        window = _window(store, wish, goals)
        with working("bringing the ledger up to date"):
            ensure_built(store, window, cluster=wish.cluster)
        replays = _replays(store, window, goals, wish) if wish.replay else ()
        with working("looking for what to change"):
            report = make_report(
                store, window, goals, at=utc_now(), cluster=wish.cluster, replays=replays
            )
        files = {form: rendered(report, form, language) for form in wish.forms}
        if receivers is not None:
            _deliver(store, report, receivers)
        judged = judge(store, utc_now(), replays=wish.replay, goals=goals)
        with store.work() as work, work.transaction():
            save_report(work, report)
            save_outcomes(work, judged, utc_now())
    encoded = {form: base64.b64encode(content).decode() for form, content in files.items()}
    return {**report_json(report, language), "files": encoded}


def _replays(store: Store, window: Window, goals: Goals, wish: Wish) -> Sequence[Replayed]:
    """What replays of the window find; only this loads the compiler."""
    from scheduler_advisor.steps import Watch, replay_all
    from unstrand.commands.progress import counting

    with counting() as tell:
        watch = Watch(progress=tell, thorough=wish.thorough)
        return replay_all(store, window, goals, wish.cluster, watch)


def _deliver(store: Store, report: Any, receivers: Receivers) -> None:
    from scheduler_advisor.delivery.deliver import deliver
    from scheduler_advisor.errors import DeliveryError

    results = deliver(store, report, receivers, clock=utc_now)
    failed = [result.error for result in results if result.error is not None]
    if failed:
        raise DeliveryError("; ".join(failed))


def _window(store: Store, wish: Wish, goals: Goals) -> Window:
    span = facts_span(store, wish.cluster)
    until = wish.until or (span.until if span else None)
    if until is None:
        raise StoreError(
            f"{store.path} holds no facts, so there is nothing to advise on: import some first "
            "(unstrand import slurm --help)"
        )
    return window_back(wish.length, until, wish.time_zone or goals.report.time_zone)


def made_by_service(wish: Wish, address: str) -> dict[str, Any]:
    """The same, made and kept by the service."""
    if wish.delivery is not None:
        raise AdvisorError("--deliver works on the file: a service sends by its own schedule")
    goals = load_goals(wish.goals)
    text = wish.goals.read_text(encoding="utf-8") if wish.goals is not None else None
    until = wish.until or _known_until(address)
    window = window_back(wish.length, until, wish.time_zone or goals.report.time_zone)
    body = {
        "since": window.since.isoformat(), "until": window.until.isoformat(),
        "tz": window.time_zone, "cluster": wish.cluster, "goals": text,
        "language": wish.language or goals.report.language, "forms": list(wish.forms),
        "replay": wish.replay, "thorough": wish.thorough,
    }  # fmt: skip
    return done_by_service(address, "advice", body)


def _known_until(address: str) -> datetime:
    """The end of what the service knows: that of its default window."""
    document = ask(address, "report/waits")
    return datetime.fromisoformat(document["window"]["until"])


def newest_from_file(db: Path | None, language: str) -> dict[str, Any]:
    """The newest report of the store with its recommendations in the states of now."""
    from scheduler_advisor.report.saved import newest_report, recommendations_of

    with opened(db) as store, store.work() as work:
        row = newest_report(work)
        if row is None:
            raise AdvisorError("no report has been made yet: `unstrand advise` makes one")
        bodies = json.loads(row["body"])
        if language not in bodies:
            raise AdvisorError(f"no language {language!r}: one of {', '.join(bodies)}")
        body: dict[str, Any] = bodies[language]
        body["recommendations"] = recommendations_of(work, row["report_id"], utc_now(), language)
    return body
