"""What a statement says, before it is put into a language and a form.

Amounts are in whole coins of the currency and add up: lines to `gpu_time`, that with overhead and
adjustments to `total`; the totals of all teams and of the platform to the fleet's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from analytics.adjustments import Adjustment
from analytics.months import Month
from analytics.window import Window


@dataclass(frozen=True, slots=True)
class Line:
    """GPU-hours under a name, and what the team pays for them."""

    name: str
    gpu_hours: Decimal
    amount: Decimal
    used_gpu_hours: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The team's share of a month's overhead, and the rule that decided it."""

    name: str
    whole: Decimal
    rule: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Entry:
    """An approved adjustment in the statement's currency."""

    adjustment: Adjustment
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Told:
    """Information that is not charged here: modelled GPU-hours and their price."""

    name: str
    gpu_hours: Decimal
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Energy:
    """What the boards drew for the team, and its carbon. ``number`` is `observed` where a counter
    measured all of it, else `modelled`; carbon, None without an intensity, always is."""

    kwh: Decimal
    carbon_g: Decimal | None
    number: str


@dataclass(frozen=True, slots=True)
class Change:
    """A line whose amount an issue changed; None = the line was not there, or is not any more."""

    section: str
    item: str
    before: Decimal | None
    amount: Decimal | None


@dataclass(frozen=True, slots=True)
class Correction:
    """What a later version of a statement changes in the one before."""

    version: int
    statement_id: str
    difference: Decimal
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Payers:
    """A class, who pays for it, and since when; several rows where it changed within the month."""

    name: str
    payer: str
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Everything that decided the amounts, so that they can be worked out again."""

    who_pays: list[Payers]
    prices: list[dict[str, Any]]
    price_book: str | None
    price_kinds: list[str]
    org_version: str
    rules_version: str
    activity_metrics: list[str]
    demand_profiles: list[str]
    rates: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One team's month; ``team`` None = what the platform pays."""

    team: str | None
    month: Month
    window: Window
    cluster: str | None
    currency: str
    made_at: datetime
    demo: bool
    closed_days: int
    days: int
    proved: bool
    """What is posted is what is installed, in time and in money."""
    lines: list[Line]
    overhead: list[Share]
    adjustments: list[Entry]
    pending: list[Adjustment]
    by_model: list[Line]
    by_user: list[Line]
    stranded: list[Told]
    waited: list[Told]
    gpu_time: Decimal
    total: Decimal
    fleet_gpu_time: Decimal
    held_gpu_hours: Decimal
    used_gpu_hours: Decimal
    unpriced_gpu_hours: Decimal
    efficiency_ratio: float | None
    coverage_ratio: float | None
    fleet_coverage_ratio: float | None
    rules: Rules
    remarks: list[str]
    energy: Energy | None = None
    version: int | None = None
    """As it was issued, 1 first; None = a draft. Its id says nothing of versions."""
    corrects: Correction | None = None

    @property
    def final(self) -> bool:
        """Whether the month is over, every day of it closed, priced in full, and proved."""
        over = self.window == self.month.window(self.window.time_zone)
        closed = self.closed_days == self.days
        return over and closed and self.proved and not self.unpriced_gpu_hours

    @property
    def statement_id(self) -> str:
        """A hash of what it says: the same amounts under the same rules have the same id."""
        body = self.to_dict()
        for name in ("made_at", "statement_id", "version", "corrects"):
            body.pop(name, None)
        plain = json.dumps(body, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(plain.encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line and the API: money and GPU-hours as text, exact."""
        body: dict[str, Any] = {
            name: _plain(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in ("adjustments", "pending", "rules")
        }
        body["final"] = self.final
        body["adjustments"] = [
            {**entry.adjustment.to_dict(), "cost": f"{entry.amount:f}"}
            for entry in self.adjustments
        ]
        body["pending"] = [entry.to_dict() for entry in self.pending]
        body["rules"] = _plain(asdict(self.rules))
        return body

    def with_id(self) -> dict[str, Any]:
        """`to_dict` with the id in front."""
        return {"statement_id": self.statement_id, **self.to_dict()}


def _plain(value: Any) -> Any:
    for kind, plain in _FORMS:
        if isinstance(value, kind):
            return plain(value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Month, str),
    (Window, Window.to_dict),
    (Decimal, lambda number: f"{number:f}"),
    (datetime, lambda at: at.isoformat().replace("+00:00", "Z")),
    (date, date.isoformat),
    (dict, lambda cells: {name: _plain(cell) for name, cell in cells.items()}),
    ((list, tuple), lambda cells: [_plain(cell) for cell in cells]),
)
