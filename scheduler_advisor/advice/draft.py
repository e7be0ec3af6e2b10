"""What a kind of advice finds, before it is priced per week, grouped, ranked and worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.figure import Figure

if TYPE_CHECKING:
    from scheduler_advisor.not_resumable import NotResumable


class Duty(StrEnum):
    """Who has to act."""

    OWNER = "owner"  # the person whose job it is
    TEAM = "team"
    PLATFORM = "platform"


class Horizon(StrEnum):
    """How an amount of the window becomes an amount per week."""

    RECURRING = "recurring"  # the window's amount divided by its weeks
    ONGOING = "ongoing"  # it is so now: the amount of the window's last seven days


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose it is. ``team`` None = no holder, the platform's; users are shown to admins only."""

    team: str | None = None
    user: str | None = None

    def of_team(self) -> Owner:
        """The same without the person."""
        return Owner(team=self.team)

    def label(self) -> str:
        """Short form for tables."""
        return self.user or self.team or "platform"


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that the saving rests on; ``default`` = nobody at this site has confirmed it."""

    name: str
    value: str
    default: bool


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence of the message files with its own numbers, said inside another one."""

    key: str
    params: Mapping[str, Any]


class Phrases(tuple[Phrase, ...]):
    """Several, joined."""

    __slots__ = ()


class Keys(tuple[str, ...]):
    """Keys of the message files that stand in a sentence, said in its language and joined."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ClassShift:
    """p95 waits of one class of work or one team, seconds; None where none of it started.
    ``goal_s``: what the operator still accepts."""

    name: str
    before_s: float | None
    after_s: float | None
    goal_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FromReplay:
    """What a replay adds to a finding. Amounts are per week with the 80% interval for a later
    window of the same length. ``promises`` False (grade D, or ungraded): ranges only, no point.

    ``shifts``: (measure, before, after) of what was gained and lost, seconds or ratios.
    ``bounds``: where it stops paying. ``handover``: snippets by scheduler. ``not_resumable``: of a
    change that stops jobs, whom it would have hit without the evidence that they resume.
    ``teams``: of a change of their limits, those whose waits move most.
    ``wins_lost``: part of it is work that stops no longer take.
    """

    grade: str
    promises: bool
    gain: str
    gpu_hours: tuple[float, float, float]
    cost: tuple[float, float, float] | None
    shifts: tuple[tuple[str, float, float], ...]
    bounds: tuple[Mapping[str, Any], ...]
    tried: tuple[Mapping[str, Any], ...]
    handover: Mapping[str, Any]
    blast_gpus: tuple[float, float]
    worth_nodes: float | None
    measure: str = "capacity"
    measured: tuple[float, float, float] = (0.0, 0.0, 0.0)
    not_resumable: NotResumable | None = None
    classes: tuple[ClassShift, ...] = ()
    teams: tuple[ClassShift, ...] = ()
    wins_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One finding of one kind.

    ``subject`` identifies it from week to week. ``current``: what the fault cost in the window.
    ``parts``: what the change would have won back; ``at_most``: what it could have, whoever had
    asked for it, where that is more. ``params`` fill the kind's sentences.
    """

    kind: str
    cluster: str | None
    subject: str
    owner: Owner
    duty: Duty
    params: Mapping[str, Any]
    parts: Sequence[Part]
    variant: str = ""  # which of the kind's sentences fit
    current: Sequence[Part] | None = None
    at_most: Sequence[Part] | None = None
    figures: Sequence[Figure] = ()
    examples: Sequence[str] = ()
    samples: int | None = None
    coverage_ratio: float | None = None
    assumptions: Sequence[Assumption] = ()
    break_even: Figure | None = None
    horizon: Horizon = Horizon.RECURRING
    alternatives: Sequence[str] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    replay: FromReplay | None = None
    first: bool = False  # said before anything about money, such as data quality


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A kind that cannot be judged here, and which facts it would take."""

    kind: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotRecommended:
    """Something that was looked at and not advised, with the reason (a key of the messages)."""

    kind: str
    subject: str
    reason: str
    params: Mapping[str, Any]
