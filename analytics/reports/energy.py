"""Board energy and carbon per team, where energy was measured; beside the ledger, never in it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from analytics.carbon import intensity_at, intensity_rows
from analytics.energy import roll_up
from analytics.energy_split import add_boards, start_boards
from analytics.errors import ReportError
from analytics.labels import kept
from analytics.money import shown_parts
from analytics.org import WHOLE_PPM, OrgMap, label_keys
from analytics.reports.asked import Question
from analytics.reports.cells import epochs
from analytics.reports.cost import asked_clusters
from analytics.reports.identity import installed
from analytics.reports.report import Row
from analytics.reports.table import TableReport
from analytics.window import Window
from collector.store import Store, Work

KEYS = ("team", "project", "cost_center", "user", "account", "node", "cluster")
_ORG = ("team", "project", "cost_center")
_ROLLING = threading.Lock()
"""Reports are asked for on many threads; the roll-up is brought up to date by one at a time."""
_PER_KWH = 3_600_000_000
"""Millijoules in a kilowatt-hour."""
_SUMS = """
SELECT e.cluster, e.node, r.labels, r.user_name, r.account, r.project, r.partition AS queue,
  e.run_id IS NOT NULL AS held, CAST(sum(energy_mj) AS BIGINT) AS mj,
  CAST(sum(measured_us) AS BIGINT) AS us,
  CAST(sum(CASE WHEN method = 'counter' THEN energy_mj ELSE 0 END) AS BIGINT) AS counted
FROM board_energy e LEFT JOIN (
  SELECT cluster, run_id, arg_max(user_name, submit_at) AS user_name,
    arg_max(account, submit_at) AS account, arg_max(project, submit_at) AS project,
    arg_max(partition, submit_at) AS partition, max(labels) AS labels
  FROM job_run LEFT JOIN (SELECT cluster, job_id, max(labels) AS labels FROM job GROUP BY ALL)
    USING (cluster, job_id) GROUP BY ALL) r ON r.cluster = e.cluster AND r.run_id = e.run_id
WHERE e.hour >= $1 AND e.hour < $2 AND ($3::VARCHAR IS NULL OR e.cluster = $3)
GROUP BY ALL ORDER BY ALL
"""


@dataclass(slots=True)
class _Sum:
    mj: Fraction = Fraction(0)
    counted: Fraction = Fraction(0)
    grams: Fraction = Fraction(0)
    dark: bool = False
    """A part has no carbon intensity."""


def energy_report(
    store: Store, window: Window, by: Sequence[str] = ("team",), *, cluster: str | None = None
) -> TableReport:
    """Rows of ``energy_kwh``, ``carbon_g`` and the share of it that a counter measured.

    A key of null is what no run had: idle boards and unassigned slices. A board that several runs
    shared is split (`analytics.energy_split`); no counter measured its parts. The energy is that of
    the boards, without the building; carbon is energy x PUE x grams per kWh as
    dated. Whole hours of the window count. Raises ReportError for an unknown key.
    """
    names = tuple(by)
    unknown = [name for name in names if name not in KEYS]
    if unknown or len(set(names)) != len(names):
        raise ReportError(f"cannot group energy by {', '.join(names)}: use {', '.join(KEYS)}")
    asked = asked_clusters(store, cluster)
    with store.work() as work:
        with work.transaction():
            start_boards(work)
        with _ROLLING, work.transaction():
            for name in asked:
                roll_up(work, name, window)
                add_boards(work, name, window)
        org, intensities = OrgMap.load(work), intensity_rows(work)
        labels = label_keys(work)
        changes = [*org.changes, *(row["effective_from"] for row in intensities)]
        spans = epochs(Question(window, ()), changes)
        sums: dict[tuple[Any, ...], _Sum] = defaultdict(_Sum)
        measured = 0
        for since, until in spans:
            for row in work.rows(_SUMS, [since, until, cluster]):
                measured += row["us"]
                row["labels"] = kept(row["labels"], labels)
                _post(sums, names, row, org, (since, intensity_at(intensities, row["cluster"],
                                                                  since)))  # fmt: skip
        return _finish(work, asked, window, names, (sums, measured))


def _post(
    sums: dict[tuple[Any, ...], _Sum],
    names: tuple[str, ...],
    row: dict[str, Any],
    org: OrgMap,
    at: tuple[datetime, dict[str, Any] | None],
) -> None:
    since, intensity = at
    owners = org.owners(row, since) if row["held"] else [None]
    for owner in owners:
        share = Fraction(WHOLE_PPM if owner is None else owner.ratio_ppm, WHOLE_PPM)
        total = sums[tuple(_value(name, row, owner) for name in names)]
        energy = row["mj"] * share
        total.mj += energy
        total.counted += row["counted"] * share
        total.dark = total.dark or intensity is None
        if intensity is not None:
            per_kwh = Fraction(intensity["grams_per_kwh"]) * Fraction(intensity["pue_ratio"])
            total.grams += energy / _PER_KWH * per_kwh


def _value(name: str, row: dict[str, Any], owner: Any) -> str | None:
    if name in ("node", "cluster"):
        return str(row[name])
    if owner is None:
        return None
    if name in _ORG:
        return str(getattr(owner, name))
    return row[{"user": "user_name"}.get(name, name)] or "unknown"


def _finish(
    work: Work,
    clusters: list[str],
    window: Window,
    names: tuple[str, ...],
    found: tuple[dict[tuple[Any, ...], _Sum], int],
) -> TableReport:
    sums, measured = found
    keys = sorted(sums, key=lambda key: [(value is None, value or "") for value in key])
    energy = shown_parts([sums[key].mj / _PER_KWH for key in keys])
    carbon = shown_parts([sums[key].grams for key in keys])
    rows: list[Row] = [
        {
            **dict(zip(names, key, strict=True)),
            "energy_kwh": kwh,
            "carbon_g": None if sums[key].dark else grams,
            "counter_ratio": float(sums[key].counted / sums[key].mj) if sums[key].mj else None,
        }
        for key, kwh, grams in zip(keys, energy, carbon, strict=True)
    ]
    dark = any(sums[key].dark for key in keys)
    whole = installed(work, clusters, window, [(window.since, window.until)]).gpu_us
    total: Row = {
        "energy_kwh": sum(energy, Decimal(0)),
        "carbon_g": None if dark else sum(carbon, Decimal(0)),
        "measured_ratio": min(measured / whole, 1.0) if whole else None,
    }
    remarks = ["energy of boards as measured; what no single run had stands under no team"]
    if dark:
        remarks.append("a part has no carbon intensity: price carbon load")
    if not rows:
        remarks.append("no sample of this window has energy or power")
    return TableReport(window, None, rows, total, remarks)
