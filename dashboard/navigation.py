"""Going from a page to another one with the same window, zone and language."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.palette import HELD, STRANDED
from dashboard.view import View

# What belongs to one page and does not go along to another.
PAGE_ONLY = dict.fromkeys(("project", "user", "job", "class", "queue", "state", "shape", "back"))
_KEY = "pages"
_PAGE_OF_CLASS = {
    **dict.fromkeys(STRANDED, "stranding"),
    "gang_wait": "queue",
    "policy_blocked": "queue",
    "unknown": "health",
}
OTHERWISE = "fleet"


def remember(pages: Mapping[str, StreamlitPage]) -> None:
    """Make ``pages`` known to `go`."""
    st.session_state[_KEY] = pages


def go(name: str, view: View, **more: str | None) -> None:
    """Open the page ``name`` on ``view`` with ``more`` in its address; ends the script."""
    query = view.address(**(PAGE_ONLY | more))
    st.switch_page(st.session_state[_KEY][name], query_params=query)


def go_to_class(name: str | None, view: View) -> None:
    """Open what is behind a ledger class: jobs for held time, else where it is explained."""
    if name is None or name in HELD:
        go("jobs", view, **{"class": name})
    go(_PAGE_OF_CLASS.get(name or "", OTHERWISE), view)
