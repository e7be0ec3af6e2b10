"""Make a report from the page: in processes, with progress and cancel, seen by everybody."""

from __future__ import annotations

from html import escape
from typing import Any

import streamlit as st

from dashboard import connection
from dashboard.clicked import now
from dashboard.formats import moment
from dashboard.frame import Page
from dashboard.parts.html import show
from dashboard.parts.progress import ended, page_runs, watched
from dashboard.parts.refusal import refusal_text
from scheduler_advisor.crew import Crew
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.saved import newest_report
from scheduler_advisor.running.journal import last_run
from scheduler_advisor.running.report import Place, ReportWish, made
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.window import Window

_KEY = "advice_run"


def making(page: Page) -> None:
    """The button, or the progress of the report that is being made, whoever began it."""
    words, view, runs = page.words, page.view, page_runs(page)
    working = runs.running("advice")
    if working:
        st.session_state[_KEY] = working[0].run_id
        watched(page, working[0], "advice")
        return
    run = runs.get(st.session_state.get(_KEY, ""))
    if run is not None:
        ended(run, words)
    _lost(page)
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button(words("advice.make", first=view.first, last=view.last), key="make")
        replay = st.checkbox(
            words("advice.replay"), value=True, key="make_replay", help=words("advice.replay_help")
        )
    if asked:
        try:
            _begin(page, replay=replay)
        except AdvisorError as error:
            st.error(refusal_text(error, words))
            return
        st.rerun()


def _begin(page: Page, *, replay: bool) -> None:
    store, view = connection.store_at(page.path), page.view
    window = Window(view.since, min(view.until, page.span.until), view.zone)
    wish = ReportWish(window=window, goals=Goals(), cluster=view.cluster, replay=replay)

    def keep(write: Any) -> None:
        with store.work() as work, work.transaction():
            write(work)

    # The service keeps the ledger as new as the facts, every minute.
    place = Place(store, now, account=lambda _: None, keep=keep)

    def doing(run: Run, crew: Crew) -> dict[str, Any]:
        return made(run, crew, wish, place)

    st.session_state[_KEY] = page_runs(page).begin("advice", view.cluster, window, doing).run_id


def _lost(page: Page) -> None:
    """The service ended while it made a report, and none has been made since."""
    with connection.store_at(page.path).work() as work:
        last, report = last_run(work, "advice"), newest_report(work)
    if last is None or last["state"] != RunState.LOST:
        return
    if report is None or report["ts"] < last["started_at"]:
        text = page.words("advice.lost", begun=moment(last["started_at"], page.view.zone))
        show(f'<div class="banner">{escape(text)}</div>')
