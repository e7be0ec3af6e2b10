"""What every team used, left idle, lost and stranded; choosing a row opens it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from dashboard.data import Report
from dashboard.figures import Row, cost_per_used_hour, row_efficiency
from dashboard.frame import Page
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show, tag
from dashboard.teams.names import team_name
from dashboard.words import Words
from scheduler_advisor.measurements.team_waits import TeamWaits

HOUR_COLUMNS = {
    "held": "held_gpu_hours",
    "used": "used_gpu_hours",
    "idle": "allocated_idle_gpu_hours",
    "lost": "lost_gpu_hours",
    "unmeasured": "allocated_unmeasured_gpu_hours",
    "stranded": "stranded_gpu_hours",
}


def team_table(report: Report, waits: Sequence[TeamWaits], page: Page) -> None:
    """The table with its total and downloads; the chosen team goes into the address."""
    words = page.words
    show(heading(words("teams.table"), words("teams.drill_hint"), after=tag("observed", words)))
    rows = sorted(report.rows, key=lambda row: -(row["cost"] or 0))
    names = [team_name(row["team"], words) for row in rows]
    table = holder_table(names, rows, "team", report)
    by_team = {wait.team or "unmapped": wait for wait in waits}
    of_row = [by_team.get(row["team"]) for row in rows]
    hours = [None if wait is None else wait.waited_gpu_hours for wait in of_row]
    medians = [None if wait is None or wait.p50_s is None else wait.p50_s / 3600 for wait in of_row]
    table = table.append_column("waited", pa.array(hours, pa.float64()))
    table = table.append_column("wait", pa.array(medians, pa.float64()))
    chosen = st.dataframe(
        table,
        key=f"team_table_{page.view.first}_{page.view.last}",
        hide_index=True,
        column_config=column_config("team", report, words),
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
    )
    picked = chosen.selection.rows
    if picked and rows[picked[0]]["team"] not in (None, page.view.team):
        st.query_params["team"] = rows[picked[0]]["team"]
        for parameter in ("project", "user"):
            st.query_params.pop(parameter, None)
        st.rerun()
    downloads("teams", report.rows, words)


def holder_table(names: Sequence[str], rows: Sequence[Row], key: str, report: Report) -> pa.Table:
    """Ready columns; hours as floats, money to the cent."""
    columns: dict[str, Any] = {key: list(names)}
    columns["cost"] = [None if row["cost"] is None else float(row["cost"]) for row in rows]
    rates = [cost_per_used_hour(row) for row in rows]
    columns["rate"] = [None if rate is None else float(rate) for rate in rates]
    columns["efficiency"] = [_percent(row_efficiency(row)) for row in rows]
    for name, column in HOUR_COLUMNS.items():
        columns[name] = [float(row[column]) for row in rows]
    columns["coverage"] = [_percent(row["coverage_ratio"]) for row in rows]
    return pa.table(columns)


def column_config(key: str, report: Report, words: Words) -> dict[str, Any]:
    """Titles, units and formats of `holder_table`."""
    column = st.column_config
    currency = report.currency
    config: dict[str, Any] = {
        key: column.TextColumn(words(f"teams.{key}"), width="medium"),
        "cost": column.NumberColumn(f"{words('teams.cost')} {currency}", format="%,.2f"),
        "efficiency": column.ProgressColumn(
            words("teams.efficiency"), format="%.0f%%", min_value=0, max_value=100
        ),
        "rate": column.NumberColumn(
            f"{currency} {words('teams.per_used')}", format="%,.2f", help=words("teams.rate")
        ),
        "coverage": column.NumberColumn(words("teams.coverage"), format="%.1f%%"),
    }
    for name in HOUR_COLUMNS:
        note = words("teams.stranded_help") if name == "stranded" else None
        config[name] = column.NumberColumn(words(f"teams.{name}"), format="%,.1f", help=note)
    config["waited"] = column.NumberColumn(
        words("teams.waited"), format="%,.1f", help=words("teams.waited_help")
    )
    config["wait"] = column.NumberColumn(words("teams.wait"), format="%,.2f")
    return config


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else ratio * 100
