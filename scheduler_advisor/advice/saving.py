"""From the parts of a finding to its saving per week."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from scheduler_advisor.advice.amount import Amount, Part, joint, total
from scheduler_advisor.advice.draft import Draft, Horizon
from scheduler_advisor.advice.interval import weekly_interval
from scheduler_advisor.advice.recommendation import Basis, Saving
from scheduler_advisor.advice.same_act import ABOUT_PLACES, counted_once, moves_work
from scheduler_advisor.window import Window

METHODS = {
    Horizon.RECURRING: "window / weeks; 80%: block bootstrap over days, later window",
    Horizon.ONGOING: "last 7 days of the window; 80%: block bootstrap over days, later window",
}


def weekly_parts(draft: Draft, window: Window) -> list[Part]:
    """The parts scaled to a week: all of the window by its weeks, or its last seven days."""
    if draft.horizon is Horizon.RECURRING:
        factor = 1 / max(window.weeks, 1 / 168)
        return [_times(part, factor) for part in draft.parts]
    week = min(window.duration_s, 7 * 86400.0)
    first = (window.until - timedelta(seconds=week)).date()
    recent = [part for part in draft.parts if part.day >= first]
    return [_times(part, 7 * 86400.0 / week) for part in recent]


def saving_of(draft: Draft, window: Window) -> Saving:
    """The weekly saving with its interval and its basis."""
    if draft.replay is not None:
        return _replayed(draft, window)
    return _saving(
        total(weekly_parts(draft, window)), [draft.parts], window, METHODS[draft.horizon]
    )


def _replayed(draft: Draft, window: Window) -> Saving:
    """The replay's own interval; without a promise the point is left out."""
    own = draft.replay
    assert own is not None
    amount = total(weekly_parts(draft, window))
    hours, cost = own.gpu_hours, own.cost
    low, high = (None, None) if cost is None else (_decimal(cost[1]), _decimal(cost[2]))
    method = (
        f"replay of the window under both policies, fidelity {own.grade}; 80%: block bootstrap "
        "over days for a later window of the same length, widened by the replay's own error"
    )
    return Saving(
        gpu_hours=hours[0] if own.promises else 0.0, gpu_hours_low=hours[1],
        gpu_hours_high=hours[2],
        cost=_decimal(cost[0]) if cost is not None and own.promises else None, low=low, high=high,
        cash=amount.cash if own.promises else Decimal(0),
        basis=_basis(amount), method=method, range_only=not own.promises,
    )  # fmt: skip


def _decimal(amount: float) -> Decimal:
    return Decimal(repr(round(amount, 6)))


def joint_saving(drafts: Sequence[Draft], window: Window) -> Saving:
    """What several win together; amounts that overlap are counted once, at the largest."""
    drafts = [draft for draft in drafts if draft.replay is None or draft.replay.promises]
    drafts = with_joint_claims(counted_once(drafts))
    amount = joint(weekly_parts(draft, window) for draft in drafts)
    method = (
        "joint: each claim once, at its largest; 80%: block bootstrap over days, for a later window"
    )
    return _saving(amount, [draft.parts for draft in drafts], window, method)


def with_joint_claims(drafts: Sequence[Draft]) -> list[Draft]:
    """Free time that a replayed change wins back is one claim with what rules say about it.

    A rule's advice about free GPUs (fragmentation, gangs) and a replayed change of policy win back
    the same hours: where both stand, they are counted once, at the larger. So do a rule's advice
    about checkpoints and a replayed change of theirs, and runs that lay apart and a replayed change
    of placement.
    """
    replayed = {draft.cluster for draft in drafts if draft.replay is not None}
    lost = {
        draft.cluster for draft in drafts if draft.replay is not None and draft.replay.wins_lost
    }
    placed = {draft.cluster for draft in drafts if moves_work(draft)}
    return [
        draft
        if draft.cluster not in replayed or draft.replay is not None
        else replace(draft, parts=[_claimed(part, draft, lost, placed) for part in draft.parts])
        for draft in drafts
    ]


ABOUT_STOPS = ("lost_work", "checkpoint_interval")


def _claimed(
    part: Part, draft: Draft, lost: Collection[str | None], placed: Collection[str | None]
) -> Part:
    stops = draft.kind in ABOUT_STOPS and draft.cluster in lost
    apart = draft.kind in ABOUT_PLACES and draft.cluster in placed
    if stops or apart or part.claim.startswith(f"free:{draft.cluster}/"):
        return replace(part, claim=f"policy:{draft.cluster}")
    return part


def _saving(
    amount: Amount, several: Sequence[Sequence[Part]], window: Window, method: str
) -> Saving:
    days = _days(window)
    sorted_parts = [_by_day(parts) for parts in several]
    daily = {day: joint(own.get(day, []) for own in sorted_parts) for day in days}
    hours = weekly_interval([daily[day].gpu_hours for day in days])
    costs = weekly_interval([float(daily[day].cost or 0) for day in days])
    cost = amount.cost
    return Saving(
        gpu_hours=amount.gpu_hours, gpu_hours_low=min(hours[0], amount.gpu_hours),
        gpu_hours_high=max(hours[1], amount.gpu_hours), cost=cost,
        low=None if cost is None else min(Decimal(repr(costs[0])), cost),
        high=None if cost is None else max(Decimal(repr(costs[1])), cost),
        cash=amount.cash, basis=_basis(amount), method=method,
        unpriced_gpu_hours=amount.unpriced_gpu_hours,
    )  # fmt: skip


def _by_day(parts: Sequence[Part]) -> dict[date, list[Part]]:
    days: dict[date, list[Part]] = defaultdict(list)
    for part in parts:
        days[part.day].append(part)
    return days


def _days(window: Window) -> list[date]:
    last = (window.until - timedelta(microseconds=1)).date()
    count = (last - window.since.date()).days + 1
    return [window.since.date() + timedelta(days=n) for n in range(count)]


def _times(part: Part, factor: float) -> Part:
    by = Decimal(repr(factor))
    return Part(
        claim=part.claim, day=part.day, micro_gpu_s=round(part.micro_gpu_s * factor),
        cost=None if part.cost is None else part.cost * by, cash=part.cash, cluster=part.cluster,
        run_id=part.run_id, node=part.node, gpu_model=part.gpu_model,
    )  # fmt: skip


def _basis(amount: Amount) -> Basis:
    if amount.gpu_hours == 0:
        return Basis.NONE
    if not amount.cash:
        return Basis.CAPACITY
    return Basis.CASH if amount.cash == amount.cost else Basis.MIXED
