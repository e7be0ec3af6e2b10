"""Stacked bars per day over the ledger classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from dashboard.palette import CLASSES, hatch


def daily(
    days: Sequence[str],
    amounts: Mapping[str, Sequence[float]],
    names: Mapping[str, str],
    axis: str,
) -> go.Figure:
    """``amounts``: per class one value per day; used at the bottom, as it is what is wanted."""
    figure = go.Figure()
    for name in reversed([known for known in CLASSES if known in amounts]):
        style = CLASSES[name]
        figure.add_bar(
            x=list(days),
            y=list(amounts[name]),
            name=names[name],
            marker={
                "color": style.colour,
                "line": {"width": 0},
                "pattern": hatch(style),
            },
            hovertemplate="%{x}<br>" + names[name] + ": %{y:,.0f}<extra></extra>",
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.15,
    )
    figure.update_yaxes(title=axis, tickformat=",.0f")
    figure.update_xaxes(type="category", showgrid=False, nticks=10, tickangle=0)
    return figure
