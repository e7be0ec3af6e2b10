"""What a job's card says of time that is lost, may be lost or looks like a hang."""

from __future__ import annotations

from html import escape
from typing import Any

from analytics.window import Window
from dashboard import data
from dashboard.formats import number
from dashboard.frame import Page
from dashboard.parts.html import Column, heading, show, table, tag


def suspects(page: Page, body: dict[str, Any]) -> None:
    """A row per class and kind of evidence, and the latest text of each below."""
    words = page.words
    starts = [run["start"] for run in body["rows"] if run["start"]]
    if not starts or min(starts) >= page.span.until:
        return
    window = Window(min(starts), page.span.until)
    found = data.evidence(page.path, window, body["cluster"], body["job_id"])
    if not found:
        return
    columns = [
        Column(words("overview.week_class")),
        Column(words("stranding.rule"), text=True),
        Column(words("health.gpu_hours")),
    ]
    rows = [
        [_class(page, row["class"]), words(f"evidence.{row['evidence']}"), number(row["gpu_hours"])]
        for row in found
    ]
    show(heading(words("jobs.suspects"), after=tag("modelled", words)))
    show(table(columns, rows))
    for text in dict.fromkeys(row["text"] for row in found):
        show(f'<p class="hint">{escape(text)}</p>')


def _class(page: Page, name: str) -> str:
    return page.words(f"class.{name}" if name == "lost" else f"overlay.{name}")
