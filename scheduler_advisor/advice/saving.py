"""From the parts of a finding to its saving per week."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from scheduler_advisor.advice.amount import Amount, Part, joint, total
from scheduler_advisor.advice.draft import Draft, Horizon
from scheduler_advisor.advice.interval import weekly_interval
from scheduler_advisor.advice.recommendation import Basis, Saving
from scheduler_advisor.window import Window

METHODS = {
    Horizon.RECURRING: "window / weeks; 80%: block bootstrap over days",
    Horizon.ONGOING: "last 7 days of the window; 80%: block bootstrap over days",
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
    return _saving(
        total(weekly_parts(draft, window)), [draft.parts], window, METHODS[draft.horizon]
    )


def joint_saving(drafts: Sequence[Draft], window: Window) -> Saving:
    """What several win together; amounts that overlap are counted once, at the largest."""
    amount = joint(weekly_parts(draft, window) for draft in drafts)
    method = "joint: each claim once, at its largest; 80%: block bootstrap over days"
    return _saving(amount, [draft.parts for draft in drafts], window, method)


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
