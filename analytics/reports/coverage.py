"""How much of the window is known, per node, and what keeps the rest in the dark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.health.conflicts import Conflict, Unpriced, conflicts, unpriced
from analytics.health.gaps import Gap, gaps
from analytics.health.hints import hints_for, plain_hint
from analytics.org import UNMAPPED
from analytics.reports.cost import cost_report
from analytics.reports.report import Report
from analytics.window import Window
from collector.store import Store


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A holder without an owner; ``hint`` is a row for `org load` that would give it one."""

    user: str
    account: str
    gpu_hours: Decimal
    hint: str


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """``nodes``: rows of cluster, node, GPU-hours and coverage, the darkest first."""

    window: Window
    coverage_ratio: float | None
    nodes: list[dict[str, Any]]
    gaps: list[Gap]
    unmapped: list[Unmapped]
    unpriced: list[Unpriced]
    conflicts: list[Conflict]

    def to_dict(self) -> dict[str, Any]:
        return {
            "window": self.window.to_dict(),
            "coverage_ratio": self.coverage_ratio,
            **{
                name: [_plain(row) for row in getattr(self, name)]
                for name in ("nodes", "gaps", "unmapped", "unpriced", "conflicts")
            },
        }


def coverage_report(store: Store, window: Window, *, cluster: str | None = None) -> CoverageReport:
    """Coverage is the share of GPU time that is neither unknown, unmeasured nor contested."""
    nodes = cost_report(store, window, ("cluster", "node"), cluster=cluster)
    return CoverageReport(
        window=window,
        coverage_ratio=nodes.coverage_ratio,
        nodes=_darkest_first(nodes),
        gaps=gaps(store, window, cluster),
        unmapped=_unmapped(store, window, cluster),
        unpriced=unpriced(store, window, cluster),
        conflicts=conflicts(store, window, cluster),
    )


def _darkest_first(report: Report) -> list[dict[str, Any]]:
    keep = ("cluster", "node", "gpu_hours", "allocated_unmeasured_gpu_hours", "coverage_ratio")
    rows = [{name: row[name] for name in keep} for row in report.rows if row["gpu_hours"]]
    return sorted(rows, key=lambda row: (row["coverage_ratio"], row["cluster"], row["node"]))


def _unmapped(store: Store, window: Window, cluster: str | None) -> list[Unmapped]:
    report = cost_report(store, window, ("team", "user", "account"), cluster=cluster)
    rows = [row for row in report.rows if row["team"] == UNMAPPED and row["gpu_hours"]]
    hints = hints_for(store, window, cluster) if rows else {}
    found = [
        Unmapped(
            row["user"], row["account"], row["gpu_hours"],
            hints.get((row["user"], row["account"])) or plain_hint(row["user"], row["account"]),
        )
        for row in rows
    ]  # fmt: skip
    return sorted(found, key=lambda row: (-row.gpu_hours, row.account, row.user))


def _plain(row: Any) -> dict[str, Any]:
    content = row if isinstance(row, dict) else asdict(row)
    return {name: _value(value) for name, value in content.items()}


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value
