"""Teams: who used it, and how well?"""

from __future__ import annotations

import streamlit as st

from analytics.window import Window
from dashboard import data
from dashboard.frame import answer, open_page
from dashboard.parts.html import heading, show
from dashboard.teams import (
    adjustments,
    answer_text,
    bill,
    bubble_chart,
    drill_down,
    split_chart,
    team_table,
)

page = open_page("teams")
view, words = page.view, page.words
window = Window(view.since, view.until, view.zone)
by_team = data.cost(page.path, window, ("team",), view.cluster, view.currency)
by_model = data.cost(page.path, window, ("team", "gpu_model"), view.cluster, view.currency)

answer(answer_text(by_model, words), page, by_team.coverage_ratio, by_team.price_book)
left, right = st.columns([8, 6], gap="large")
with left:
    show(heading(words("teams.bubbles"), words("teams.bubbles_note")))
    bubble_chart(by_model, words)
with right:
    show(heading(words("teams.split")))
    split_chart(by_team, words)
team_table(by_team, data.team_waits(page.path, window, view.cluster), page)
if view.team:
    drill_down(page, window, view.team)
    bill(page, window, by_team, view.team)
else:
    adjustments(page, by_team)
