"""Long work on a page: how far it is, what it waits for, and a button that ends it."""

from __future__ import annotations

from html import escape

import streamlit as st

from dashboard import connection
from dashboard.clicked import now
from dashboard.frame import Page
from dashboard.parts.html import show
from dashboard.parts.refusal import refusal_text
from dashboard.words import Words
from scheduler_advisor.compiled import compiling, simulator_is_warm
from scheduler_advisor.messages import Words as Sentences
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.running.runs import Runs, runs_of

REDRAWN_EVERY_S = 0.5


def page_runs(page: Page) -> Runs:
    """The long work over the page's store, whoever began it."""
    return runs_of(connection.store_at(page.path), now)


def watched(page: Page, run: Run, key: str) -> None:
    """Progress of a run that works, drawn twice a second; the rest of the page stays."""
    words, answered = page.words, run.result is not None

    @st.fragment(run_every=REDRAWN_EVERY_S)
    def progress() -> None:
        if run.state is not RunState.RUNNING or answered != (run.result is not None):
            st.rerun()
        st.progress(min(run.share, 1.0), text=stage_text(run, words))
        hint = waiting_text(run, words)
        if hint:
            show(f'<p class="hint">{escape(hint)}</p>')
        if run.stop.is_set():
            show(f'<p class="hint">{escape(words("run.stopping"))}</p>')
        elif st.button(words("run.cancel"), key=f"{key}_cancel"):
            page_runs(page).cancel(run.run_id)

    progress()


def ended(run: Run, words: Words) -> None:
    """What is to be said of a run that brought nothing."""
    if run.withheld is not None:
        st.warning(f"{words('run.withheld')} {run.withheld.said(Sentences(words.language))}")
    elif run.state is RunState.FAILED:
        st.error(f"{words('run.failed')} {refusal_text(run.error or '', words)}")
    elif run.state is RunState.CANCELLED:
        st.info(words("run.cancelled"))


def stage_text(run: Run, words: Words) -> str:
    """The stage, and how many of its steps are done."""
    counted = f" {run.done} / {run.total}" if run.total and run.stage != "compile" else ""
    where = f" · {run.part + 1} / {run.parts} {words('run.clusters')}" if run.parts > 1 else ""
    return words(f"stage.{run.stage}") + counted + where


def waiting_text(run: Run, words: Words) -> str | None:
    """Why it does not move yet: the simulator is compiled once on every machine."""
    if run.stage == "compile":
        return compiler_text(words)
    if not run.done and not simulator_is_warm():
        return words("run.first_use")
    return None


def compiler_text(words: Words) -> str | None:
    """How far the compiler is and when it will be ready; None where nothing is compiled."""
    state = compiling()
    if state is None:
        return None
    minutes = max(round(state.left_s / 60), 1)
    return words("run.compiling", share=f"{state.share:.0%}", minutes=minutes, what=state.what)
