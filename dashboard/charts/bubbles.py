"""Cost against efficiency: who pays much and uses little stands at the upper left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.charts.labels import sides
from dashboard.palette import ACCENT, INK, LINE, MUTED

X_RANGE = 1.06


@dataclass(frozen=True, slots=True)
class Bubble:
    """One team on one GPU model; ``efficiency`` None = nothing measured."""

    label: str
    efficiency: float | None
    amount: float
    held_gpu_hours: float
    hover: str


def bubbles(items: Sequence[Bubble], x_axis: str, y_axis: str) -> go.Figure:
    """Area is held GPU-hours; every bubble is named beside it."""
    figure = go.Figure()
    biggest = max((item.held_gpu_hours for item in items), default=1.0) or 1.0
    figure.add_scatter(
        x=[0 if item.efficiency is None else item.efficiency for item in items],
        y=[item.amount for item in items],
        mode="markers+text",
        text=[item.label for item in items],
        textposition=sides(_places(items), [item.label for item in items]),
        textfont={"size": 12.5, "color": INK},
        marker={
            "size": [item.held_gpu_hours for item in items],
            "sizemode": "area",
            "sizeref": 2 * biggest / 56**2,
            "sizemin": 5,
            "color": [_colour(item) for item in items],
            "opacity": 0.82,
            "line": {"width": 1, "color": "#ffffff"},
        },
        hovertext=[item.hover for item in items],
        hoverinfo="text",
        cliponaxis=False,
    )
    top = max((item.amount for item in items), default=1.0)
    figure.update_xaxes(title=x_axis, range=[0, X_RANGE], tickformat=".0%", dtick=0.2)
    figure.update_yaxes(title=y_axis, range=[-top * 0.06, top * 1.22], tickformat=",.0f")
    figure.add_vline(x=0.5, line={"color": LINE, "width": 1, "dash": "dot"}, layer="below")
    return figure


def _places(items: Sequence[Bubble]) -> list[tuple[float, float, float]]:
    """Bubbles as shares of the plot: x, y and radius."""
    top = max((item.amount for item in items), default=1.0) or 1.0
    biggest = max((item.held_gpu_hours for item in items), default=1.0) or 1.0
    return [
        (
            (item.efficiency or 0.0) / X_RANGE,
            (item.amount / top + 0.06) / 1.28,
            0.045 * (item.held_gpu_hours / biggest) ** 0.5,
        )
        for item in items
    ]


def _colour(item: Bubble) -> str:
    """Dark blue for work, orange for waste, grey for not measured; the axis says it too."""
    if item.efficiency is None:
        return MUTED
    return ACCENT if item.efficiency >= 0.5 else "#d95f0e"
