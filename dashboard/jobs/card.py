"""A job's card: what it held, used, waited for and cost, where it ran, and its samples."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from html import escape
from typing import Any

import streamlit as st

from dashboard import data
from dashboard.formats import ABSENT, hours, length, moment, money, number, percent, waited
from dashboard.frame import Page
from dashboard.jobs.suspects import suspects
from dashboard.jobs.timeline import devices, timeline
from dashboard.palette import CLASSES, HELD
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, Tile, heading, legend, show, strong, table, tag, tiles
from dashboard.stranding.now import verdict_text
from scheduler_advisor.errors import AdvisorError

STEPS = 400
LEAST_STEP_S = 60
LONG_WAIT_S = 60


def card(page: Page, job_id: str) -> None:
    """The card of ``job_id``, or what is wrong with the name."""
    words = page.words
    if st.button(words("jobs.back"), key="all_jobs", type="tertiary"):
        st.query_params.pop("job", None)
        st.rerun()
    try:
        body = data.job(page.path, job_id, page.span.until, page.view.cluster).body
    except AdvisorError as error:
        st.warning(str(error))
        return
    show(f'<p class="answer">{strong(_sentence(page, body))}</p>')
    show(tiles(_tiles(page, body), words))
    left, right = st.columns([5, 4], gap="large")
    with left:
        _runs(page, body)
        _why(page, body)
    with right:
        _split(page, body)
        suspects(page, body)
    _samples(page, body)


def _sentence(page: Page, body: dict[str, Any]) -> str:
    words = page.words
    return words(
        "jobs.sentence",
        job=body["job_id"],
        name=body["name"] or ABSENT,
        user=body["user"] or ABSENT,
        account=body["account"] or ABSENT,
        queue=body["queue"] or ABSENT,
        state=body["state"],
        gpus=body["gpus"] or 0,
    )


def _tiles(page: Page, body: dict[str, Any]) -> list[Tile]:
    words = page.words
    cost = None if body["cost"] is None else Decimal(body["cost"])
    wait = waited(body["wait_s"], words.span_units)
    busy: float | None = body["activity_ratio"]
    idle = hours(body["allocated_idle_gpu_hours"])
    return [
        Tile(words("jobs.cost"), money(cost, body["currency"] or ""), "observed",
             sub=words("jobs.cost_sub")),
        Tile(words("jobs.held"), hours(body["held_gpu_hours"]), "observed",
             sub=words("jobs.held_sub", runs=len(body["rows"]))),
        Tile(words("teams.efficiency"), percent(busy), "observed", ratio=busy,
             sub=words("overview.efficiency_sub", hours=idle)),
        Tile(words("jobs.wait"), wait, "observed",
             sub=words("jobs.started" if body["started"] else "queue.not_started")),
    ]  # fmt: skip


def _runs(page: Page, body: dict[str, Any]) -> None:
    """Every run with its placement."""
    words, zone = page.words, page.view.zone
    columns = [
        Column(words("jobs.run")),
        Column(words("jobs.by_state"), text=True),
        Column(words("jobs.start")),
        Column(words("jobs.end"), narrow=False),
        Column(words("jobs.placement"), text=True),
    ]
    rows = [
        [
            str(run["attempt"]),
            run["state"],
            moment(run["start"], zone) if run["start"] else ABSENT,
            moment(run["end"], zone) if run["end"] else ABSENT,
            run["nodes"] or ABSENT,
        ]
        for run in body["rows"]
    ]
    show(heading(words("jobs.runs"), zone, after=tag("observed", words)) + table(columns, rows))


def _why(page: Page, body: dict[str, Any]) -> None:
    """Why it waited: the verdict on its request a moment after it became eligible."""
    words = page.words
    eligible: datetime | None = body["rows"][0]["eligible"]
    show(heading(words("jobs.why"), after=tag("modelled", words)))
    if eligible is None or body["wait_s"] < LONG_WAIT_S:
        show(f'<p class="fine">{escape(words("jobs.why_none"))}</p>')
        return
    at = eligible + timedelta(seconds=1)
    waiting = data.queue(page.path, at, body["cluster"])
    place = next((n for n, job in enumerate(waiting) if job.job_id == body["job_id"]), None)
    if place is None:
        show(f'<p class="hint">{escape(body["reason"] or words("queue.no_reason"))}</p>')
        return
    answer = data.start(page.path, at, waiting[place].shape, body["cluster"])
    text = words(
        "jobs.why_then",
        at=moment(at, page.view.zone),
        place=place + 1,
        verdict=verdict_text(page, answer),
    )
    show(f"<p>{strong(text)}</p>")


def _split(page: Page, body: dict[str, Any]) -> None:
    """Its GPU-hours by class, then the free time beside it that it caused or waited for."""
    words = page.words
    held = [name for name in HELD if body[f"{name}_gpu_hours"]]
    show(heading(words("jobs.split"), after=tag("observed", words)))
    columns = [Column(words("overview.week_class")), Column(words("health.gpu_hours"))]
    rows = [[words(f"class.{name}"), number(body[f"{name}_gpu_hours"])] for name in held]
    swatches = [CLASSES[name].colour for name in held]
    show(table(columns, rows, swatches=swatches) if rows else f"<p>{ABSENT}</p>")
    beside = data.causes(page.path, body["cluster"], body["job_id"])
    if not beside:
        return
    columns = [
        Column(words("overview.week_class")),
        Column(words("stranding.role"), text=True),
        Column(words("stranding.rule"), text=True, narrow=False),
        Column(words("health.gpu_hours")),
    ]
    rows = [
        [
            words(f"class.{cause.ledger_class}"),
            words(f"role.{cause.role}"),
            words(f"rule.{cause.rule}"),
            number(cause.gpu_hours),
        ]
        for cause in beside
    ]
    swatches = [CLASSES[cause.ledger_class].colour for cause in beside]
    show(heading(words("jobs.beside"), after=tag("modelled", words)))
    show(table(columns, rows, swatches=swatches))


def _samples(page: Page, body: dict[str, Any]) -> None:
    words = page.words
    starts = [run["start"] for run in body["rows"] if run["start"]]
    step = _step(page, body, starts)
    samples = data.samples(page.path, body["cluster"], body["job_id"], step) if starts else []
    units = words.span_units
    hint = words("jobs.step", step=length(timedelta(seconds=step), units)) if samples else ""
    show(heading(words("jobs.samples"), hint, after=tag("observed", words)))
    if not samples:
        show(f'<p class="hint">{escape(words("jobs.samples_none"))}</p>')
        return
    marks = [mark["ts"] for mark in body["marks"] if mark["kind"].endswith("_end")]
    if marks:
        show(legend({words("jobs.mark", count=len(marks)): "#a4262c"}))
    timeline(page, samples, marks)
    show(heading(words("jobs.devices"), words("jobs.devices_hint")))
    devices(page, samples)
    downloads("job-samples", [asdict(sample) for sample in samples], words)


def _step(page: Page, body: dict[str, Any], starts: list[datetime]) -> int:
    """Seconds per point, whole minutes, so that the longest job has a few hundred points."""
    if not starts:
        return LEAST_STEP_S
    ends = [run["end"] or page.span.until for run in body["rows"] if run["start"]]
    span_s = (max(ends) - min(starts)).total_seconds()
    return max(LEAST_STEP_S, -(-int(span_s / STEPS) // 60) * 60)
