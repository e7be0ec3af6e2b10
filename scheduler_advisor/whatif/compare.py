"""Today and a candidate side by side, as plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduler_advisor.calibration.grade import Grade
from scheduler_advisor.engine.policy_text import to_toml
from scheduler_advisor.engine.prepare import PLANNED
from scheduler_advisor.past import Past
from scheduler_advisor.search.alter import World
from scheduler_advisor.search.bench import Bench, Trial
from scheduler_advisor.search.candidate import Weekly, harmed
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.search.usable import FEW

LOADS = (1.3, 0.7)  # the longest replays first, so that no process is left over with one
FIGURES = (
    ("mean_wait_s", False), ("p95_wait_s", False), ("urgent_p95_s", False), ("big_p95_s", False),
    ("slowdown", False), ("fairness", True), ("goodput", True), ("blast_gpus", False),
    ("preemptions", False), ("not_started", False),
)  # fmt: skip
"""Name, and whether more is better."""
SAME = 0.01  # a hundredth is no difference


def loads_tried(base: Trial, candidate: Trial, past: Past) -> tuple[float, ...]:
    """The other loads at which both are replayed. In a long history thousands wait under more
    load, and a plan in which each has a place takes a quarter of an hour: that is left out."""
    deep = len(past.jobs) > FEW and any(
        trial.policy.backfill in PLANNED and not trial.policy.backfill_depth
        for trial in (base, candidate)
    )
    return tuple(load for load in LOADS if load < 1 or not deep)


def trials(base: Trial, candidate: Trial, past: Past) -> list[Trial]:
    """Today and the candidate first, then both under more and less load: the boundary."""
    found = [base, candidate]
    for load in loads_tried(base, candidate, past):
        found.append(Trial(base.policy, World(load=load)))
        world = replace(candidate.world, load=candidate.world.load * load)
        found.append(Trial(candidate.policy, world))
    return list(dict.fromkeys(found))


def side_by_side(
    bench: Bench, base: Trial, candidate: Trial, known: dict[Trial, Effects], grade: Grade
) -> dict[str, Any]:
    """Everything that the page and the API show; waits in s, amounts a week.

    ``known``: at least ``base`` and ``candidate``; the boundary has the loads that are known.
    """
    today, after = known[base], known[candidate]
    size = min(len(today.blocked), len(after.blocked))
    daily = today.lost_capacity[:size] - after.lost_capacity[:size]
    hours = Weekly.of(daily, bench.input_error)
    rows = _rows(today, after)
    return {
        "kind": "modelled", "grade": grade.value, "promises": grade.promises,
        "policy": to_toml(candidate.policy), "policy_today": to_toml(base.policy),
        "gpus": {"today": bench.past.cluster.total_gpus,
                 "candidate": _gpus(bench.past, candidate.world.nodes)},
        "jobs": int(bench.past.judged.sum()),
        "saving": {"per": "week", "gpu_hours": round(hours.point, 1) if grade.promises else None,
                   "interval_80": [round(hours.low, 1), round(hours.high, 1)]},
        "rows": rows,
        "gained": [row["measure"] for row in rows if row["better"] is True],
        "lost": [row["measure"] for row in rows if row["better"] is False],
        "harms": list(harmed(today, after)),
        "boundary": _boundary(base, candidate, known),
        "loads_left_out": sorted(set(LOADS) - set(loads_tried(base, candidate, bench.past))),
        "daily": {"first_day": bench.past.day(0), "today": today.blocked.round(2).tolist(),
                  "candidate": after.blocked.round(2).tolist()},
        "engine_s": round(today.engine_s + after.engine_s, 3),
    }  # fmt: skip


def _gpus(past: Past, nodes: int) -> int:
    return past.cluster.with_nodes(nodes).total_gpus if nodes else past.cluster.total_gpus


def _rows(today: Effects, after: Effects) -> list[dict[str, Any]]:
    rows = [_row("blocked_gpu_hours", float(today.blocked.mean()) * 7,
                 float(after.blocked.mean()) * 7, more=False)]  # fmt: skip
    for name, more in FIGURES:
        before, later = getattr(today, name), getattr(after, name)
        if before is not None and later is not None:
            rows.append(_row(name, float(before), float(later), more=more))
    return rows


def _row(name: str, before: float, after: float, *, more: bool) -> dict[str, Any]:
    same = abs(after - before) <= SAME * max(abs(before), abs(after)) + 1e-9
    better = None if same else (after > before) == more
    return {"measure": name, "today": round(before, 4), "candidate": round(after, 4),
            "better": better}  # fmt: skip


def _boundary(base: Trial, candidate: Trial, known: dict[Trial, Effects]) -> list[dict[str, Any]]:
    """What the candidate wins back at other loads; where it is 0 or less it does not pay."""
    rows = []
    for load in sorted((*LOADS, 1.0)):
        before = base if load == 1.0 else Trial(base.policy, World(load=load))
        world = replace(candidate.world, load=candidate.world.load * load)
        after = candidate if load == 1.0 else Trial(candidate.policy, world)
        if before not in known or after not in known:
            continue
        won = known[before].lost_capacity.mean() - known[after].lost_capacity.mean()
        rows.append({"load": load, "gpu_hours": round(float(won) * 7, 1),
                     "mean_wait_s": [round(known[before].mean_wait_s),
                                     round(known[after].mean_wait_s)]})  # fmt: skip
    return rows
