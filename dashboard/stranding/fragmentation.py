"""Fragmentation over time: free GPUs, and the part of them that a typical job could not use."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from analytics.questions.fragmentation import FragmentedHour
from dashboard.frame import Page
from dashboard.palette import CLASSES, MUTED
from dashboard.parts.html import heading, legend, show, tag
from dashboard.template import draw

CHART_PX = 230


def fragmentation_chart(page: Page, hours: Sequence[FragmentedHour]) -> None:
    """Two lines over one axis of GPUs: free ones, and those of them that are fragmented."""
    if not hours:
        return
    words = page.words
    zone = ZoneInfo(page.view.zone)
    at = sorted({hour.hour for hour in hours})
    free = dict.fromkeys(at, 0.0)
    stuck = dict.fromkeys(at, 0.0)
    for hour in hours:
        free[hour.hour] += hour.free_gpu_hours
        stuck[hour.hour] += hour.fragmented_gpu_hours
    last = max(hours, key=lambda hour: hour.hour).distribution  # it changes with each day
    hint = words("stranding.fragmentation_hint", last=last)
    show(heading(words("stranding.fragmentation"), hint, after=tag("modelled", words)))
    lines = (
        (words("stranding.free"), free, MUTED),
        (words("stranding.fragmented"), stuck, CLASSES["stranded_shape"].colour),
    )
    show(legend({name: colour for name, _, colour in lines}))
    figure = go.Figure()
    for name, values, colour in lines:
        figure.add_scatter(
            x=[when.astimezone(zone).replace(tzinfo=None) for when in at],
            y=[values[when] for when in at],
            name=name,
            mode="lines",
            line={"color": colour, "width": 2, "shape": "hv"},
            hovertemplate="%{x}<br>" + name + ": %{y:,.1f} GPU<extra></extra>",
        )
    figure.update_yaxes(title=words("stranding.gpus_axis"), rangemode="tozero", tickformat=",.0f")
    draw(figure, key="fragmentation", height=CHART_PX)
