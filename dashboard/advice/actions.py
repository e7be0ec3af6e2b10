"""What people do with a recommendation: accept, snooze, dismiss with a reason, mark applied."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

import streamlit as st

from dashboard import connection
from dashboard.advice.cards import card, evidence
from dashboard.clicked import now
from dashboard.frame import Page
from dashboard.parts.refusal import refusal_text
from dashboard.words import Words
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.errors import AdvisorError

ACTOR = "dashboard"  # until people sign in


def whole_card(page: Page, rec: dict[str, Any]) -> None:
    """One recommendation with its buttons and its evidence."""
    with st.container(border=True):
        card(rec, page.words)
        with st.container(horizontal=True):
            actions(page, rec)
            evidence(rec, page.words)


def actions(page: Page, rec: dict[str, Any]) -> None:
    """The buttons under one card, side by side where they are put."""
    words, name = page.words, rec["id"]
    if rec["state"] not in ("new", "accepted"):
        if st.button(words("advice.reopen"), key=f"reopen-{name}"):
            _change(page, name, State.NEW)
        return
    if rec["state"] == "new" and st.button(words("advice.accept"), key=f"accept-{name}"):
        _change(page, name, State.ACCEPTED)
    if st.button(words("advice.applied"), key=f"applied-{name}"):
        _change(page, name, State.APPLIED)
    _snooze(page, name, words)
    _dismiss(page, name, words)


def _snooze(page: Page, name: str, words: Words) -> None:
    with st.popover(words("advice.snooze")):
        tomorrow = (now() + timedelta(days=1)).date()
        day = st.date_input(
            words("advice.snooze_until"), value=tomorrow + timedelta(days=27), min_value=tomorrow,
            key=f"until-{name}",
        )  # fmt: skip
        if st.button(words("advice.snooze"), key=f"snooze-{name}"):
            _change(page, name, State.SNOOZED, until=datetime.combine(day, time(), UTC))


def _dismiss(page: Page, name: str, words: Words) -> None:
    with st.popover(words("advice.dismiss")):
        reason = st.text_input(words("advice.reason"), key=f"reason-{name}")
        if st.button(words("advice.dismiss"), key=f"dismiss-{name}"):
            _change(page, name, State.DISMISSED, reason=reason)


def _change(
    page: Page, name: str, state: State, reason: str | None = None, until: datetime | None = None
) -> None:
    change = StateChange(ts=now(), state=state, actor=ACTOR, reason=reason, until=until)

    def write() -> None:
        with connection.store_at(page.path).work() as work:
            change_state(work, name, change)

    _done(write, page.words)


def _done(write: Callable[[], None], words: Words) -> None:
    """Show the new state, or why it was refused."""
    try:
        write()
    except AdvisorError as error:
        st.error(refusal_text(error, words))
    else:
        st.rerun()
