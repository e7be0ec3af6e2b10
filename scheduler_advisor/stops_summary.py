"""What stopping jobs did in a replay: who got room by it and how fast, who waited again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from scheduler_advisor.engine.outcome import Outcome


def stops(outcome: Outcome, spread: Callable[[NDArray[Any]], Any]) -> dict[str, Any]:
    """``requeue_wait_s``: seconds that finished jobs waited again after they had been stopped (what
    starves shows there). ``made_room``: jobs that got their GPUs because others were stopped, by
    preemption and by reclaim, and from eligible to start: how fast lent GPUs come back; None where
    the driver does not say."""
    stopped = outcome.started & (outcome.starts > 1)
    spent = outcome.jobs.run + outcome.lost_s + outcome.overhead_s
    again = (outcome.end - outcome.first_start - spent)[stopped]
    return {
        "most_preemptions_of_a_job": int(outcome.preemptions.max(initial=0)),
        "requeue_wait_s": spread(again),
        "made_room": _made_room(outcome, spread),
    }


def _made_room(outcome: Outcome, spread: Callable[[NDArray[Any]], Any]) -> dict[str, Any] | None:
    if outcome.room_by is None:
        return None
    took = outcome.first_start - outcome.jobs.eligible
    found = {}
    for name, number in (("by_preemption", 1), ("by_reclaim", 2)):
        by = outcome.started & (outcome.room_by == number)
        found[name] = {"jobs": int(by.sum()), "wait_s": spread(took[by])}
    return found
