"""The states that people give to recommendations, kept as a history that nothing is erased from."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from collector.store import Work
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.errors import AdviceStateError


def histories(work: Work) -> dict[str, tuple[StateChange, ...]]:
    """Every recommendation's changes, oldest first."""
    found: dict[str, list[StateChange]] = defaultdict(list)
    for row in work.rows("SELECT * FROM recommendation_state ORDER BY ts"):
        found[row["recommendation_id"]].append(
            StateChange(
                ts=row["ts"],
                state=State(row["state"]),
                actor=row["actor"],
                reason=row["reason"],
                until=row["until"],
            )
        )
    return {name: tuple(changes) for name, changes in found.items()}


def state_at(history: tuple[StateChange, ...], at: datetime) -> State:
    """The state in force: the newest change, except a snooze that is over."""
    if not history:
        return State.NEW
    last = history[-1]
    if last.state is State.SNOOZED and last.until is not None and last.until <= at:
        return State.NEW
    return last.state


def change_state(work: Work, recommendation_id: str, change: StateChange) -> None:
    """Record a change.

    Raises AdviceStateError for an id that no report has named, a dismissal without a reason, a
    snooze without an end in the future.
    """
    known = work.value(
        "SELECT count(*) FROM recommendation WHERE recommendation_id = ?", [recommendation_id]
    )
    if not known:
        raise AdviceStateError(
            f"no recommendation {recommendation_id!r}: `unstrand advise list` names them"
        )
    if change.state is State.DISMISSED and not (change.reason or "").strip():
        raise AdviceStateError(
            "a dismissal needs a reason (--reason): it is what makes next month's advice better"
        )
    if change.state is State.SNOOZED and (change.until is None or change.until <= change.ts):
        raise AdviceStateError("a snooze needs an end in the future (--until 2026-12-01)")
    work.append(
        "recommendation_state",
        {"recommendation_id": [recommendation_id], "ts": [change.ts],
         "state": [change.state.value], "actor": [change.actor], "reason": [change.reason],
         "until": [change.until]},
    )  # fmt: skip
