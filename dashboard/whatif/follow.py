"""Start, progress, cancel. The replay runs in processes of its own: no page waits for another."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import connection
from dashboard.frame import Page
from dashboard.parts.html import show
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.whatif.wish import Wish
from scheduler_advisor.window import Window

if TYPE_CHECKING:
    from scheduler_advisor.whatif.runs import Run

_KEY = "whatif_run"


def window_of(page: Page) -> Window:
    """The page's window, as far as facts are known."""
    until = min(page.view.until, page.span.until)
    return Window(page.view.since, until.replace(minute=0, second=0, microsecond=0), page.view.zone)


def follow(page: Page, cluster: str, wish: Wish) -> Run | None:
    """The session's run: started, running (drawn again by itself), or done."""
    from scheduler_advisor.whatif.runs import runs  # loads the compiler

    words = page.words
    if st.button(words("whatif.run"), type="primary", key="whatif_start"):
        try:
            store = connection.store_at(page.path)
            st.session_state[_KEY] = runs().start(store, window_of(page), cluster, wish).run_id
        except AdvisorError as error:
            st.error(str(error))
            return None
    run = runs().get(st.session_state.get(_KEY, ""))
    if run is None:
        show(f'<div class="card"><p>{escape(words("whatif.empty"))}</p></div>')
        return None
    if run.state == "running":
        _running(page)
    elif run.state == "failed":
        st.error(run.error or "")
    elif run.state == "cancelled":
        st.info(words("whatif.cancelled"))
    return run


def _running(page: Page) -> None:
    """Progress of a running what-if, drawn twice a second; the rest of the page stays."""
    words = page.words

    @st.fragment(run_every=0.5)
    def progress() -> None:
        from scheduler_advisor.whatif.runs import runs

        run = runs().get(st.session_state.get(_KEY, ""))
        if run is None or run.state != "running":
            st.rerun()
        share = run.done / run.total if run.total else 0.0
        stage = words(f"whatif.stage_{run.stage}")
        counted = f" {run.done} / {run.total}" if run.total else ""
        st.progress(min(share, 1.0), text=stage + counted)
        if st.button(words("whatif.cancel"), key="whatif_cancel"):
            runs().cancel(run.run_id)

    progress()
