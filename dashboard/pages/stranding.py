"""Stranding: why can this free GPU not be used?"""

from __future__ import annotations

from analytics.window import Window
from dashboard import data
from dashboard.frame import answer, open_page
from dashboard.parts.html import show, tiles
from dashboard.stranding import (
    answer_text,
    cause_table,
    day_charts,
    fragmentation_chart,
    headline_tiles,
    start_now,
)

page = open_page("stranding")
view, words = page.view, page.words
window = Window(view.since, view.until, view.zone)
report = data.stranding(page.path, window, ("team",), view.cluster, view.currency)
by_day = data.stranding(page.path, window, ("team", "day"), view.cluster, view.currency)

answer(answer_text(report, words), page, report.coverage_ratio, report.price_book)
show(tiles(headline_tiles(report, words), words))
start_now(page)
if report.rows:
    day_charts(page, by_day)
    fragmentation_chart(page, data.fragmented(page.path, window, view.cluster))
    cause_table(page, report)
