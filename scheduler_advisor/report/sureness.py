"""How sure a recommendation is, what gets worse, and with what it must not be added."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler_advisor.advice.recommendation import Recommendation
from scheduler_advisor.advice.replay_told import grade_said
from scheduler_advisor.durations import duration_text
from scheduler_advisor.messages import Words
from scheduler_advisor.report.wording import said

MORE_IS_BETTER = ("fairness", "goodput")
SAME = 0.01  # a hundredth is no difference


def sure_text(rec: Recommendation, words: Words) -> str:
    """What it rests on, and how such changes have done here."""
    own = rec.draft.replay
    if own is not None:
        basis = words.say("sure.replay", grade=said(grade_said(own.grade), words))
    elif rec.draft.samples:
        basis = words.say("sure.rows", samples=rec.draft.samples)
    else:
        basis = words.say("sure.counted")
    trust = rec.confidence
    if trust is None or not trust.judged:
        return f"{basis}; {words.say('sure.never')}"
    return f"{basis}; {words.say('sure.judged', held=trust.held, judged=trust.judged)}"


def worse_text(rec: Recommendation, words: Words) -> str | None:
    """Measures of the replay that get worse, before and after; None where nothing was replayed."""
    if rec.draft.replay is None:
        return None
    found = [
        f"{words.say(f'replay.{name}')} {form(name)(before)} → {form(name)(after)}"
        for name, before, after in rec.draft.replay.shifts
        if gets_worse(name, before, after)
    ]
    found += [
        f"{words.say('replay.team_p95', name=own.name or '–')} "
        f"{duration_text(own.before_s)} → {duration_text(own.after_s)}"
        for own in rec.draft.replay.teams
        if gets_worse("p95_wait_s", own.before_s or 0.0, own.after_s or 0.0)
    ]
    said = "; ".join(found) or words.say("sure.nothing_worse")
    return f"{words.say('sure.worse')}: {said}"


def gets_worse(name: str, before: float, after: float) -> bool:
    """Whether the change is one for the worse and larger than a hundredth."""
    if abs(after - before) <= SAME * max(abs(before), abs(after)):
        return False
    return (after < before) == (name in MORE_IS_BETTER)


def form(name: str) -> Callable[[float], str]:
    """How a measure of a replay is written."""
    if name.endswith("_s"):
        return duration_text
    return lambda value: format(value, ".1f" if name == "blast_gpus" else ".1%")


def overlap_text(rec: Recommendation, ranks: Mapping[str, int], words: Words) -> str | None:
    """The places of the cards that win back partly the same time."""
    places = sorted(ranks[name] for name in rec.overlaps if name in ranks)
    if not places:
        return None
    return words.say("sure.overlaps", ranks=", ".join(map(str, places)))


def waits_less(rec: Recommendation, words: Words) -> str | None:
    """The gain of a change that is advised for what somebody waits, in hours of waiting a week."""
    own = rec.draft.replay
    if own is None or own.measure not in ("urgent", "big", "team"):
        return None
    low, high = (f"{hours:,.0f}" for hours in own.measured[1:])
    return words.say(f"sure.waits_less_{own.measure}", low=low, high=high)
