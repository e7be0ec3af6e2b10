"""From installed to used: what each ledger class takes away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.palette import CLASSES, INK, hatch, text_on

ROW_PX = 27


@dataclass(frozen=True, slots=True)
class Step:
    """One bar: a class that takes ``amount`` away, or (name None) a level that is left."""

    name: str | None
    label: str
    amount: float
    text: str
    hover: str


def waterfall(steps: Sequence[Step], axis: str) -> go.Figure:
    """Horizontal bars, each beginning where the one before ended; read from top to bottom."""
    figure = go.Figure()
    level = steps[0].amount if steps else 0.0
    for place, step in enumerate(steps):
        if step.name is None or step.name == "used":
            base, level = 0.0, step.amount
        else:
            level -= step.amount
            base = level
        figure.add_bar(
            y=[place],
            x=[step.amount],
            base=[base],
            orientation="h",
            width=0.72,
            marker=_marker(step.name),
            text=[step.text],
            textposition="outside" if base + step.amount < steps[0].amount * 0.7 else "none",
            textfont={"color": INK, "size": 12},
            hovertext=[step.hover],
            hoverinfo="text",
            cliponaxis=False,
        )
        if base + step.amount >= steps[0].amount * 0.7:
            _label_left(figure, place, step, base, steps[0].amount)
    figure.update_layout(barmode="overlay", bargap=0.2)
    figure.update_xaxes(title=axis, range=[0, steps[0].amount * 1.02], tickformat=",.0f")
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(steps))),
        ticktext=[step.label for step in steps],
        autorange="reversed",
        showgrid=False,
        tickfont={"color": INK, "size": 12.5},
    )
    return figure


def height(steps: Sequence[Step]) -> int:
    """Pixels for one line per bar."""
    return ROW_PX * len(steps) + 52


def _label_left(figure: go.Figure, place: int, step: Step, base: float, full: float) -> None:
    """A bar near the right end has its text at its left, or inside where that has no room."""
    inside = base < full * 0.35
    colour = INK if step.name is None else CLASSES[step.name].colour
    figure.add_annotation(
        x=base + step.amount if inside else base,
        y=place,
        text=step.text,
        showarrow=False,
        xanchor="right",
        xshift=-6,
        font={"size": 12, "color": text_on(colour) if inside else INK},
    )


def _marker(name: str | None) -> dict[str, object]:
    if name is None:
        return {"color": "#43505d"}
    style = CLASSES[name]
    return {"color": style.colour, "line": {"width": 0}, "pattern": hatch(style)}
