"""What lowers trust, row by row, with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from analytics.health.conflicts import Conflict, Unpriced
from analytics.health.gaps import Gap
from dashboard import data
from dashboard.data import Report
from dashboard.formats import length, moment, number
from dashboard.frame import Page
from dashboard.health.headline import LEAST_GAP, unmapped_rows
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, table
from dashboard.words import Words

SHOWN = 12


def gap_table(page: Page, gaps: Sequence[Gap]) -> None:
    """Stretches that are not known, largest first."""
    words, zone = page.words, page.view.zone
    columns = _columns(page, "node", "kind", "since", "until", "length", "gpu_hours")
    rows = [
        [
            _nodes(gap.nodes, words),
            words(f"health.{gap.kind}"),
            moment(gap.since, zone),
            moment(gap.until, zone),
            length(gap.until - gap.since, words.span_units),
            number(float(gap.gpu_hours)),
        ]
        for gap in gaps
    ]
    none = words("health.gaps_none", least=LEAST_GAP)
    _section(page, "gaps", columns, rows, none, [asdict(gap) for gap in gaps])


def _nodes(nodes: Sequence[str], words: Words) -> str:
    if len(nodes) <= 3:
        return ", ".join(nodes)
    return words("health.nodes_counted", first=nodes[0], count=len(nodes) - 1)


def mapping_table(page: Page, holders: Report) -> None:
    """Users whose time no team pays for."""
    found = unmapped_rows(holders)
    rows = [[str(row["user"] or "–"), number(float(row["held_gpu_hours"]))] for row in found]
    columns = [Column(page.words("teams.user")), Column(page.words("health.gpu_hours"))]
    none = page.words("health.mapping_none")
    _section(page, "mapping", columns, rows, none, found)


def price_table(page: Page, unpriced: Sequence[Unpriced]) -> None:
    """GPU models that count in hours only."""
    zone = page.view.zone
    rows = [
        [
            found.gpu_model,
            moment(found.since, zone),
            moment(found.until, zone),
            number(float(found.gpu_hours)),
        ]
        for found in unpriced
    ]
    columns = [
        Column(page.words("teams.gpu_model")),
        *_columns(page, "since", "until", "gpu_hours"),
    ]
    none = page.words("health.prices_none")
    _section(page, "prices", columns, rows, none, [asdict(found) for found in unpriced])


def conflict_table(page: Page, conflicts: Sequence[Conflict]) -> None:
    """Contradictions and the rule that decided each."""
    rows = [
        [found.node, found.text, found.rule, number(float(found.gpu_hours))] for found in conflicts
    ]
    columns = _columns(page, "node", "what", "rule", "gpu_hours")
    none = page.words("health.contradictions_none")
    _section(page, "contradictions", columns, rows, none, [asdict(found) for found in conflicts])


def source_table(page: Page) -> None:
    """Where facts came from, over what time."""
    zone = page.view.zone
    found = data.sources(page.path, page.view.cluster)
    rows = [
        [
            source.source,
            page.words(f"health.{source.kind}"),
            str(source.nodes) if source.nodes else page.words("health.everywhere"),
            moment(source.since, zone),
            moment(source.until, zone),
        ]
        for source in found
    ]
    columns = _columns(page, "source", "kind", "node", "since", "until")
    _section(page, "sources", columns, rows, "–", [asdict(source) for source in found])


def _section(
    page: Page,
    name: str,
    columns: list[Column],
    rows: Sequence[Sequence[str]],
    none: str,
    download: Sequence[Mapping[str, Any]],
) -> None:
    words = page.words
    hint = words(f"health.{name}_hint") if rows and name in {"mapping", "prices"} else ""
    if not rows:
        show(heading(words(f"health.{name}")) + f'<p class="fine">{none}</p>')
        return
    body = table(columns, rows[:SHOWN])
    if len(rows) > SHOWN:
        more = words("overview.broken_more", count=len(rows) - SHOWN)
        body += f'<p class="hint">{more}</p>'
    show(heading(words(f"health.{name}"), hint) + body)
    downloads(name, download, words)


def _columns(page: Page, *names: str) -> list[Column]:
    text = {"node", "kind", "what", "rule", "source"}
    return [
        Column(page.words(f"health.{name}"), text=name in text, narrow=name != "until")
        for name in names
    ]
