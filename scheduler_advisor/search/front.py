"""Which candidates are not beaten in everything by another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_advisor.search.effects import Effects

OBJECTIVES = ("lost_gpu_hours", "urgent_p95_s", "big_p95_s", "mean_wait_s", "unfairness",
              "blast_gpus")  # fmt: skip
SAME_WITHIN = 0.005  # differences below half a percent are noise of one past


def objectives(found: Effects) -> tuple[float, ...]:
    """The objectives in the order of `OBJECTIVES`; smaller is better in each."""
    return (
        float(found.lost_capacity.sum()),
        found.urgent_p95_s or 0.0,
        found.big_p95_s or 0.0,
        found.mean_wait_s,
        1 - found.fairness,
        found.blast_gpus,
    )


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One candidate's objectives, and whether nothing beats it."""

    name: str
    values: tuple[float, ...]
    on_front: bool


def pareto(names: Sequence[str], points: Sequence[tuple[float, ...]]) -> list[FrontPoint]:
    """Every candidate with its objectives; on the front = beaten by none in all objectives."""
    return [
        FrontPoint(name, own, not any(_beats(other, own) for other in points if other is not own))
        for name, own in zip(names, points, strict=True)
    ]


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Nowhere worse, and somewhere better by more than noise."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b * (1 + SAME_WITHIN) + 1e-9 for a, b in pairs) and any(
        a < b * (1 - SAME_WITHIN) - 1e-9 for a, b in pairs
    )
