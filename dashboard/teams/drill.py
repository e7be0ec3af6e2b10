"""From a team to its users and jobs."""

from __future__ import annotations

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


def drill_down(page: Page, window: Window, team: str) -> None:
    """Users of a team; the jobs of the chosen user, or of all of them."""
    words, view = page.words, page.view
    name = team_name(team, words)
    users = data.cost(page.path, window, ("team", "user"), view.cluster, view.currency)
    rows = _of_team(users, team)
    show(heading(words("teams.drill", team=name)))
    if st.button(words("teams.back"), key="all_teams", type="tertiary"):
        for parameter in ("team", "user"):
            st.query_params.pop(parameter, None)
        st.rerun()
    chosen = st.dataframe(
        holder_table([str(row["user"] or "–") for row in rows], rows, "user", users),
        key=f"user_table_{team}",
        hide_index=True,
        column_config=column_config("user", users, words),
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
    )
    picked = chosen.selection.rows
    if picked and rows[picked[0]]["user"] != view.user:
        st.query_params["user"] = str(rows[picked[0]]["user"])
        st.rerun()
    downloads("users", rows, words)
    _jobs(page, window, team)


def _jobs(page: Page, window: Window, team: str) -> None:
    words, user = page.words, page.view.user
    jobs = data.cost(
        page.path, window, ("team", "user", "job"), page.view.cluster, page.view.currency
    )
    rows = [row for row in _of_team(jobs, team) if user is None or row["user"] == user]
    shown = rows[:JOBS_SHOWN]
    name = user or team_name(team, words)
    hint = words("teams.jobs_shown", shown=len(shown), count=f"{len(rows):,}")
    show(heading(words("teams.drill_jobs", name=name), hint))
    chosen = st.dataframe(
        holder_table([str(row["job"] or "–") for row in shown], shown, "job", jobs),
        key=f"job_table_{team}_{user}",
        hide_index=True,
        placeholder="–",
        height=min(400, 38 + 35 * max(1, len(shown))),
        column_config=column_config("job", jobs, words),
        on_select="rerun",
        selection_mode="single-row",
    )
    picked = chosen.selection.rows
    if picked and shown[picked[0]]["job"] is not None:
        go("jobs", page.view, job=str(shown[picked[0]]["job"]))
    downloads("jobs", rows, words)


def _of_team(report: Report, team: str) -> list[Row]:
    rows = [row for row in report.rows if row["team"] == team]
    return sorted(rows, key=lambda row: -(row["cost"] or 0))
