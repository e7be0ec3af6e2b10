"""Commitments against what was installed: what is paid for and not there is its own line."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from analytics.commitments import commitment_rows
from analytics.gpu_models import ModelNames, normalised
from analytics.ledger.facts import inventory
from analytics.ledger.fleet import Fleet, clip
from analytics.money import shown_parts
from analytics.reports.cost import asked_clusters
from analytics.reports.identity import PER_UNIT
from analytics.reports.rates import Rates, one_currency
from analytics.reports.report import Row
from analytics.reports.table import TableReport
from analytics.window import Window, from_us, to_us
from collector.store import Store, Work

_HOUR_US = 3_600_000_000
_PLACES = Decimal("0.000000001")
Place = tuple[str, str]


def commitment_report(
    store: Store, window: Window, *, cluster: str | None = None, currency: str | None = None
) -> TableReport:
    """Per commitment: GPU-hours paid for, covered by installed GPUs and unused, and their cost.

    GPUs of a model are covered by commitments of their own cluster first, then by general ones, in
    the order of start and id; each GPU by one commitment. What no commitment covers is not here.
    """
    asked = asked_clusters(store, cluster)
    with store.work() as work:
        rates = Rates.load(work)
        rows = [r for r in commitment_rows(work) if _bears(r, window, cluster)]
        unit = one_currency({r["currency"] for r in rows}, currency)
        cuts = {t for r in rows for t in rates.changes([r["currency"]], unit)}
        used, paid, _ = _used(work, asked, window, rows, cuts)
    return _finish(window, unit, rates, rows, (used, paid))


def _bears(row: dict[str, Any], window: Window, cluster: str | None) -> bool:
    overlaps = row["effective_from"] < window.until and row["effective_to"] > window.since
    return overlaps and (cluster is None or row["cluster"] == cluster)


@dataclass(frozen=True, slots=True)
class Cover:
    """GPU time of a cluster's model over ``[t0, t1)`` (us) that one commitment pays for."""

    cluster: str
    gpu_model: str
    t0: int
    t1: int
    gpu_us: int
    commitment: dict[str, Any]


def covers(store: Store, window: Window, cluster: str | None = None) -> list[Cover]:
    """What commitments cover in the window, as `commitment_report` counts it."""
    asked = asked_clusters(store, cluster)
    with store.work() as work:
        rates = Rates.load(work)
        rows = [r for r in commitment_rows(work) if _bears(r, window, cluster)]
        cuts = {t for r in rows for t in rates.changes([r["currency"]], None)}
        return _used(work, asked, window, rows, cuts)[2] if rows else []


Times = dict[str, dict[int, int]]
"""Commitment -> start of the slice (us) -> GPU time."""


def _used(
    work: Work,
    clusters: Sequence[str],
    window: Window,
    rows: Sequence[dict[str, Any]],
    cuts: set[datetime],
) -> tuple[Times, Times, list[Cover]]:
    names = ModelNames.load(work)
    lines = {name: list(_timeline(work, name, window)) for name in clusters}
    edges = {window.since_us, window.until_us} | {to_us(t) for t in cuts}
    edges |= {to_us(r[k]) for r in rows for k in ("effective_from", "effective_to")}
    edges |= {t for line in lines.values() for _, t0, t1, _ in line for t in (t0, t1)}
    used: Times = defaultdict(dict)
    paid: Times = defaultdict(dict)
    found: list[Cover] = []
    order = sorted(rows, key=lambda r: (r["cluster"] is None, r["effective_from"],
                                        r["commitment_id"]))  # fmt: skip
    inside = sorted(t for t in edges if window.since_us <= t <= window.until_us)
    for a, b in itertools.pairwise(inside):
        left: dict[Place, int] = defaultdict(int)
        for name, line in lines.items():
            for model, t0, t1, gpus in line:
                if t0 <= a and b <= t1:
                    left[name, model] += gpus
        for row in order:
            if to_us(row["effective_from"]) <= a and b <= to_us(row["effective_to"]):
                taken = _take(row, left, names)
                found += [Cover(*place, a, b, gpus * (b - a), row) for place, gpus in taken]
                used[row["commitment_id"]][a] = sum(gpus for _, gpus in taken) * (b - a)
                paid[row["commitment_id"]][a] = row["gpus"] * (b - a)
    return used, paid, found


def _timeline(work: Work, cluster: str, window: Window) -> Iterator[tuple[str, int, int, int]]:
    fleet = Fleet.of(inventory(work, cluster, window.since_us, window.until_us))
    for pool, timeline in enumerate(fleet.installed):
        for t0, t1, gpus in clip(timeline, window.since_us, window.until_us):
            yield fleet.pools[pool][1], t0, t1, gpus


def _take(
    row: dict[str, Any], left: dict[Place, int], names: ModelNames
) -> list[tuple[Place, int]]:
    """Cover installed GPUs with a commitment; what it covers is gone for the next."""
    wanted, wish, taken = normalised(row["gpu_model"]), row["gpus"], []
    for place in sorted(left):
        fits = row["cluster"] in (None, place[0]) and wanted in names.candidates(place[1])
        part = min(wish, left[place]) if fits else 0
        if part:
            left[place] -= part
            wish -= part
            taken.append((place, part))
    return taken


def _finish(
    window: Window,
    unit: str | None,
    rates: Rates,
    rows: Sequence[dict[str, Any]],
    times: tuple[Times, Times],
) -> TableReport:
    used, paid = times

    def money(row: dict[str, Any], time: dict[int, int]) -> Fraction:
        assert unit is not None
        return sum(
            (
                amount * int(row["amount"] * 10**6) * PER_UNIT
                * rates.rate(row["currency"], unit, from_us(at))
                for at, amount in time.items()
            ),
            Fraction(0),
        )  # fmt: skip

    covered = [money(row, used[row["commitment_id"]]) for row in rows]
    unused = [
        money(row, paid[row["commitment_id"]]) - part
        for row, part in zip(rows, covered, strict=True)
    ]
    shown = shown_parts([*covered, *unused])
    found = []
    for nth, row in enumerate(rows):
        name = row["commitment_id"]
        cost = (shown[nth], shown[len(rows) + nth])
        found.append(_row(row, sum(paid[name].values()), sum(used[name].values()), cost))
    columns = ("committed_gpu_hours", "covered_gpu_hours", "unused_gpu_hours", "cost",
               "covered_cost", "unused_cost")  # fmt: skip
    total: Row = {name: sum((row[name] for row in found), Decimal(0)) for name in columns}
    return TableReport(window, unit, found, total)


def _row(row: dict[str, Any], paid: int, used: int, cost: tuple[Decimal, Decimal]) -> Row:
    return {
        "commitment_id": row["commitment_id"], "cluster": row["cluster"],
        "gpu_model": row["gpu_model"], "kind": row["kind"], "gpus": row["gpus"],
        "committed_gpu_hours": _hours(paid), "covered_gpu_hours": _hours(used),
        "unused_gpu_hours": _hours(paid - used),
        "covered_ratio": used / paid if paid else None,
        "cost": sum(cost), "covered_cost": cost[0], "unused_cost": cost[1],
    }  # fmt: skip


def _hours(us: int) -> Decimal:
    return (Decimal(us) / _HOUR_US).quantize(_PLACES)
