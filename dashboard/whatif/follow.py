"""Start, progress, cancel. The replay runs in processes of its own: no page waits for another."""

from __future__ import annotations

from html import escape

import streamlit as st

from dashboard.frame import Page
from dashboard.parts.html import show
from dashboard.parts.progress import compiler_text, ended, page_runs, watched
from dashboard.parts.refusal import refusal_text
from scheduler_advisor.compiled import simulator_is_warm
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.whatif.wish import Wish
from scheduler_advisor.window import Window

_KEY = "whatif_run"


def window_of(page: Page) -> Window:
    """The page's window, as far as facts are known."""
    until = min(page.view.until, page.span.until)
    return Window(page.view.since, until.replace(minute=0, second=0, microsecond=0), page.view.zone)


def follow(page: Page, cluster: str, wish: Wish) -> Run | None:
    """The session's run: started, running (drawn again by itself), or done."""
    from scheduler_advisor.whatif.try_out import start_whatif  # loads the compiler

    words, runs = page.words, page_runs(page)
    if st.button(words("whatif.run"), type="primary", key="whatif_start"):
        try:
            run = start_whatif(runs, window_of(page), cluster, wish)
        except AdvisorError as error:
            st.error(refusal_text(error, words))
            return None
        st.session_state[_KEY] = run.run_id
    found = runs.get(st.session_state.get(_KEY, ""))
    if found is None:
        _before(page)
        return None
    if found.state is RunState.RUNNING:
        watched(page, found, "whatif")
    ended(found, words)
    return found


def _before(page: Page) -> None:
    """What to do, and whether a first try would have to wait for the compiler."""
    words = page.words
    said = words("whatif.empty")
    if not simulator_is_warm():
        said += " " + (compiler_text(words) or words("run.will_compile"))
    show(f'<div class="card"><p>{escape(said)}</p></div>')
