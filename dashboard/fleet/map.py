"""Node x time: each cell in the colour of the class that had most of its GPU time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from analytics.questions.fleet_map import FleetCell
from dashboard.formats import hours, percent
from dashboard.frame import Page
from dashboard.palette import CLASSES, HELD
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, legend, show, tag
from dashboard.template import draw
from dashboard.words import Words

ROW_PX = 22
NODES_SHOWN = 120
MOST_STEPS = 170
STEPS_H = (1, 2, 3, 4, 6, 8, 12, 24, 48, 168)
NAMED = 3
_PLACE = {name: place for place, name in enumerate(CLASSES)}


def step_hours(days: int) -> int:
    """The finest step that keeps the map readable."""
    return next((step for step in STEPS_H if days * 24 / step <= MOST_STEPS), STEPS_H[-1])


def answer_text(cells: Sequence[FleetCell], words: Words) -> str:
    """How much was held, and the node that stood without a holder the most."""
    every: dict[str, float] = defaultdict(float)
    held: dict[str, float] = defaultdict(float)
    for cell in cells:
        every[cell.node] += sum(cell.gpu_hours.values())
        held[cell.node] += sum(cell.gpu_hours[name] for name in HELD)
    whole = sum(every.values())
    if not whole:
        return words("fleet.answer_none")
    least = min(every, key=lambda node: (held[node] / every[node] if every[node] else 1, node))
    return words(
        "fleet.answer",
        nodes=len(every),
        hours=hours(whole),
        held=percent(sum(held.values()) / whole),
        node=least,
        share=percent(held[least] / every[least]),
    )


def fleet_chart(page: Page, cells: Sequence[FleetCell], step_h: int) -> None:
    """One row per pool; where there are many nodes, those that were held the least."""
    words, zone = page.words, ZoneInfo(page.view.zone)
    shown = _least_held(cells)
    names = sorted({cell.largest for cell in shown}, key=lambda name: _PLACE[name])
    hint = words("fleet.map_hint", hours=step_h)
    show(heading(words("fleet.map"), hint, after=tag("modelled", words)))
    show(legend({words(f"class.{name}"): CLASSES[name].colour for name in names}))
    times = sorted({cell.ts for cell in shown})
    by_row: dict[str, dict[object, FleetCell]] = defaultdict(dict)
    for cell in shown:
        by_row[f"{cell.node} · {cell.gpu_model}"][cell.ts] = cell
    rows = sorted(by_row)
    figure = go.Figure(
        go.Heatmap(
            x=[ts.astimezone(zone) for ts in times],
            y=rows,
            z=[[_place(by_row[row].get(ts)) for ts in times] for row in rows],
            text=[[_hover(by_row[row].get(ts), words) for ts in times] for row in rows],
            zmin=-0.5,
            zmax=len(CLASSES) - 0.5,
            colorscale=_scale(),
            showscale=False,
            ygap=2,
            hovertemplate="<b>%{y}</b><br>%{x}<br>%{text}<extra></extra>",
        )
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, dtick=1)
    figure.update_xaxes(showgrid=False)
    draw(figure, key="fleet_map", height=ROW_PX * len(rows) + 70)
    plain = [
        {"cluster": c.cluster, "node": c.node, "gpu_model": c.gpu_model, "ts": c.ts, **c.gpu_hours}
        for c in cells
    ]
    downloads("fleet", plain, words)


def _least_held(cells: Sequence[FleetCell]) -> list[FleetCell]:
    held: dict[str, float] = defaultdict(float)
    for cell in cells:
        held[cell.node] += sum(cell.gpu_hours[name] for name in HELD)
    kept = set(sorted(held, key=lambda node: (held[node], node))[:NODES_SHOWN])
    return [cell for cell in cells if cell.node in kept]


def _place(cell: FleetCell | None) -> int | None:
    return None if cell is None else _PLACE[cell.largest]


def _hover(cell: FleetCell | None, words: Words) -> str:
    """The largest classes of a cell with their share."""
    if cell is None:
        return ""
    whole = sum(cell.gpu_hours.values())
    order = sorted(cell.gpu_hours.items(), key=lambda item: -item[1])[:NAMED]
    return "<br>".join(
        f"{words(f'class.{name}')}: {percent(value / whole)}" for name, value in order if value
    )


def _scale() -> list[list[object]]:
    """Steps, not a gradient: a class is its own colour."""
    count = len(CLASSES)
    scale: list[list[object]] = []
    for place, style in enumerate(CLASSES.values()):
        scale += [[place / count, style.colour], [(place + 1) / count, style.colour]]
    return scale
