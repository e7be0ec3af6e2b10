"""Nodes with faults, memory errors or slowed clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from analytics.questions.device_health import NodeHealth
from dashboard.formats import ABSENT, moment, percent
from dashboard.frame import Page
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, table, tag

SHOWN = 15


def health_table(page: Page, nodes: Sequence[NodeHealth]) -> None:
    """The sick nodes; what was not measured reads as a dash, never as nought."""
    words, zone = page.words, page.view.zone
    show(heading(words("fleet.health"), after=tag("observed", words)))
    sick = [node for node in nodes if node.sick]
    if not sick:
        show(f'<p class="fine">{escape(words("fleet.health_none"))}</p>')
    columns = [
        Column(words("health.node")),
        Column(words("fleet.faults")),
        Column(words("fleet.last_fault"), text=True),
        Column(words("fleet.ecc")),
        Column(words("fleet.slowed"), narrow=False),
        Column(words("fleet.hottest"), narrow=False),
    ]
    rows = [
        [
            node.node,
            str(node.faults),
            f"Xid {node.last_code or ABSENT}, {moment(node.last_fault_at, zone)}"
            if node.last_fault_at
            else ABSENT,
            ABSENT if node.ecc_uncorrected is None else str(node.ecc_uncorrected),
            _slowed(node),
            ABSENT if node.hottest_c is None else f"{node.hottest_c:.0f} °C",
        ]
        for node in sick[:SHOWN]
    ]
    if rows:
        show(table(columns, rows))
    downloads("node-health", [asdict(node) for node in nodes], words)


def _slowed(node: NodeHealth) -> str:
    if not node.throttle_samples or node.slowed_samples is None:
        return ABSENT
    return percent(node.slowed_samples / node.throttle_samples)
