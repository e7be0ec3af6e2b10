"""Who waits at one instant, and what blocks the first of them."""

from __future__ import annotations

from dataclasses import asdict
from html import escape

import streamlit as st

from analytics.questions.queue_at import QueuedJob
from dashboard import data
from dashboard.formats import length, moment
from dashboard.frame import Page
from dashboard.instant import asked_moment, pick_moment
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, strong, table, tag
from dashboard.stranding.now import verdict_text

SHOWN = 10


def head_of_queue(page: Page) -> None:
    """The first waiting job with the verdict on its request, then those behind it."""
    words, at = page.words, asked_moment(page)
    as_of = words("overview.broken_at", at=f"{moment(at, page.view.zone)} {page.view.zone}")
    show(heading(words("queue.head"), as_of, after=tag("observed", words)))
    left, _ = st.columns([4, 5])
    with left:
        pick_moment(page)
    waiting = data.queue(page.path, at, page.view.cluster)
    if not waiting:
        show(f'<p class="fine">{escape(words("queue.head_none"))}</p>')
        return
    first = waiting[0]
    answer = data.start(page.path, at, first.shape, first.cluster)
    text = words(
        "queue.head_is",
        job=first.job_id,
        user=first.user_name or "–",
        wait=length(at - first.since, words.span_units),
    )
    verdict = verdict_text(page, answer)
    if answer.verdict == "fits":
        verdict = words("queue.head_fits", reason=first.reason or words("queue.no_reason"))
    show(f'<p class="answer">{strong(f"{text} {verdict}")}</p>')
    _list(page, waiting)


def _list(page: Page, waiting: list[QueuedJob]) -> None:
    words, at = page.words, asked_moment(page)
    columns = [
        Column(words("teams.job")),
        Column(words("teams.user"), text=True),
        Column(words("queue.queue"), text=True, narrow=False),
        Column("GPUs"),
        Column(words("stranding.nodes"), narrow=False),
        Column(words("queue.waits_for")),
        Column(words("queue.scheduler_says"), text=True, narrow=False),
    ]
    rows = [
        [
            job.job_id,
            job.user_name or "–",
            job.queue or "–",
            str(job.gpus),
            str(job.nodes),
            length(at - job.since, words.span_units),
            job.reason or "–",
        ]
        for job in waiting[:SHOWN]
    ]
    body = table(columns, rows)
    if len(waiting) > SHOWN:
        more = words("overview.broken_more", count=len(waiting) - SHOWN)
        body += f'<p class="hint">{escape(more)}</p>'
    order = "queue.order_snapshot" if waiting[0].known_from == "snapshot" else "queue.order_records"
    show(body + f'<p class="hint">{escape(words(order))}</p>')
    downloads("queue", [asdict(job) for job in waiting], words)
