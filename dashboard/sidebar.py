"""The pages and the settings that hold for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.metadata import version

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard import connection, data
from dashboard.formats import moment
from dashboard.navigation import PAGE_ONLY
from dashboard.parts.html import show
from dashboard.view import ZONES, View
from dashboard.words import LANGUAGES, Words

SECTIONS = {
    "app.section_money": ("overview", "advice", "teams"),
    "app.section_cluster": ("fleet", "jobs", "stranding", "queue", "whatif"),
    "app.section_trust": ("health",),
}


def sidebar(pages: Mapping[str, StreamlitPage], view: View, words: Words) -> None:
    """Draw it; links keep what the address says."""
    path = connection.current_path()
    span = data.span(path) if path else None
    with st.sidebar:
        show(f'<div class="brand">{escape(words("app.name"))}</div>')
        for section, names in SECTIONS.items():
            show(f'<div class="hint">{escape(words(section))}</div>')
            for name in names:
                st.page_link(
                    pages[name],
                    label=words(f"{name}.nav"),
                    query_params=view.address(**PAGE_ONLY),
                    width="stretch",
                )
        _settings(path, view, words, span)
        _foot(view, words, span)


def _settings(path: str | None, view: View, words: Words, span: data.Span | None) -> None:
    clusters = span.clusters if span else ()
    if len(clusters) > 1:
        _choice(
            "cluster",
            words("app.cluster"),
            {"": words("app.all_clusters")} | _same(clusters),
            view.cluster or "",
        )
    currencies = data.currencies(path) if path else ()
    if len(currencies) > 1:
        chosen = view.currency or ""
        options = {"": words("app.own_currency")} | _same(currencies)
        _choice("currency", words("app.currency"), options, chosen)
    zones = ZONES if view.zone in ZONES else (*ZONES, view.zone)
    _choice("tz", words("app.zone"), _same(zones), view.zone)
    _choice("lang", words("app.language"), LANGUAGES, view.language)


def _choice(parameter: str, label: str, options: Mapping[str, str], chosen: str) -> None:
    """A choice whose value lives in the address only."""
    key = f"choice_{parameter}"
    st.session_state[key] = chosen

    def changed() -> None:
        if st.session_state[key]:
            st.query_params[parameter] = st.session_state[key]
        else:
            st.query_params.pop(parameter, None)

    st.selectbox(label, list(options), key=key, format_func=lambda v: options[v], on_change=changed)


def _foot(view: View, words: Words, span: data.Span | None) -> None:
    lines = [words("app.version", version=version("unstrand"))]
    if span is not None:
        lines.insert(
            0,
            words(
                "app.known",
                since=moment(span.since, view.zone),
                until=moment(span.until, view.zone),
                zone=view.zone,
            ),
        )
    show('<div class="foot">' + "<br>".join(escape(line) for line in lines) + "</div>")


def _same(values: tuple[str, ...]) -> dict[str, str]:
    return {value: value for value in values}
