"""Pages that draw themselves anew when what they wait for has come."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

LOOKED_AT_EVERY_S = 2.0


def redrawn_when(happened: Callable[[], bool]) -> None:
    """Looks every two seconds, and draws the whole page anew once it ``happened``."""

    @st.fragment(run_every=LOOKED_AT_EVERY_S)
    def look() -> None:
        if happened():
            st.rerun()

    look()
