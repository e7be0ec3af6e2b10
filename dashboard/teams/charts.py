"""The charts of the Teams page."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from dashboard.charts.bubbles import Bubble, bubbles
from dashboard.data import Report
from dashboard.figures import Row, cost_per_used_hour, exact, row_efficiency
from dashboard.formats import hours, money, percent
from dashboard.palette import HELD, hatch
from dashboard.parts.html import legend, show
from dashboard.teams.names import team_name
from dashboard.template import draw
from dashboard.words import Words

BUBBLES_PX = 400
COLUMNS = {
    "used": "used_gpu_hours",
    "allocated_idle": "allocated_idle_gpu_hours",
    "lost": "lost_gpu_hours",
    "allocated_unmeasured": "allocated_unmeasured_gpu_hours",
    "failed_held": "failed_held_gpu_hours",
    "unattributed": "unattributed_gpu_hours",
}


def bubble_chart(report: Report, words: Words) -> None:
    """One bubble per team and GPU model."""
    priced = any(row["cost"] for row in report.rows)
    items = [
        Bubble(
            label=f"{team_name(row['team'], words)} · {row['gpu_model'] or '–'}",
            efficiency=row_efficiency(row),
            amount=float(row["cost"] if priced else exact(row["held_gpu_hours"])),
            held_gpu_hours=float(row["held_gpu_hours"]),
            hover="<br>".join(
                [
                    f"<b>{team_name(row['team'], words)} · {row['gpu_model'] or '–'}</b>",
                    money(row["cost"], report.currency),
                    f"{words('teams.held')}: {hours(float(row['held_gpu_hours']))}",
                    f"{words('teams.efficiency')}: {percent(row_efficiency(row))}",
                    f"{words('teams.rate')}: {money(cost_per_used_hour(row), report.currency)}",
                ]
            ),
        )
        for row in report.rows
        if row["team"] is not None and exact(row["held_gpu_hours"])
    ]
    y_axis = (
        words("teams.bubbles_y", currency=report.currency)
        if priced
        else words("teams.bubbles_y_hours")
    )
    figure = bubbles(items, words("teams.bubbles_x"), y_axis)
    draw(figure, key="bubbles", height=BUBBLES_PX)


def split_chart(report: Report, words: Words) -> None:
    """Held GPU-hours of every team, stacked by class."""
    rows = [r for r in report.rows if r["team"] is not None and exact(r["held_gpu_hours"])]
    rows.sort(key=lambda row: exact(row["held_gpu_hours"]))
    shown = [name for name, column in COLUMNS.items() if any(exact(r[column]) for r in rows)]
    show(legend({words(f"class.{name}"): HELD[name].colour for name in shown}))
    draw(_stacked(rows, shown, words), key="split", height=BUBBLES_PX - 40)


def _stacked(rows: Sequence[Row], shown: Sequence[str], words: Words) -> go.Figure:
    figure = go.Figure()
    labels = [team_name(row["team"], words) for row in rows]
    for name in shown:
        column, style = COLUMNS[name], HELD[name]
        figure.add_bar(
            y=labels,
            x=[float(row[column]) for row in rows],
            orientation="h",
            name=words(f"class.{name}"),
            marker={"color": style.colour, "pattern": hatch(style)},
            hovertemplate="%{y}<br>" + words(f"class.{name}") + ": %{x:,.0f} GPU-h<extra></extra>",
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
    )
    figure.update_xaxes(title=words("teams.split_axis"), tickformat=",.0f")
    figure.update_yaxes(showgrid=False)
    return figure
