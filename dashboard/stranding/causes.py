"""Stranded time day by day, by reason and by the team that caused it or waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.daily import daily
from dashboard.data import Report
from dashboard.figures import Row
from dashboard.formats import number, percent, whole_money
from dashboard.frame import Page
from dashboard.palette import CLASSES, MUTED, STRANDED, team_colours
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, legend, show, table, tag
from dashboard.teams.names import team_name
from dashboard.template import draw

CHART_PX = 270


def day_charts(page: Page, by_day: Report) -> None:
    """Left by reason, right by causing team: the same hours, cut in two ways."""
    left, right = st.columns(2, gap="large")
    with left:
        _by_reason(page, by_day)
    with right:
        _by_team(page, by_day)


def _by_reason(page: Page, by_day: Report) -> None:
    words = page.words
    show(heading(words("stranding.by_reason"), after=tag("modelled", words)))
    days, amounts = _amounts(by_day.rows, "class")
    names = {name: words(f"class.{name}") for name in CLASSES}
    show(legend({names[name]: CLASSES[name].colour for name in CLASSES if name in amounts}))
    shown = {str(name): values for name, values in amounts.items()}
    figure = daily([day[5:] for day in days], shown, names, words("overview.daily_axis_hours"))
    draw(figure, key="reasons", height=CHART_PX)


def _by_team(page: Page, by_day: Report) -> None:
    words = page.words
    show(heading(words("stranding.by_team"), after=tag("modelled", words)))
    days, amounts = _amounts((r for r in by_day.rows if r["class"] in STRANDED), "team")
    order = sorted(amounts, key=lambda team: -sum(amounts[team]))
    colours = team_colours([team for team in order if team is not None])
    named = {team: team_name(team, words) for team in order}
    show(legend({named[team]: colours.get(team or "", MUTED) for team in order}))
    figure = go.Figure()
    for team in order:
        figure.add_bar(
            x=[day[5:] for day in days],
            y=amounts[team],
            name=named[team],
            marker={"color": colours.get(team or "", MUTED)},
            hovertemplate="%{x}<br>" + named[team] + ": %{y:,.1f} GPU-h<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.15)
    figure.update_yaxes(title=words("overview.daily_axis_hours"), tickformat=",.0f")
    figure.update_xaxes(type="category", showgrid=False, nticks=10, tickangle=0)
    draw(figure, key="causing_teams", height=CHART_PX)


def _amounts(rows: Iterable[Row], key: str) -> tuple[list[str], Mapping[str | None, list[float]]]:
    found: dict[str | None, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    days: set[str] = set()
    for row in rows:
        found[row[key]][str(row["day"])] += float(row["gpu_hours"])
        days.add(str(row["day"]))
    order = sorted(days)
    return order, {name: [by_day[day] for day in order] for name, by_day in found.items()}


def cause_table(page: Page, report: Report) -> None:
    """Who caused it or waited for it, by which rule; adds up to the ledger's classes."""
    words = page.words
    show(heading(words("stranding.causes"), words("stranding.causes_hint")))
    rows = sorted(report.rows, key=lambda row: -row["gpu_hours"])
    whole = report.total["gpu_hours"]
    columns = [
        Column(words("overview.week_class")),
        Column(words("teams.team"), text=True),
        Column(words("stranding.role"), text=True, narrow=False),
        Column(words("stranding.rule"), text=True, narrow=False),
        Column(words("health.gpu_hours")),
        Column(words("stranding.share"), narrow=False),
        Column(words("teams.cost")),
    ]
    body = [
        [
            words(f"class.{row['class']}"),
            team_name(row["team"], words),
            words(f"role.{row['role']}"),
            words(f"rule.{row['rule']}"),
            number(float(row["gpu_hours"])),
            percent(float(row["gpu_hours"] / whole) if whole else None),
            whole_money(row["cost"], report.currency),
        ]
        for row in rows
    ]
    total = [
        words("overview.week_total"), "", "", "", number(float(whole)), percent(1.0),
        whole_money(report.total["cost"], report.currency),
    ]  # fmt: skip
    swatches = [CLASSES[row["class"]].colour for row in rows]
    show(table(columns, body, total=total, swatches=swatches))
    downloads("stranding", rows, words)
