"""What a replay found, in words and plain values: waits, bounds, all that was tried."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from scheduler_advisor.advice.draft import ClassShift, Keys, Phrase, Phrases
from scheduler_advisor.durations import duration_text

if TYPE_CHECKING:
    from scheduler_advisor.search.boundary import Boundary
    from scheduler_advisor.search.candidate import Candidate
    from scheduler_advisor.search.search import Found
    from scheduler_advisor.search.waits import ClassWait

HOURS_A_WEEK = 168
TEAMS_TOLD = 6  # those whose waits move most


def phrases(section: str, names: Sequence[str]) -> Phrases:
    """The sentences of a section about each of the changes."""
    from scheduler_advisor.search.catalogue import said  # loads the compiler

    found = [said(name) for name in names]
    return Phrases(Phrase(f"{section}.{key}", filled) for key, filled in found)


def grade_said(grade: str) -> str | Keys:
    """The grade inside a sentence."""
    return Keys(["fidelity.ungraded"]) if grade == "none" else grade


def bounds_said(bounds: Sequence[Boundary]) -> Phrases:
    """Where it pays, of what was tried, one phrase for each assumption."""
    return Phrases(_bound(bound) for bound in bounds) or Phrases([Phrase("bound.none", {})])


def _bound(bound: Boundary) -> Phrase:
    low, high = bound.above, bound.below
    ends = "all" if low is None and high is None else "to" if low is None else "from"
    if low is not None and high is not None:
        ends = "between"
    numbers = {"low": bound.values[0] if low is None else low,
               "high": bound.values[-1] if high is None else high}  # fmt: skip
    if bound.unit_s is None:
        return Phrase(f"bound.{bound.assumption}_{ends}", numbers)
    told = {name: duration_text(value * bound.unit_s) for name, value in numbers.items()}
    return Phrase(f"bound.takes_{ends}", {**told, "now": duration_text(bound.unit_s)})


def worth_said(found: Found, price: float | None) -> Phrases:
    """How many more GPUs cut the same wait as much, and what they cost a week."""
    worth = found.worth
    if worth.nodes is None or worth.gpus is None:
        most = max((point.nodes for point in found.nodes), default=0)
        return Phrases([Phrase("worth.more" if worth.helps else "worth.shape", {"nodes": most})])
    if worth.nodes < 0.05:
        return Phrases([Phrase("worth.none", {})])
    nodes = max(ceil(worth.nodes - 0.05), 1)  # nobody buys a part of one
    gpus = worth.gpus / worth.nodes * nodes
    numbers: dict[str, Any] = {"nodes": nodes, "gpus": round(gpus)}
    if price is None:
        return Phrases([Phrase("worth.nodes", numbers)])
    cost = {"cost": gpus * HOURS_A_WEEK * price}
    return Phrases([Phrase("worth.priced", numbers | cost)])


def shifts(found: Found, each: Candidate) -> tuple[tuple[str, float, float], ...]:
    """Before and after of what people feel; what nobody has is left out."""
    pairs = (
        ("mean_wait_s", found.today.mean_wait_s, each.found.mean_wait_s),
        ("p95_wait_s", found.today.p95_wait_s, each.found.p95_wait_s),
        ("urgent_p95_s", found.today.urgent_p95_s, each.found.urgent_p95_s),
        ("big_p95_s", found.today.big_p95_s, each.found.big_p95_s),
        ("fairness", found.today.fairness, each.found.fairness),
        ("goodput", found.today.goodput, each.found.goodput),
        ("blast_gpus", found.today.blast_gpus, each.found.blast_gpus),
    )
    return tuple((n, float(a), float(b)) for n, a, b in pairs if a is not None and b is not None)


def classes(each: Candidate) -> tuple[ClassShift, ...]:
    """Waits by class, before and after."""
    return tuple(_shifted(each.today.class_waits, each.found.class_waits))


def teams(each: Candidate) -> tuple[ClassShift, ...]:
    """Waits of the teams whose waits move most, of a change of their limits."""
    from scheduler_advisor.search.catalogue import Part  # loads the compiler

    if Part.QUOTA not in each.parts:
        return ()
    found = _shifted(each.today.team_waits, each.found.team_waits)
    return tuple(sorted(found, key=lambda own: -_moved(own))[:TEAMS_TOLD])


def _shifted(today: Sequence[ClassWait], found: Sequence[ClassWait]) -> list[ClassShift]:
    before = {own.name: own.p95_s for own in today}
    return [ClassShift(own.name, before.get(own.name), own.p95_s, own.goal_s) for own in found]


def _moved(own: ClassShift) -> float:
    return abs((own.after_s or 0.0) - (own.before_s or 0.0))


def bound_json(bound: Boundary) -> dict[str, Any]:
    """Plain values."""
    return {
        "assumption": bound.assumption, "values": list(bound.values),
        "gains": [round(gain, 2) for gain in bound.gains], "pays_above": bound.above,
        "pays_below": bound.below, "unit_s": bound.unit_s,
    }  # fmt: skip


def tried_json(found: Found) -> list[dict[str, Any]]:
    """Every candidate with its objectives and why it is not advised."""
    front = {point.name: point.on_front for point in found.front}
    best = {each.name for each in found.best}
    nodes = {point.candidate.name: list(point.broken) for point in found.nodes}
    return [
        {
            "name": each.name, "gpu_hours": round(each.hours.point, 1),
            "interval_80": [round(each.hours.low, 1), round(each.hours.high, 1)],
            "mean_wait_s": round(each.found.mean_wait_s),
            "p95_wait_s": round(each.found.p95_wait_s), "on_front": front.get(each.name, False),
            "harms": list(each.harms), "advised": each.name in best,
            "goals_broken": nodes.get(each.name, []),
        }
        for each in found.tried
    ]  # fmt: skip
