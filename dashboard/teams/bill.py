"""A team's adjustments beside its cost, and its month as a statement to take away."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from html import escape
from zoneinfo import ZoneInfo

import streamlit as st

from analytics.months import Month
from analytics.statements import Asked, statement_of
from analytics.statements.issue import issue_rows, issued_file
from analytics.window import Window
from dashboard.connection import store_at
from dashboard.data import Report
from dashboard.formats import moment, money
from dashboard.frame import Page
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show
from dashboard.teams.names import team_name
from scheduler_advisor.statement import rendered, safe_name

_KINDS = {"html": "text/html", "pdf": "application/pdf", "csv": "text/csv"}


def adjustments(page: Page, report: Report, team: str | None = None) -> None:
    """Approved adjustments of the window's months, of one team or of all; beside every row."""
    words = page.words
    own = [entry for entry in report.adjustments if team in (None, entry["team"])]
    if not own:
        return
    show(heading(words("teams.adjustments"), words("teams.adjustments_note")))
    st.dataframe(own, key="adjustments_table", hide_index=True, placeholder="–")
    downloads("adjustments", own, words)


def bill(page: Page, window: Window, report: Report, team: str) -> None:
    """The team's adjustments, and the statement of the month that the window begins in."""
    words = page.words
    adjustments(page, report, team)
    month = Month.of(window.since.astimezone(ZoneInfo(window.time_zone)).date())
    show(heading(words("teams.bill", team=team_name(team, words)), words("teams.bill_note")))
    with st.container(horizontal=True):
        for form, kind in _KINDS.items():
            st.download_button(
                words("teams.statement", month=str(month), form=form.upper()),
                partial(_made, page, window, month, team, form),
                f"statement-{safe_name(team)}-{month}.{form}",
                kind,
                key=f"statement_{form}",
                on_click="ignore",
            )
    _issued(page, window, month, team)


def _issued(page: Page, window: Window, month: Month, team: str) -> None:
    """What was issued of it: each version, and its page as it went out."""
    words, view = page.words, page.view
    with store_at(page.path).work() as work:
        rows = [
            row for row in issue_rows(work, month, team)
            if (row["cluster"], row["time_zone"]) == (view.cluster, window.time_zone)
        ]  # fmt: skip
    for row in rows:
        text = words(
            "teams.issued", version=row["version"], id=row["statement_id"],
            at=moment(row["issued_at"], view.zone), cost=money(row["total"], row["currency"]),
        )  # fmt: skip
        show(f'<p class="fine">{escape(text)}</p>')
        st.download_button(
            words("teams.issued_page", version=row["version"]),
            partial(_frozen, page, row["issue_id"]),
            f"statement-{safe_name(team)}-{month}-v{row['version']}.html",
            "text/html",
            key=f"issued_{row['issue_id']}",
            on_click="ignore",
        )


def _frozen(page: Page, issue_id: str) -> bytes:
    with store_at(page.path).work() as work:
        return issued_file(work, issue_id, "html", page.view.language)


def _made(page: Page, window: Window, month: Month, team: str, form: str) -> bytes:
    """Made when it is asked for: a month's statement is several reports."""
    view = page.view
    asked = Asked(month, window.time_zone, view.cluster, view.currency)
    now = datetime.now(UTC)  # noqa: TID251 - a person's click happens now
    statement = statement_of(store_at(page.path), team, asked, now=now)
    return rendered(statement, form, view.language)
