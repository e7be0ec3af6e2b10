"""Services: replicas by day and night, each a small latency-sensitive job with a fixed end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica's stay: wanted from `since` until `until`, whenever it starts."""

    number: int
    since: int
    until: int


def day_night(low: int, high: int, peak_hour: int, step_s: int, until: int) -> list[int]:
    """Replicas wanted at each step from second 0 on: a cosine over the day, most at `peak_hour`,
    rounded up so that the load is always carried."""
    wanted = []
    for at in range(0, until, step_s):
        phase = cos(2 * pi * (at - peak_hour * 3600) / DAY_S)
        load = low + (high - low) * (1 + phase) / 2
        wanted.append(-int(-load // 1))
    return wanted


def replicas_of(wanted: Sequence[int], step_s: int) -> list[Replica]:
    """Stays that add up to the wanted number at every step; the newest replica goes first."""
    standing: list[int] = []
    stays: list[Replica] = []
    for at, count in enumerate([*wanted, 0]):
        while len(standing) > count:
            number = len(standing) - 1
            stays.append(Replica(number, standing.pop(), at * step_s))
        while len(standing) < count:
            standing.append(at * step_s)
    return sorted(stays, key=lambda one: (one.since, one.number))


def short_minutes(stays: Sequence[tuple[int, int]], starts: Sequence[int | None]) -> float:
    """Replica-minutes that were wanted and did not run; a stay is (since, until)."""
    short = 0
    for (since, until), start in zip(stays, starts, strict=True):
        short += until - since if start is None else max(0, min(start, until) - since)
    return short / 60
