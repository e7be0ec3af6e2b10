"""One candidate with what it gained and lost against today, and whether it is worth saying."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.search.bench import Bench, Trial
from scheduler_advisor.search.catalogue import Change, Part
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.search.interval import later_window

LEAST_SHARE = 0.01  # of installed GPU time: a change of policy costs people more than that brings
LEAST_WAIT_CUT = 0.3  # a third of the waiting: below, nobody notices
BIG_WAIT_S = 3600
HARM_FACTOR, HARM_S = 1.25, 600  # waits of others may grow by a quarter and ten minutes, no more
TEAM_HARM_S = 3600  # what a team had for itself it must not wait an hour for
STEADY_DAYS, STEADY_TIMES = (
    5,
    5.0,
)  # shorter on this many days, and in all five times what is longer
LOAD_BEARING = 0.01  # of installed GPU time that a wait-only change may cost


class Gain(StrEnum):
    """What a change is advised for."""

    CAPACITY = "capacity"
    URGENT = "urgent"
    BIG = "big"
    TEAM = "team"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Weekly:
    """An amount a week with its 80% bounds for a later window of the same length."""

    point: float
    low: float
    high: float

    @classmethod
    def of(cls, daily: NDArray[np.float64], input_error: float = 0.0) -> Weekly:
        """From the amounts of the window's days."""
        return cls(*later_window(daily, input_error))


NO_AMOUNT = Weekly(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Changes that were tried together. ``daily``: GPU-hours a day won back against today."""

    name: str
    changes: tuple[Change, ...]
    before: Trial
    trial: Trial
    today: Effects
    found: Effects
    daily: NDArray[np.float64]
    hours: Weekly
    urgent_hours: Weekly
    big_hours: Weekly
    wait_cost_daily: NDArray[np.float64]
    gain: Gain
    team_hours: Weekly = NO_AMOUNT

    @property
    def harms(self) -> tuple[str, ...]:
        """Who would wait much longer, or never start."""
        return harmed(self.today, self.found, teams=Part.QUOTA in self.parts)

    @property
    def measured(self) -> Weekly:
        """The gain in its own measure: GPU-hours, or hours of waiting."""
        own = {Gain.URGENT: self.urgent_hours, Gain.BIG: self.big_hours, Gain.TEAM: self.team_hours}
        return own.get(self.gain, self.hours)

    @property
    def parts(self) -> frozenset[Part]:
        """What it touches."""
        return frozenset(change.part for change in self.changes)

    @property
    def risk(self) -> int:
        """The highest of its changes."""
        return max((change.risk for change in self.changes), default=0)

    @property
    def effort(self) -> str:
        """The largest of its changes."""
        order = ("low", "medium", "high")
        return max((change.effort for change in self.changes), key=order.index, default="low")

    @property
    def advised(self) -> bool:
        """Whether it is worth saying at all."""
        return self.gain is not Gain.NONE


def candidate(
    bench: Bench,
    changes: tuple[Change, ...],
    trials: tuple[Trial, Trial],
    today: Effects,
    found: Effects,
) -> Candidate:
    """What the replay ``found`` of ``changes`` brings against that of ``today``."""
    daily, error = today.lost_capacity - found.lost_capacity, bench.input_error
    hours = Weekly.of(daily, error)
    urgent = Weekly.of(today.urgent_waited - found.urgent_waited, error)
    big = Weekly.of(today.big_waited - found.big_waited, error)
    team = Weekly.of(today.starved_waited - found.starved_waited, error)
    owners = any(change.part is Part.QUOTA for change in changes)
    installed = bench.past.cluster.total_gpus * 168.0
    return Candidate(
        " + ".join(change.name for change in changes), changes, *trials, today, found, daily,
        hours, urgent, big, today.wait_cost - found.wait_cost,
        gain_of(today, found, (hours, urgent, big, team), (installed, bench.urgent_goal_s),
                teams=owners),
        team,
    )  # fmt: skip


def gain_of(
    today: Effects,
    found: Effects,
    won: tuple[Weekly, Weekly, Weekly, Weekly],
    scale: tuple[float, float],
    *,
    teams: bool = False,
) -> Gain:
    """What the change can be advised for; NONE where it harms, or brings too little to act on."""
    (hours, urgent, big, team), (installed, urgent_goal_s) = won, scale
    if harmed(today, found, teams=teams):
        return Gain.NONE
    if hours.low > 0 and hours.point >= LEAST_SHARE * installed:
        return Gain.CAPACITY
    if hours.point < -LOAD_BEARING * installed:
        return Gain.NONE
    waits = (
        (Gain.URGENT, today.urgent_tail_s, urgent_goal_s, urgent, "urgent_waited"),
        (Gain.BIG, today.big_p95_s, BIG_WAIT_S, big, "big_waited"),
        (Gain.TEAM, today.starved_p95_s, BIG_WAIT_S, team, "starved_waited"),
    )
    for gain, wait_s, least, saved, name in waits:
        cut = _cut(getattr(today, name), getattr(found, name))
        if _long(wait_s, least) and saved.low > 0 and cut >= LEAST_WAIT_CUT:
            return gain
    return Gain.NONE


def harmed(today: Effects, found: Effects, *, teams: bool = False) -> tuple[str, ...]:
    """Who would wait much longer, or never start. ``teams``: each team counts by itself, since the
    change gives some of them what was others'."""
    pairs = (
        ("mean", today.mean_wait_s, found.mean_wait_s),
        ("everyone", today.p95_wait_s, found.p95_wait_s),
        ("urgent", today.urgent_tail_s, found.urgent_tail_s),
        ("big", today.big_p95_s, found.big_p95_s),
    )
    worse = [
        name
        for name, before, after in pairs
        if before is not None and after is not None and after > before * HARM_FACTOR + HARM_S
    ]
    if found.not_started > today.not_started:
        worse.append("never_started")
    if teams:
        worse += [f"team:{name}" for name in _teams_harmed(today, found)]
    return tuple(worse)


def _teams_harmed(today: Effects, found: Effects) -> list[str]:
    """Teams of which one job in twenty waits much longer than today."""
    before = {each.name: each.p95_s for each in today.team_waits}
    return [
        each.name
        for each in found.team_waits
        if each.p95_s is not None
        and each.p95_s > (before.get(each.name) or 0.0) * HARM_FACTOR + TEAM_HARM_S
    ]


def _long(wait_s: float | None, least: float) -> bool:
    return wait_s is not None and wait_s >= least


def _cut(today: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    total = float(today.sum())
    return 1 - float(found.sum()) / total if total > 0 else 0.0
