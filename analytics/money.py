"""Exact sums of money and how they are shown so that parts add up."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

SHOWN = Decimal("0.000001")
"""Money is shown to a millionth of its unit; parts of a total take the residue by largest
remainder."""


def shown_parts(exact: Sequence[Fraction]) -> list[Decimal]:
    """The amounts as decimals whose sum is the total rounded half up; ties go to the earlier
    row."""
    scaled = [amount / Fraction(SHOWN) for amount in exact]
    floors = [amount.numerator // amount.denominator for amount in scaled]
    residue = half_up(sum(scaled, Fraction(0))) - sum(floors)
    order = sorted(range(len(scaled)), key=lambda i: (floors[i] - scaled[i], i))
    for i in order[:residue]:
        floors[i] += 1
    return [Decimal(units) * SHOWN for units in floors]


def half_up(amount: Fraction) -> int:
    """The nearest integer, halves away from zero for amounts above it."""
    return (2 * amount.numerator + amount.denominator) // (2 * amount.denominator)


def shown(exact: Fraction) -> Decimal:
    """One amount, rounded half up."""
    return shown_parts([exact])[0]


def text(amount: Decimal) -> str:
    """Without trailing zeros, but with two decimals at least."""
    plain = f"{amount:f}"
    whole, _, decimals = plain.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"
