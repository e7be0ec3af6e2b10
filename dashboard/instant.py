"""The instant at which a page looks: the end of the window, or some hours before it."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st

from dashboard.frame import Page
from dashboard.view import MOST_HOURS_BACK


def asked_moment(page: Page) -> datetime:
    """The last known instant of the window (just before its end: intervals are half-open), or
    as many hours before it as the address says."""
    last = min(page.span.until, page.view.until) - timedelta(microseconds=1)
    return max(page.span.since, last - timedelta(hours=page.view.hours_back))


def pick_moment(page: Page) -> None:
    """A slider for the hours; its value lives in the address."""
    if "hours_back" not in st.session_state:
        st.session_state["hours_back"] = page.view.hours_back
    hours = st.slider(page.words("stranding.back"), 0, MOST_HOURS_BACK, key="hours_back")
    if hours != page.view.hours_back:
        st.query_params["back"] = str(hours)
        st.rerun()
