"""Queue: who waits, for what?"""

from __future__ import annotations

import streamlit as st

from analytics.window import Window
from dashboard import data
from dashboard.frame import answer, open_page
from dashboard.parts.html import show, tiles
from dashboard.queue import (
    answer_text,
    distribution_chart,
    head_of_queue,
    headline_tiles,
    hour_chart,
    queue_table,
    size_table,
    team_table,
)

page = open_page("queue")
view, words = page.view, page.words
window = Window(view.since, view.until, view.zone)
waits = data.waits(page.path, window, view.cluster)
by_job = data.stranding(page.path, window, ("job",), view.cluster, view.currency)

answer(answer_text(waits, words), page, by_job.coverage_ratio, by_job.price_book)
show(tiles(headline_tiles(waits, words), words))
head_of_queue(page)
if waits:
    left, right = st.columns(2, gap="large")
    with left:
        distribution_chart(page, waits)
        size_table(page, waits, by_job)
    with right:
        hour_chart(page, waits)
        team_table(page, data.team_waits(page.path, window, view.cluster))
    queue_table(page, waits)
