"""Other ways to write checkpoints, as candidates: they come from what the jobs of a past show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_advisor.checkpoints import Writing
from scheduler_advisor.engine.policy import Policy, Preemption
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.candidate import Candidate
from scheduler_advisor.search.catalogue import LOST, Change, Part
from scheduler_advisor.search.choose import key_of

ALIKE = 1.1  # an optimum that is nearer to today's interval is today's
STOPPING = (Part.PREEMPTION, Part.DEFRAGMENTATION)
MOST = 2  # changes of each of these parts that are tried with every way to write


def checkpoint_changes(past: Past) -> list[Change]:
    """Other intervals for this past; none where no job's checkpoints are known."""
    known = past.checkpoints
    if known is None or not known.known.any():
        return []
    own = known.known
    ratio = known.apart(Writing.OPTIMUM)[own] / known.every[own]
    found = [
        Change("checkpoint_half", Part.CHECKPOINT, writing=Writing.HALF, prompted_by=(LOST,)),
        Change("checkpoint_double", Part.CHECKPOINT, writing=Writing.DOUBLE, prompted_by=(LOST,)),
    ]
    if np.maximum(ratio, 1 / ratio).max() > ALIKE:
        found.insert(0, Change("checkpoint_optimum", Part.CHECKPOINT, writing=Writing.OPTIMUM))
    return found


def on_stop(past: Past, *, preempts: bool) -> list[Change]:
    """One more checkpoint before a stop: where the replay ``preempts``, or somebody outside of it
    stopped jobs who could have told them."""
    known = past.checkpoints
    if known is None or not known.known.any() or not (preempts or known.told_any):
        return []
    keys: dict[str, object] = {}
    if preempts:
        keys = {"preemption": "priority", "preemption.mode": "checkpoint",
                "preemption.grace_s": known.grace_s()}  # fmt: skip
    return [Change("checkpoint_on_stop", Part.CHECKPOINT, keys, writing=Writing.ON_STOP, risk=2,
                   effort="medium")]  # fmt: skip


def alone(past: Past, policy: Policy) -> list[Change]:
    """Those that could do something without another change."""
    preempts = policy.preemption is not Preemption.NONE
    return [*checkpoint_changes(past), *on_stop(past, preempts=preempts)]


def with_stops(past: Past, tried: Sequence[Candidate], goals: Goals) -> list[tuple[Change, ...]]:
    """What stops or moves running work, with every way to write: how dear a stop is depends on the
    last checkpoint, so neither is judged without the other, also where it does not pay alone."""
    writing = checkpoint_changes(past)
    found: list[tuple[Change, ...]] = []
    for part in STOPPING:
        ways = [*writing, *(on_stop(past, preempts=True) if part is Part.PREEMPTION else ())]
        own = [each for each in tried if each.parts == {part} and len(each.changes) == 1]
        for each in sorted(own, key=lambda each: key_of(each, goals))[:MOST]:
            found += [(*each.changes, change) for change in ways]
    return found
