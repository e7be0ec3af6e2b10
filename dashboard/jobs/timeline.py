"""A job's samples over time: utilisation with its spread, memory, power; and GPU by GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from statistics import fmean
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analytics.questions.job_samples import JobSample
from dashboard.frame import Page
from dashboard.palette import ACCENT, BAD, INK
from dashboard.template import draw

TIMELINE_PX = 420
ROW_PX = 16
DEVICES_SHOWN = 64
MEMORY, POWER = "#7a5195", "#d45087"
SCALE = [[0, "#f4e3c3"], [0.05, "#f2c14e"], [0.5, "#7fb3d0"], [1, ACCENT]]
Series = dict[datetime, list[float]]


def timeline(page: Page, samples: Sequence[JobSample], marks: Sequence[datetime]) -> None:
    """Three panels over one time axis; the band is from the least to the most busy GPU."""
    words, zone = page.words, ZoneInfo(page.view.zone)
    titles = [words(f"jobs.{name}") for name in ("utilisation", "memory", "power")]
    figure = make_subplots(
        rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.46, 0.27, 0.27]
    )
    util = _series(samples, "util_ratio")
    at = [ts.astimezone(zone) for ts in util]
    low, high = [min(v) for v in util.values()], [max(v) for v in util.values()]
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_scatter(x=at, y=high, row=1, col=1, **edge)
    figure.add_scatter(
        x=at, y=low, fill="tonexty", fillcolor="rgba(11,92,142,0.16)", row=1, col=1, **edge
    )
    _line(figure, 1, util, zone, ACCENT, "%{y:.0%}")
    _line(figure, 2, _series(samples, "mem_ratio"), zone, MEMORY, "%{y:.0%}")
    power = _series(samples, "power_w")
    total = {ts: [sum(values)] for ts, values in power.items()}
    _line(figure, 3, total, zone, POWER, "%{y:,.0f} W")
    for mark in marks:
        figure.add_vline(
            x=mark.astimezone(zone), line={"color": BAD, "width": 1, "dash": "dot"}, row=1, col=1
        )
    for row, title in enumerate(titles, 1):
        figure.update_yaxes(title=title, rangemode="tozero", row=row, col=1)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.04], row=1, col=1)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.04], row=2, col=1)
    figure.update_yaxes(tickformat=",.0f", row=3, col=1)
    figure.update_xaxes(showgrid=False)
    draw(figure, key="job_timeline", height=TIMELINE_PX)


def devices(page: Page, samples: Sequence[JobSample]) -> None:
    """Utilisation of every GPU over time, the idlest first; a half-idle gang shows at once."""
    zone = ZoneInfo(page.view.zone)
    rows: dict[str, dict[datetime, float]] = defaultdict(dict)
    for sample in samples:
        if sample.util_ratio is not None:
            name = f"{sample.node} · {_index(sample)}"
            rows[name][sample.ts] = sample.util_ratio
    order = sorted(rows, key=lambda name: (fmean(rows[name].values()), name))[:DEVICES_SHOWN]
    times = sorted({sample.ts for sample in samples})
    figure = go.Figure(
        go.Heatmap(
            x=[ts.astimezone(zone) for ts in times],
            y=order,
            z=[[rows[name].get(ts) for ts in times] for name in order],
            zmin=0,
            zmax=1,
            colorscale=SCALE,
            ygap=1,
            hovertemplate="%{y}<br>%{x}<br>%{z:.0%}<extra></extra>",
            colorbar={"tickformat": ".0%", "thickness": 10, "outlinewidth": 0, "len": 1},
        )
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, dtick=1)
    figure.update_xaxes(showgrid=False)
    draw(figure, key="job_devices", height=ROW_PX * len(order) + 90)


def _index(sample: JobSample) -> str:
    return (sample.device or "")[-6:] if sample.gpu_index is None else f"GPU {sample.gpu_index}"


def _series(samples: Sequence[JobSample], name: str) -> Series:
    found: Series = defaultdict(list)
    for sample in samples:
        value = getattr(sample, name)
        if value is not None:
            found[sample.ts].append(value)
    return dict(sorted(found.items()))


def _line(
    figure: go.Figure, row: int, series: Series, zone: ZoneInfo, colour: str, text: str
) -> None:
    figure.add_scatter(
        x=[ts.astimezone(zone) for ts in series],
        y=[fmean(values) for values in series.values()],
        mode="lines",
        line={"color": colour or INK, "width": 1.8},
        hovertemplate="%{x}<br>" + text + "<extra></extra>",
        row=row,
        col=1,
    )
