"""Data health: can I trust this?"""

from __future__ import annotations

import streamlit as st

from analytics.window import Window
from dashboard import data
from dashboard.figures import class_sums
from dashboard.frame import answer, open_page
from dashboard.health import (
    answer_text,
    conflict_table,
    coverage_map,
    gap_table,
    headline_tiles,
    mapping_table,
    price_table,
    source_table,
)
from dashboard.parts.html import show, tiles

page = open_page("health")
view, words = page.view, page.words
window = Window(view.since, view.until, view.zone)
report = data.ledger(page.path, window, ("class",), view.cluster, view.currency)
holders = data.cost(page.path, window, ("team", "user"), view.cluster, view.currency)
gaps = data.gaps(page.path, window, view.cluster)
unpriced = data.unpriced(page.path, window, view.cluster)
conflicts = data.conflicts(page.path, window, view.cluster)

answer(answer_text(report, gaps, words), page, report.coverage_ratio, report.price_book)
sums = class_sums(report.rows)
show(tiles(headline_tiles(sums, report, holders, unpriced, conflicts, words), words))
coverage_map(page, window)
gap_table(page, gaps)
left, right = st.columns(2, gap="large")
with left:
    mapping_table(page, holders)
    conflict_table(page, conflicts)
with right:
    price_table(page, unpriced)
    source_table(page)
