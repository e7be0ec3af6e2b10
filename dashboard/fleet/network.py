"""When is which rack's network crowded: rack x hour of the day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from analytics.questions.network_by_rack import RackHour
from dashboard.fleet.links import rate
from dashboard.frame import Page
from dashboard.palette import ACCENT, SHADE
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show, strong, tag
from dashboard.template import draw

ROW_PX = 26
_GIGA = 1e9
_SCALE = [[0.0, SHADE], [1.0, ACCENT]]


def rack_network(page: Page, hours: Sequence[RackHour]) -> None:
    """The mean of each hour of the day over the last week of the window, per node of the rack."""
    words = page.words
    show(heading(words("fleet.network"), words("fleet.network_hint"), after=tag("observed", words)))
    if not hours:
        show(f'<p class="fine">{escape(words("fleet.network_none"))}</p>')
        return
    means = by_hour(hours, page.view.zone, words("fleet.no_rack"))
    racks = sorted({rack for rack, _ in means})
    rack, hour = max(means, key=lambda key: means[key])
    told = words(
        "fleet.network_answer", rack=rack, first=f"{hour:02d}", last=f"{(hour + 1) % 24:02d}",
        rate=rate(means[rack, hour]),
    )  # fmt: skip
    show(f"<p>{strong(told)}</p>")
    figure = go.Figure(
        go.Heatmap(
            x=[f"{number:02d}" for number in range(24)],
            y=racks,
            z=[[_giga(means.get((rack, number))) for number in range(24)] for rack in racks],
            colorscale=_SCALE,
            zmin=0,
            colorbar={"title": {"text": "GB/s"}, "thickness": 10, "outlinewidth": 0},
            xgap=1,
            ygap=2,
            hovertemplate="<b>%{y}</b> %{x}:00<br>%{z:,.2f} GB/s<extra></extra>",
        )
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, dtick=1)
    figure.update_xaxes(type="category", showgrid=False, title=words("fleet.hour_axis"))
    draw(figure, key="rack_network", height=ROW_PX * len(racks) + 110)
    downloads("network", [asdict(one) for one in hours], words)


def by_hour(hours: Sequence[RackHour], zone: str, unknown: str) -> dict[tuple[str, int], float]:
    """(rack, hour of the day in ``zone``) -> mean bytes a second of one of its nodes."""
    local = ZoneInfo(zone)
    clusters = {one.cluster for one in hours}
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for one in hours:
        rack = one.rack or unknown
        name = rack if len(clusters) == 1 else f"{one.cluster} · {rack}"
        found[name, one.hour.astimezone(local).hour].append(one.bytes_per_s / one.nodes)
    return {key: sum(rates) / len(rates) for key, rates in found.items()}


def _giga(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / _GIGA
