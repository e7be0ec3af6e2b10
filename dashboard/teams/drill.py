"""From a team to its projects, users and jobs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from analytics.window import Window
from dashboard import data
from dashboard.data import Report
from dashboard.figures import Row
from dashboard.frame import Page
from dashboard.navigation import go
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show
from dashboard.teams.names import team_name
from dashboard.teams.table import column_config, holder_table

JOBS_SHOWN = 100
_NONE = (None, "unmapped")


def drill_down(page: Page, window: Window, team: str) -> None:
    """Projects of a team where it has some; users and jobs of the one chosen, or of all."""
    if st.button(page.words("teams.back"), key="all_teams", type="tertiary"):
        _leave("team", "project", "user")
    _projects(page, window, team)
    _users(page, window, team)
    _jobs(page, window, team)


def _projects(page: Page, window: Window, team: str) -> None:
    words, chosen = page.words, page.view.project
    report = _report(page, window, "project")
    rows = _of(report, page, team)
    if all(row["project"] in _NONE for row in rows):
        return
    show(heading(words("teams.drill_projects", team=team_name(team, words))))
    if chosen and st.button(words("teams.all_projects"), key="all_projects", type="tertiary"):
        _leave("project", "user")
    none = words("teams.no_project")
    names = [none if row["project"] in _NONE else row["project"] for row in rows]
    row = _pick(page, report, rows, names, "project")
    if row is not None and row["project"] not in (None, chosen):
        st.query_params["project"] = row["project"]
        st.query_params.pop("user", None)
        st.rerun()
    downloads("projects", rows, words)


def _users(page: Page, window: Window, team: str) -> None:
    words = page.words
    report = _report(page, window, *_within(page), "user")
    rows = _of(report, page, team)
    show(heading(words("teams.drill", team=page.view.project or team_name(team, words))))
    row = _pick(page, report, rows, [str(row["user"] or "–") for row in rows], "user")
    if row is not None and row["user"] not in (None, page.view.user):
        st.query_params["user"] = str(row["user"])
        st.rerun()
    downloads("users", rows, words)


def _jobs(page: Page, window: Window, team: str) -> None:
    words, user = page.words, page.view.user
    report = _report(page, window, *_within(page), "user", "job")
    rows = [row for row in _of(report, page, team) if user is None or row["user"] == user]
    shown = rows[:JOBS_SHOWN]
    name = user or page.view.project or team_name(team, words)
    hint = words("teams.jobs_shown", shown=len(shown), count=f"{len(rows):,}")
    show(heading(words("teams.drill_jobs", name=name), hint))
    row = _pick(page, report, shown, [str(row["job"] or "–") for row in shown], "job")
    if row is not None and row["job"] is not None:
        go("jobs", page.view, job=str(row["job"]))
    downloads("jobs", rows, words)


def _pick(
    page: Page, report: Report, rows: Sequence[Row], names: Sequence[str], key: str
) -> Row | None:
    """A table of holders; the row that the viewer chose."""
    view = page.view
    chosen = st.dataframe(
        holder_table(names, rows, key, report),
        key=f"{key}_table_{view.team}_{view.project if key != 'project' else ''}_"
        f"{view.user if key == 'job' else ''}",
        hide_index=True,
        placeholder="–",
        column_config=column_config(key, report, page.words),
        on_select="rerun",
        selection_mode="single-row",
    )
    picked = chosen.selection.rows
    return rows[picked[0]] if picked else None


def _within(page: Page) -> tuple[str, ...]:
    return ("project",) if page.view.project else ()


def _report(page: Page, window: Window, *keys: str) -> Report:
    view = page.view
    return data.cost(page.path, window, ("team", *keys), view.cluster, view.currency)


def _of(report: Report, page: Page, team: str) -> list[Row]:
    """Rows of the team, and of the chosen project where rows have one; the dearest first."""
    chosen = page.view.project
    rows = [
        row
        for row in report.rows
        if row["team"] == team
        and ("user" not in row or chosen is None or row.get("project") == chosen)
    ]
    return sorted(rows, key=lambda row: -(row["cost"] or 0))


def _leave(*parameters: str) -> None:
    for parameter in parameters:
        st.query_params.pop(parameter, None)
    st.rerun()
