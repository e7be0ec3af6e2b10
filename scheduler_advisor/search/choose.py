"""Which changes are combined, and which are advised: one for each gain, none counted twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from scheduler_advisor.goals import Goals
from scheduler_advisor.search.candidate import Candidate, Gain
from scheduler_advisor.search.catalogue import Change, Part

PAIRED = 5  # the best changes of different parts: ten pairs
BETTER = 1.1  # two changes at once are more work and risk: they must bring a tenth more


def pairs(alone: Sequence[Candidate], goals: Goals) -> list[tuple[Change, ...]]:
    """The best changes of different parts, two at a time."""
    best = _best_by_part(alone, goals)[:PAIRED]
    return [(*a.changes, *b.changes) for a, b in combinations(best, 2)]


def whole(tried: Sequence[Candidate], goals: Goals) -> list[tuple[Change, ...]]:
    """The best pair with the best change of every part that it leaves alone, one after another."""
    found = [each for each in tried if len(each.changes) == 2]
    if not found:
        return []
    top = min(found, key=lambda each: key_of(each, goals))
    alone = _best_by_part([e for e in tried if len(e.changes) == 1], goals)
    changes, sets = list(top.changes), []
    for other in alone:
        if not other.parts & {change.part for change in changes}:
            changes += other.changes
            sets.append(tuple(changes))
    return sets[:2]


def _best_by_part(alone: Iterable[Candidate], goals: Goals) -> list[Candidate]:
    """The best change of each part that brings anything, best first."""
    best: dict[Part, Candidate] = {}
    helping = [each for each in alone if Part.NODES not in each.parts and _helps(each)]
    for each in sorted(helping, key=lambda each: key_of(each, goals)):
        best.setdefault(each.changes[0].part, each)
    return list(best.values())


def _helps(each: Candidate) -> bool:
    waits = (each.urgent_hours, each.big_hours, each.team_hours)
    return each.hours.point > 0 or any(hours.point > 0 for hours in waits)


def chosen(tried: Sequence[Candidate], goals: Goals) -> list[Candidate]:
    """What is advised: the best for each gain, each touching parts that the others leave alone.

    A second change for the same gain would win back the same time twice: if both together brought
    more, the pair would be the best. More nodes cost money and are only ever an alternative; a set
    of changes must bring a tenth more than fewer of them.
    """
    fine = [e for e in tried if e.advised and Part.NODES not in e.parts]
    fine = [e for e in fine if not _outdone(e, fine, goals)]
    picked: list[Candidate] = []
    for each in sorted(fine, key=lambda each: key_of(each, goals)):
        if all(each.gain is not other.gain and not each.parts & other.parts for other in picked):
            picked.append(each)
    return picked


def _outdone(each: Candidate, others: Sequence[Candidate], goals: Goals) -> bool:
    """Whether fewer of the same changes, or a gentler change of teams' limits, bring (nearly) as
    much."""
    own = set(each.changes)
    return any(
        (set(other.changes) < own or _gentler(other, each))
        and _worth_of(other, goals) * BETTER >= _worth_of(each, goals)
        for other in others
    )


def _gentler(one: Candidate, other: Candidate) -> bool:
    """Whether both change limits of teams alone for the same gain, and the first is less of a
    risk or, where that is alike, less work: limits have to be agreed on."""
    if one.parts != other.parts or one.parts != {Part.QUOTA} or one.gain is not other.gain:
        return False
    efforts = ("low", "medium", "high")
    return (one.risk, efforts.index(one.effort)) < (other.risk, efforts.index(other.effort))


def _worth_of(each: Candidate, goals: Goals) -> float:
    """The gain in the measure that the goals put first."""
    if goals.first == "response_time":
        return _waits(each)
    if each.gain in (Gain.CAPACITY, Gain.NONE):
        return each.hours.point
    return each.measured.point


def _waits(each: Candidate) -> float:
    """Hours of waiting saved of work that is told apart; of a starved team where it is for that."""
    team = each.team_hours.point if each.gain is Gain.TEAM else 0.0
    return each.urgent_hours.point + each.big_hours.point + team


def key_of(each: Candidate, goals: Goals) -> tuple[float, ...]:
    """Smaller is better: what the goals put first, then capacity, then waits, then risk."""
    found, waits = each.found, -_waits(each)
    advised = 0.0 if each.advised else 1.0
    hours = -each.hours.point
    money = hours - float(each.wait_cost_daily.sum())
    capacity = 0.0 if each.gain is Gain.CAPACITY else 1.0
    first = {
        "money": (capacity, money if capacity == 0 else waits, waits),
        "response_time": (waits, hours),
        "throughput": (-found.goodput, hours),
        "fairness": (-found.fairness, hours),
    }[goals.first]
    return (advised, *first, float(each.risk), float(len(each.changes)))
