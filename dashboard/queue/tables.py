"""Waits by size class, queue and team; the jobs behind them to take away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol

from dashboard.data import Report
from dashboard.formats import number, waited
from dashboard.frame import Page
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, table, tag
from dashboard.queue.charts import SIZES
from dashboard.teams.names import team_name
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.sizes import SIZE_CLASSES
from scheduler_advisor.measurements.team_waits import TeamWaits
from scheduler_advisor.measurements.waits import JobWait, WaitGroup, by_queue_and_size


class _Waits(Protocol):
    """What every row of waits has."""

    @property
    def jobs(self) -> int: ...
    @property
    def p50_s(self) -> float | None: ...
    @property
    def p95_s(self) -> float | None: ...
    @property
    def max_s(self) -> float | None: ...
    @property
    def waited_gpu_hours(self) -> float: ...
    @property
    def not_started(self) -> int: ...


def size_table(page: Page, waits: Sequence[JobWait], stranding: Report) -> None:
    """Per size class its waits, and the GPU-hours that stood free because it waited for a gang."""
    words, units = page.words, page.words.span_units
    size_of = {wait.job_id: wait.size for wait in waits}
    kept: dict[str, float] = defaultdict(float)
    for row in stranding.rows:
        if row["class"] == "gang_wait":
            kept[size_of.get(row["job"], "")] += float(row["gpu_hours"])
    rows = []
    sizes = [size for size in SIZE_CLASSES if any(wait.size == size for wait in waits)]
    for size in sizes:
        done = sorted(w.wait_s for w in waits if w.started and w.size == size)
        rows.append([
            words("queue.size_of", size=size), f"{len(done):,}",
            waited(quantile(done, 0.5), units), waited(quantile(done, 0.95), units),
            waited(done[-1] if done else None, units), number(kept[size]),
        ])  # fmt: skip
    columns = [
        Column(words("queue.size")),
        Column(words("queue.jobs"), narrow=False),
        *(Column(words(f"queue.{name}")) for name in ("p50", "p95")),
        Column(words("queue.longest"), narrow=False),
        Column(words("queue.kept")),
    ]
    hint = words("queue.kept_hint")
    show(heading(words("queue.by_size"), hint, after=tag("modelled", words)))
    show(table(columns, rows, swatches=[SIZES[size] for size in sizes]))
    downloads("waits-jobs", [asdict(wait) for wait in waits], words)


def queue_table(page: Page, waits: Sequence[JobWait]) -> None:
    """One row per queue and size class."""
    words = page.words
    groups: list[WaitGroup] = by_queue_and_size(waits)
    names = [f"{group.queue or '–'} · {group.size}" for group in groups]
    show(heading(words("queue.by_queue"), after=tag("observed", words)))
    show(_table(page, words("queue.queue"), names, groups))
    downloads("waits-queues", [asdict(group) for group in groups], words)


def team_table(page: Page, teams: Sequence[TeamWaits]) -> None:
    """One row per team, most waited GPU-hours first."""
    words = page.words
    names = [team_name(team.team or "unmapped", words) for team in teams]
    show(heading(words("queue.by_team"), after=tag("observed", words)))
    show(_table(page, words("teams.team"), names, teams))
    downloads("waits-teams", [asdict(team) for team in teams], words)


def _table(page: Page, first: str, names: Sequence[str], groups: Sequence[_Waits]) -> str:
    words, units = page.words, page.words.span_units
    columns = [
        Column(first),
        Column(words("queue.jobs"), narrow=False),
        *(Column(words(f"queue.{name}")) for name in ("p50", "p95")),
        Column(words("queue.longest"), narrow=False),
        Column(words("queue.asked")),
        Column(words("queue.not_started"), narrow=False),
    ]
    rows = [
        [
            name,
            f"{group.jobs:,}",
            *(waited(value, units) for value in (group.p50_s, group.p95_s, group.max_s)),
            number(group.waited_gpu_hours),
            f"{group.not_started:,}",
        ]
        for name, group in zip(names, groups, strict=True)
    ]
    return table(columns, rows)
