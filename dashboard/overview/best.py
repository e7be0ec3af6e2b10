"""The three changes most worth making, from the newest report."""

from __future__ import annotations

from html import escape
from typing import Any

import streamlit as st

from dashboard.advice.cards import brings
from dashboard.advice.source import newest
from dashboard.frame import Page
from dashboard.navigation import go
from dashboard.parts.html import heading, show
from dashboard.parts.progress import page_runs
from dashboard.parts.redraw import redrawn_when
from scheduler_advisor.messages import Words as Sentences
from scheduler_advisor.running.run import RunState

SHOWN = 3


def best_advice(page: Page) -> None:
    """What it is, whom it is for and what it brings; the rest is on the page Advice."""
    words, view = page.words, page.view
    found = newest(page.path, view.language)
    worth = [rec for rec in found.open if rec["saving"]["gpu_hours"]] if found else []
    hint = (
        "" if found is None else words("overview.best_of", until=found.body["window"]["until"][:10])
    )
    show(heading(words("overview.best"), hint))
    if worth:
        sentences = Sentences(view.language)
        cards = "".join(
            f'<div class="best"><h3>{escape(rec["title"])}</h3>'
            f"<p>{escape(_owner(rec, sentences))}</p>{brings(rec, words, sentences)}</div>"
            for rec in worth[:SHOWN]
        )
        show(f'<div class="tiles">{cards}</div>')
    else:
        _nothing(page, made=found is not None)
    if st.button(words("overview.best_more", count=len(worth)), key="to_advice", type="tertiary"):
        go("advice", view)


def _nothing(page: Page, *, made: bool) -> None:
    """Why no change stands here: none is worth it, or the first report is still to come."""
    working = [] if made else page_runs(page).running("advice")
    text = "best_nothing" if made else "best_coming" if working else "best_none"
    show(f'<p class="fine">{escape(page.words(f"overview.{text}"))}</p>')
    if working:
        redrawn_when(lambda: working[0].state is not RunState.RUNNING)


def _owner(rec: dict[str, Any], sentences: Sentences) -> str:
    owner = rec["owner"]
    return " / ".join(filter(None, (owner["team"], owner["user"]))) or sentences.say(
        "phrase.platform"
    )
