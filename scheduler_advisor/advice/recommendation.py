"""A recommendation: one finding with its weekly saving, its rank, its group and its state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import Any

from scheduler_advisor.advice.draft import Draft
from scheduler_advisor.figure import NumberKind
from scheduler_advisor.followup.verdict import Confidence

_CENT = Decimal("0.01")


class State(StrEnum):
    """What people made of it."""

    NEW = "new"
    ACCEPTED = "accepted"
    SNOOZED = "snoozed"
    DISMISSED = "dismissed"
    APPLIED = "applied"


class Basis(StrEnum):
    """Whether a saving is money that comes back or capacity that becomes free."""

    CASH = "cash"
    CAPACITY = "capacity"
    MIXED = "mixed"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """Somebody moved a recommendation; ``until`` ends a snooze."""

    ts: datetime
    state: State
    actor: str
    reason: str | None
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Per week, modelled. ``low`` and ``high`` are the 80% interval of cost (of GPU-hours where
    nothing is priced); ``cash`` is the part of ``cost`` that can be given back."""

    gpu_hours: float
    gpu_hours_low: float
    gpu_hours_high: float
    cost: Decimal | None
    low: Decimal | None
    high: Decimal | None
    cash: Decimal
    basis: Basis
    method: str
    unpriced_gpu_hours: float = 0.0
    kind: NumberKind = NumberKind.MODELLED
    range_only: bool = False  # the replay's fidelity carries no point, and no sum with others

    def as_json(self, currency: str | None) -> dict[str, Any]:
        """Plain values; money as strings with two decimals."""
        return {
            "per": "week", "gpu_hours": round(self.gpu_hours, 2), "cost": money(self.cost),
            "interval_80": [money(self.low), money(self.high)],
            "gpu_hours_interval_80": [round(self.gpu_hours_low, 2), round(self.gpu_hours_high, 2)],
            "cash": money(self.cash) if self.cost is not None else None,
            "capacity": money(self.cost - self.cash) if self.cost is not None else None,
            "basis": self.basis.value, "currency": currency, "method": self.method,
            "unpriced_gpu_hours": round(self.unpriced_gpu_hours, 2), "kind": self.kind.value,
            "range_only": self.range_only,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceUse:
    """Which prices a figure rests on: a version of the book and the rows' kinds and sources."""

    version: str
    kinds: tuple[str, ...]
    models: Mapping[str, str]  # model -> "6.88 USD per GPU-hour, list, AWS us-east-1, 2026-11-09"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One recommendation. ``current_cost`` and ``current_gpu_hours``: observed over the window."""

    id: str
    draft: Draft
    saving: Saving
    current_cost: Decimal | None
    current_gpu_hours: float
    risk: int
    effort: str
    rules: Sequence[Mapping[str, Any]]
    expires_at: datetime
    rank: int = 0
    exclusive_group: str | None = None
    overlaps: tuple[str, ...] = ()
    state: State = State.NEW
    history: tuple[StateChange, ...] = ()
    confidence: Confidence | None = None

    @property
    def kind(self) -> str:
        """The kind of advice."""
        return self.draft.kind

    @property
    def open(self) -> bool:
        """Whether it still asks for something: neither snoozed, dismissed nor applied."""
        return self.state in (State.NEW, State.ACCEPTED)


def recommendation_id(draft: Draft) -> str:
    """The same finding has the same id every week, so that its state stays with it."""
    key = f"{draft.kind}|{draft.cluster}|{draft.subject}"
    return f"{draft.kind.replace('_', '-')}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def money(amount: Decimal | None) -> str | None:
    """Two decimals, half up; None stays None."""
    return None if amount is None else str(amount.quantize(_CENT, ROUND_HALF_UP))
