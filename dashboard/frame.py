"""What every page has around it: banner, title, answer, window, and the states without facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from html import escape
from zoneinfo import ZoneInfo

import streamlit as st

from dashboard import connection, data
from dashboard.formats import moment, percent
from dashboard.parts.html import show, strong
from dashboard.parts.redraw import redrawn_when
from dashboard.view import DEFAULT_DAYS, View, read_view
from dashboard.words import Words

EMPTY_COMMANDS = (
    ("empty.slurm", "unstrand import slurm --cluster NAME --live"),
    ("empty.demo", "unstrand demo"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """One view of one store."""

    path: str
    view: View
    words: Words
    span: data.Span


def read_page_view() -> View:
    """The view of the address, over whatever the store knows."""
    path = connection.current_path()
    span = data.span(path) if path else None
    today = datetime.now(UTC).date()  # noqa: TID251 - only where nothing at all is known
    view = read_view(st.query_params, span.until if span else None, today)
    if path is None or span is None:
        return view
    if view.cluster is not None and view.cluster not in span.clusters:
        view = replace(view, cluster=None, remarks=(*view.remarks, ("cluster", view.cluster)))
    if view.currency is not None and view.currency not in data.currencies(path):
        view = replace(view, currency=None, remarks=(*view.remarks, ("currency", view.currency)))
    return view


def open_page(name: str) -> Page:
    """The page ``name`` with its title shown; ends the script where there is nothing to show."""
    path = connection.current_path()
    view = read_page_view()
    words = Words(view.language)
    if path is None:
        show(f'<div class="card">{escape(words("app.stopping"))}</div>')
        st.stop()
    _banner(path, words)
    span = data.span(path)
    if span is None:
        show(f"<h1>{escape(words(f'{name}.title'))}</h1>")
        _nothing(words)
        _looked_at_again(None)
        st.stop()
    _title(name, words, span, view)
    for parameter, value in view.remarks:
        st.warning(words("app.bad_address", name=parameter, value=value))
    if view.since >= span.until or view.until <= span.since:
        _outside(words, view, span)
        st.stop()
    if span.ledger_until is None or span.ledger_until <= view.since:
        _card(words("empty.unbuilt_title"), escape(words("empty.unbuilt_text")))
        _looked_at_again(span)
        st.stop()
    return Page(path, view, words, span)


def _looked_at_again(shown: data.Span | None) -> None:
    """Draws the page anew once the store holds something else than was ``shown``: nobody has to
    reload a page that was opened while its facts or their ledger were on the way."""

    def changed() -> bool:
        path = connection.current_path()
        return path is None or data.has_changed(path, shown)

    redrawn_when(changed)


def answer(text: str, page: Page, coverage: float | None, price_book: str | None) -> None:
    """The page's answer in a sentence, with the window and how much of it is known."""
    words, view = page.words, page.view
    line = "window.line" if view.days > 1 else "window.line_one"
    parts = [
        words(line, first=view.first, last=view.last, days=view.days, zone=view.zone),
    ]
    if coverage is not None:
        parts.append(words("window.coverage", coverage=percent(coverage)))
    if price_book:
        parts.append(words("window.prices", book=price_book))
    help_text = escape(words("window.coverage_help"))
    meta = "".join(f'<span title="{help_text}">{escape(part)}</span>' for part in parts)
    show(f'<p class="answer">{strong(text)}</p><p class="meta">{meta}</p>')


def _banner(path: str, words: Words) -> None:
    if data.kind(path) == "demo":
        show(f'<div class="banner">{escape(words("app.demo"))}</div>')


def _title(name: str, words: Words, span: data.Span, view: View) -> None:
    left, right = st.columns([5, 3], vertical_alignment="bottom")
    with left:
        show(f"<h1>{escape(words(f'{name}.title'))}</h1>")
    with right:
        _window_picker(words, span, view)


def _window_picker(words: Words, span: data.Span, view: View) -> None:
    """Presets end at the last known moment; the dates are days of the view's time zone."""
    presets, dates = st.columns([2, 3], vertical_alignment="bottom")
    last = (span.until - timedelta(microseconds=1)).astimezone(ZoneInfo(view.zone)).date()
    first = span.since.astimezone(ZoneInfo(view.zone)).date()
    starts = {
        words("app.preset_7"): last - timedelta(days=6),
        words("app.preset_28"): last - timedelta(days=DEFAULT_DAYS - 1),
    }
    shown = next((n for n, s in starts.items() if (s, last) == (view.first, view.last)), None)
    with presets:
        st.session_state["preset"] = shown
        st.segmented_control(
            words("app.window"),
            list(starts),
            key="preset",
            label_visibility="collapsed",
            on_change=lambda: _choose(starts.get(st.session_state["preset"]), last),
        )
    with dates:
        st.session_state["dates"] = (view.first, view.last)
        st.date_input(
            words("app.window"),
            key="dates",
            min_value=min(first, view.first),
            max_value=max(last, view.last),
            format="YYYY-MM-DD",
            label_visibility="collapsed",
            on_change=_choose_dates,
        )


def _choose(first: date | None, last: date) -> None:
    if first is not None:
        st.query_params["from"] = first.isoformat()
        st.query_params["to"] = last.isoformat()


def _choose_dates() -> None:
    chosen = st.session_state["dates"]
    if len(chosen) == 2:
        _choose(chosen[0], chosen[1])


def _nothing(words: Words) -> None:
    ways = "".join(
        f"<p>{escape(words(name))}</p><pre>{escape(command)}</pre>"
        for name, command in EMPTY_COMMANDS
    )
    _card(
        words("empty.title"),
        f"{escape(words('empty.text'))}{ways}<p>{escape(words('empty.gpu'))}</p>",
    )


def _outside(words: Words, view: View, span: data.Span) -> None:
    text = words(
        "empty.window_text",
        since=moment(span.since, view.zone),
        until=moment(span.until, view.zone),
    )
    _card(words("empty.window_title"), escape(text))
    if st.button(words("empty.window_button"), key="known_window"):
        for name in ("from", "to"):
            st.query_params.pop(name, None)
        st.rerun()


def _card(title: str, markup: str) -> None:
    show(f'<div class="card"><h2>{escape(title)}</h2><p>{markup}</p></div>')
