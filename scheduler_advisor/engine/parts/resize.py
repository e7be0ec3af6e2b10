"""Elastic jobs: how fast they run at another size, who gives way, who grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log2

PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """Tasks of a running elastic job now, and between what bounds."""

    tasks: int
    least: int
    most: int


def speed_at(tasks: int, reference: int, efficiency_milli: int) -> Fraction:
    """Speed against `reference` tasks: proportional, times the efficiency for each doubling. In
    whole millionths, so that every machine rounds alike; 1 at the reference."""
    ratio = tasks / reference
    factor = ratio * (efficiency_milli / 1000) ** log2(ratio) if tasks != reference else 1.0
    return Fraction(max(1, int(factor * PPM + 0.5)), PPM)


def next_to_shrink(spans: Mapping[int, Span]) -> int | None:
    """Who gives one task back: the largest surplus over the minimum; ties: the lowest job."""
    able = [job for job, span in spans.items() if span.tasks > span.least]
    return min(able, key=lambda job: (spans[job].least - spans[job].tasks, job), default=None)


def next_to_grow(spans: Mapping[int, Span]) -> list[int]:
    """Who gets one task more: the smallest part of the maximum first; ties: the lowest job."""
    able = [job for job, span in spans.items() if span.tasks < span.most]
    return sorted(able, key=lambda job: (Fraction(spans[job].tasks, spans[job].most), job))


def pays(left: Fraction, old: Fraction, new: Fraction, pause_s: int) -> bool:
    """Whether a job with `left` seconds of work ends sooner after a pause at the new speed."""
    return pause_s + left / new < left / old
