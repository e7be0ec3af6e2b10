"""Overview: where did the GPU money go?"""

from __future__ import annotations

import streamlit as st

from analytics.window import Window
from dashboard import data
from dashboard.figures import class_sums
from dashboard.frame import answer, open_page
from dashboard.overview import (
    Headline,
    answer_text,
    best_advice,
    broken_list,
    daily_chart,
    headline_tiles,
    waterfall_chart,
    week_table,
    weeks,
)
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show, tag, tiles

page = open_page("overview")
view, words = page.view, page.words
window = Window(view.since, view.until, view.zone)
report = data.ledger(page.path, window, ("class",), view.cluster, view.currency)
sums = class_sums(report.rows)
this_week, week_before = weeks(page)

answer(answer_text(sums, report, words), page, report.coverage_ratio, report.price_book)
head = Headline(sums, this_week, week_before, report.currency)
show(tiles(headline_tiles(head, words), words))

left, right = st.columns([8, 5], gap="large")
with left:
    show(
        heading(
            words("overview.waterfall"),
            words("overview.waterfall_hint"),
            after=tag("modelled", words),
        )
    )
    waterfall_chart(sums, report, page)
with right:
    broken_list(page)
    week_table(page, this_week, week_before, report)
    downloads("classes", report.rows, words)

best_advice(page)

show(heading(words("overview.daily")))
daily_chart(page, window, report)
