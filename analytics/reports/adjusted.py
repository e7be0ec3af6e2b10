"""Adjustments of a window's months, each its own line in the report's currency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from analytics.adjustments import Adjustment
from analytics.errors import PriceError
from analytics.money import shown
from analytics.reports.rates import Rates
from analytics.window import Window


@dataclass(frozen=True, slots=True)
class AdjustmentLine:
    """An approved adjustment; ``cost`` in the report's currency, None where no rate leads there."""

    adjustment: Adjustment
    cost: Decimal | None


@dataclass(slots=True)
class Adjusted:
    """Lines that count, and remarks on those that do not."""

    lines: list[AdjustmentLine] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def adjusted(
    own: Sequence[Adjustment],
    window: Window,
    cluster: str | None,
    currency: str | None,
    rates: Rates,
) -> Adjusted:
    """The approved ones as lines; the others are told."""
    found = Adjusted()
    waiting = 0
    for entry in own:
        if cluster is not None and entry.cluster != cluster:
            if entry.cluster is None and entry.state == "approved":
                found.remarks.append(
                    f"{entry.adjustment_id} is of the bill as a whole and not of one cluster: it "
                    "shows without --cluster"
                )
            continue
        if entry.state == "approved":
            found.lines.append(_line(entry, window, currency, rates, found.remarks))
        waiting += entry.state == "pending"
    if waiting:
        found.remarks.append(f"adjustments that wait for approval and do not count yet: {waiting}")
    return found


def _line(
    entry: Adjustment, window: Window, currency: str | None, rates: Rates, remarks: list[str]
) -> AdjustmentLine:
    if currency is None:
        return AdjustmentLine(entry, None)
    try:
        rate = rates.rate(entry.currency, currency, entry.month.starts(window.time_zone))
    except PriceError as error:
        remarks.append(f"{entry.adjustment_id} is not in the adjusted total: {error}")
        return AdjustmentLine(entry, None)
    return AdjustmentLine(entry, shown(rate * Fraction(entry.amount)))
