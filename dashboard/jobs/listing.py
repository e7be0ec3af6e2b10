"""The table of jobs with its filters; choosing a row opens the job's card."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import streamlit as st

from analytics.window import Window
from dashboard import data
from dashboard.data import Report
from dashboard.formats import hours, percent, whole_money
from dashboard.frame import Page, answer
from dashboard.jobs.rows import HELD_COLUMNS, JobRow, chosen, job_rows
from dashboard.palette import STRANDED
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show, tag
from dashboard.teams.names import team_name

SHOWN = 500
CLASSES_OFFERED = (*HELD_COLUMNS, STRANDED[0])


def listing(page: Page, window: Window) -> None:
    """Jobs of the window by the filters of the address."""
    words, view = page.words, page.view
    keys = ("cluster", "job", "team")
    report = data.cost(page.path, window, keys, view.cluster, view.currency)
    everything = job_rows(data.jobs(page.path, window, view.cluster), report.rows)
    rows = chosen(everything, view)
    held = sum(row.held for row in rows)
    priced = [row.cost for row in rows if row.cost is not None]
    text = words(
        "jobs.answer",
        count=f"{len(rows):,}",
        hours=hours(held),
        cost=whole_money(sum(priced, Decimal()) if priced else None, report.currency),
        share=percent(sum(row.hours["used"] for row in rows) / held if held else None),
    )
    answer(text, page, report.coverage_ratio, report.price_book)
    _filters(page, everything)
    hint = words("jobs.shown", shown=f"{min(SHOWN, len(rows)):,}", count=f"{len(rows):,}")
    show(heading(words("jobs.table"), hint, after=tag("observed", words)))
    _table(page, rows[:SHOWN], report)
    downloads("jobs", [_plain(row) for row in rows], words)


def _filters(page: Page, rows: Sequence[JobRow]) -> None:
    words, view = page.words, page.view
    teams = sorted({row.team for row in rows if row.team is not None})
    mine = [row for row in rows if view.team in (None, row.team)]
    users = sorted({row.record.user_name for row in mine if row.record.user_name})
    queues = sorted({row.record.queue for row in rows if row.record.queue})
    states = sorted({row.record.state for row in rows})
    names = {name: words(f"class.{name}") for name in HELD_COLUMNS}
    names[STRANDED[0]] = words("teams.stranded")
    asked = view.ledger_class
    if asked in STRANDED:
        asked = STRANDED[0]
    team, user, queue, state, order = st.columns(5)
    with team:
        _choice(words, "team", {t: team_name(t, words) for t in teams}, view.team)
    with user:
        _choice(words, "user", {u: u for u in users}, view.user)
    with queue:
        _choice(words, "queue", {q: q for q in queues}, view.queue)
    with state:
        _choice(words, "state", {s: s for s in states}, view.state)
    with order:
        _choice(words, "class", names, asked)


def _choice(words: Any, parameter: str, options: dict[str, str], value: str | None) -> None:
    """A filter whose value lives in the address only."""
    key = f"jobs_{parameter}"
    if value is not None:
        options = {value: value} | options
    st.session_state[key] = value or ""

    def changed() -> None:
        if st.session_state[key]:
            st.query_params[parameter] = st.session_state[key]
        else:
            st.query_params.pop(parameter, None)

    texts = {"": words(f"jobs.all_{parameter}")} | options
    label = words(f"jobs.by_{parameter}")
    st.selectbox(label, list(texts), key=key, format_func=lambda v: texts[v], on_change=changed)


def _table(page: Page, rows: Sequence[JobRow], report: Report) -> None:
    picked = st.dataframe(
        _columns(page, rows),
        key=f"jobs_{page.view.first}_{page.view.last}_{page.view.ledger_class}",
        hide_index=True,
        height=min(620, 38 + 35 * max(1, len(rows))),
        column_config=_config(page, report),
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
    ).selection.rows
    if picked:
        record = rows[picked[0]].record
        st.query_params["job"] = record.job_id
        if len(page.span.clusters) > 1:
            st.query_params["cluster"] = record.cluster
        st.rerun()


def _columns(page: Page, rows: Sequence[JobRow]) -> pa.Table:
    return pa.table(
        {
            "job": [row.record.job_id for row in rows],
            "name": [row.record.name for row in rows],
            "team": [None if row.team is None else team_name(row.team, page.words) for row in rows],
            "user": [row.record.user_name for row in rows],
            "state": [row.record.state for row in rows],
            "gpus": [row.record.gpus for row in rows],
            "cost": [None if row.cost is None else float(row.cost) for row in rows],
            "efficiency": [
                None if row.efficiency is None else row.efficiency * 100 for row in rows
            ],
            "held": [row.held for row in rows],
            "idle": [row.hours["allocated_idle"] for row in rows],
            "lost": [row.hours["lost"] for row in rows],
            "stranded": [row.stranded for row in rows],
            "wait": [row.record.wait_s / 3600 for row in rows],
            "start": [row.record.start_at for row in rows],
        }
    )


def _config(page: Page, report: Report) -> dict[str, Any]:
    words, column = page.words, st.column_config
    config: dict[str, Any] = {
        name: column.TextColumn(words(f"teams.{name}")) for name in ("job", "team", "user")
    }
    config["name"] = column.TextColumn(words("jobs.name"))
    config["state"] = column.TextColumn(words("jobs.by_state"))
    config["gpus"] = column.NumberColumn("GPUs")
    config["cost"] = column.NumberColumn(f"{words('teams.cost')} {report.currency}", format="%,.2f")
    config["efficiency"] = column.ProgressColumn(
        words("teams.efficiency"), format="%.0f%%", min_value=0, max_value=100
    )
    for name in ("held", "idle", "lost", "stranded"):
        config[name] = column.NumberColumn(f"{words(f'teams.{name}')} h", format="%,.1f")
    config["wait"] = column.NumberColumn(f"{words('queue.waits_for')} h", format="%,.1f")
    config["start"] = column.DatetimeColumn(
        words("jobs.start"), format="YYYY-MM-DD HH:mm", timezone=page.view.zone
    )
    return config


def _plain(row: JobRow) -> dict[str, Any]:
    record = row.record
    return {
        "cluster": record.cluster, "job": record.job_id, "name": record.name, "team": row.team,
        "user": record.user_name, "account": record.account, "queue": record.queue,
        "state": record.state, "gpus": record.gpus, "nodes": record.nodes, "runs": record.runs,
        "eligible_at": record.eligible_at, "start_at": record.start_at, "end_at": record.end_at,
        "wait_s": record.wait_s, "cost": row.cost, "held_gpu_hours": row.held,
        **{f"{name}_gpu_hours": value for name, value in row.hours.items()},
        "stranded_gpu_hours": row.stranded,
    }  # fmt: skip
