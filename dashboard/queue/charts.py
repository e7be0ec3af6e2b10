"""The distribution of waits by size class, and waits by hour of the day."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from dashboard.formats import percent, waited
from dashboard.frame import Page
from dashboard.palette import ACCENT
from dashboard.parts.html import heading, legend, show, tag
from dashboard.template import draw
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.sizes import SIZE_CLASSES
from scheduler_advisor.measurements.waits import JobWait, by_hour
from scheduler_advisor.window import zone_named

CHART_PX = 290
LEAST_S = 10.0
POINTS = 200
TICKS_S = (10, 60, 600, 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400)
# Light to dark with size, told apart in grey; the largest ones are the dark ones.
SIZES = dict(
    zip(
        SIZE_CLASSES,
        ("#9ecae1", "#56a0d3", "#0b5c8e", "#e69f00", "#c8500a", "#5b1a5e"),
        strict=True,
    )
)
TAIL = "#e8751a"


def distribution_chart(page: Page, waits: Sequence[JobWait]) -> None:
    """Per size class, the share of its started jobs that had started after so long."""
    words, units = page.words, page.words.span_units
    by_size = {
        size: sorted(w.wait_s for w in waits if w.started and w.size == size)
        for size in SIZE_CLASSES
    }
    shown = {size: done for size, done in by_size.items() if done}
    show(heading(words("queue.distribution"), after=tag("observed", words)))
    show(legend({words("queue.size_of", size=size): SIZES[size] for size in shown}))
    figure = go.Figure()
    for size, done in shown.items():
        shares = [place / POINTS for place in range(POINTS + 1)]
        values = [quantile(done, share) or 0.0 for share in shares]
        figure.add_scatter(
            x=[max(LEAST_S, value) for value in values],
            y=shares,
            mode="lines",
            line={"color": SIZES[size], "width": 2.5},
            hovertext=[
                f"{words('queue.size_of', size=size)}<br>{percent(share)}: {waited(value, units)}"
                for share, value in zip(shares, values, strict=True)
            ],
            hoverinfo="text",
        )
    longest = max((done[-1] for done in shown.values()), default=LEAST_S)
    ticks = [tick for tick in TICKS_S if tick <= longest * 2]
    figure.update_xaxes(
        type="log",
        title=words("queue.wait_axis"),
        tickvals=ticks,
        ticktext=[f"≤ {tick} s" if tick < 60 else waited(tick, units) for tick in ticks],
    )
    figure.update_yaxes(title=words("queue.share_axis"), tickformat=".0%", range=[0, 1.02])
    draw(figure, key="wait_distribution", height=CHART_PX)


def hour_chart(page: Page, waits: Sequence[JobWait]) -> None:
    """Median and 95th percentile by the local hour at which jobs became eligible."""
    words, units = page.words, page.words.span_units
    groups = by_hour(waits, zone_named(page.view.zone))
    show(heading(words("queue.by_hour"), page.view.zone, after=tag("observed", words)))
    show(legend({words("queue.p95"): TAIL, words("queue.p50"): ACCENT}))
    figure = go.Figure()
    for name, colour in (("p95", TAIL), ("p50", ACCENT)):
        values = [(group.p95_s if name == "p95" else group.p50_s) or 0.0 for group in groups]
        figure.add_bar(
            x=[group.hour for group in groups],
            y=[value / 3600 for value in values],
            name=words(f"queue.{name}"),
            marker={"color": colour},
            hovertext=[
                f"{group.hour:02d}:00 · {words(f'queue.{name}')}: {waited(value, units)}<br>"
                + words("queue.jobs_of", count=group.jobs)
                for group, value in zip(groups, values, strict=True)
            ],
            hoverinfo="text",
        )
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_xaxes(title=words("queue.hour_axis"), range=[-0.5, 23.5], dtick=3, showgrid=False)
    figure.update_yaxes(title=words("queue.hours_axis"), tickformat=",.3~g")
    draw(figure, key="wait_hours", height=CHART_PX)
