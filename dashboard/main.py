"""The script that Streamlit runs for every page view: navigation, settings, then the page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from analytics.errors import AnalyticsError
from dashboard.frame import read_page_view
from dashboard.navigation import remember
from dashboard.sidebar import SECTIONS, sidebar
from dashboard.words import Words

HERE = Path(__file__).parent
FIRST = "overview"

st.set_page_config(
    page_title="unstrand",
    page_icon=str(HERE / "assets" / "icon.png"),
    layout="wide",
    initial_sidebar_state=232,
)
st.html(HERE / "assets" / "style.css")

view = read_page_view()
words = Words(view.language)
pages = {
    name: st.Page(
        HERE / "pages" / f"{name}.py",
        title=words(f"{name}.nav"),
        url_path="" if name == FIRST else name,
        default=name == FIRST,
    )
    for names in SECTIONS.values()
    for name in names
}
page = st.navigation(list(pages.values()), position="hidden")
remember(pages)
sidebar(pages, view, words)
try:
    page.run()
except AnalyticsError as error:
    # It says what, where and what to do; anything else is a fault of ours and goes to the log.
    st.error(str(error))
