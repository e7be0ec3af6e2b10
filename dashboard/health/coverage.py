"""Coverage per node and day as a map."""

from __future__ import annotations

import plotly.graph_objects as go

from analytics.window import Window
from dashboard import data
from dashboard.formats import percent
from dashboard.frame import Page
from dashboard.palette import ACCENT
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show, tag
from dashboard.template import draw

ROW_PX = 18
NODES_SHOWN = 60
SCALE = [[0, "#a4262c"], [0.5, "#f2c14e"], [0.9, "#bfdbe8"], [1, ACCENT]]


def coverage_map(page: Page, window: Window) -> None:
    """One row per node, the least known first when there are many."""
    words = page.words
    report = data.cost(page.path, window, ("node", "day"), page.view.cluster, page.view.currency)
    cells = {(str(r["node"]), str(r["day"])): r["coverage_ratio"] for r in report.rows}
    days = sorted({day for _, day in cells})
    nodes = sorted({node for node, _ in cells})
    if len(nodes) > NODES_SHOWN:
        nodes.sort(key=lambda n: min(c for (node, _), c in cells.items() if node == n))
        nodes = sorted(nodes[:NODES_SHOWN])
    show(heading(words("health.nodes"), after=tag("observed", words)))
    values = [[cells.get((node, day)) for day in days] for node in nodes]
    figure = go.Figure(
        go.Heatmap(
            x=[day[5:] for day in days],
            y=nodes,
            z=values,
            zmin=0,
            zmax=1,
            colorscale=SCALE,
            xgap=1,
            ygap=1,
            text=[[percent(value) for value in row] for row in values],
            hovertemplate="%{y} · %{x}<br>%{text}<extra></extra>",
            colorbar={"tickformat": ".0%", "thickness": 10, "outlinewidth": 0, "len": 1},
        )
    )
    figure.update_xaxes(type="category", showgrid=False, nticks=6, tickangle=0)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed", dtick=1)
    draw(figure, key="coverage", height=ROW_PX * len(nodes) + 60)
    downloads("coverage", report.rows, words)
