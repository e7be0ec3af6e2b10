"""Advice: what should we change this week?"""

from __future__ import annotations

from html import escape

import streamlit as st

from dashboard.advice import (
    followed_up,
    headline_tiles,
    making,
    newest,
    style,
    whole_card,
)
from dashboard.frame import answer, open_page
from dashboard.parts.html import heading, show, tiles
from dashboard.parts.progress import page_runs
from scheduler_advisor.messages import Words as Sentences

page = open_page("advice")
words, view = page.words, page.view
style()
found = newest(page.path, view.language)
if found is None:
    said = words("advice.none_yet" if page_runs(page).running("advice") else "advice.none")
    show(f'<div class="card"><p>{escape(said)}</p></div>')
    making(page)
    st.stop()

body = found.body
span = words("advice.of", since=body["window"]["since"][:10], until=body["window"]["until"][:10])
count = len([rec for rec in found.open if rec["saving"]["gpu_hours"]])
text = words("advice.answer", count=count) if count else words("advice.nothing")
answer(f"{text} {span}", page, body["coverage_ratio"], body["price_book"]["version"])
show(tiles(headline_tiles(found, words), words))
making(page)

first = [rec for rec in found.open if rec["kind"] == "data_quality"]
if first:
    sentences = Sentences(view.language)
    titles = " · ".join(rec["title"] for rec in first)
    with st.expander(f"{sentences.say('report.quality')} {titles}"):
        for rec in first:
            whole_card(page, rec)
for rec in found.open:
    if rec not in first:
        whole_card(page, rec)

followed_up(page)
if body["not_measured"]:
    sentences = Sentences(view.language)
    show(heading(sentences.say("report.not_measured")))
    items = "".join(
        "<li>"
        + escape(
            sentences.say(
                "report.not_measured_text",
                kind=sentences.say(f"kind.{entry['kind']}.name"),
                missing=", ".join(sentences.say(f"need.{need}") for need in entry["missing"]),
            )
        )
        + "</li>"
        for entry in body["not_measured"]
    )
    show(f"<ul>{items}</ul>")
if found.aside:
    show(heading(Sentences(view.language).say("report.dismissed")))
    for rec in found.aside:
        whole_card(page, rec)
