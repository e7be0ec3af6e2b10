"""What would stop if a part of the cluster failed now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from analytics.questions.blast_radius import Blast
from dashboard.formats import hours, number
from dashboard.frame import Page
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, table, tag

LEVELS = ("spine", "leaf", "rack", "node")
OF_LEVEL = 3


def blast_table(page: Page, parts: Sequence[Blast]) -> None:
    """The worst of each level, the widest level first."""
    words = page.words
    show(heading(words("fleet.blast"), words("fleet.blast_hint"), after=tag("modelled", words)))
    hit = [part for part in parts if part.jobs]
    if not hit:
        show(f'<p class="fine">{escape(words("fleet.blast_none"))}</p>')
        return
    columns = [
        Column(words("fleet.part")),
        Column(words("fleet.own_gpus"), narrow=False),
        Column(words("fleet.stopped_jobs")),
        Column(words("fleet.stopped_gpus")),
        Column(words("fleet.stopped_accounts"), narrow=False),
        Column(words("fleet.at_risk")),
    ]
    shown = [part for level in LEVELS for part in _of(hit, level)]
    rows = [
        [
            words(f"level.{part.level}", name=part.name),
            str(part.gpus),
            str(part.jobs),
            number(part.job_gpus) if part.job_gpus % 1 else f"{part.job_gpus:,.0f}",
            str(part.accounts),
            hours(part.at_risk_gpu_hours),
        ]
        for part in shown
    ]
    show(table(columns, rows))
    downloads("blast-radius", [asdict(part) for part in parts], words)


def _of(parts: Sequence[Blast], level: str) -> list[Blast]:
    return [part for part in parts if part.level == level][:OF_LEVEL]
