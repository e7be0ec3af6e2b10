"""Exact sums of money and how they are shown so that parts add up."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import lcm

SHOWN = Decimal("0.000001")
"""Money is shown to a millionth of its unit; parts of a total take the residue by largest
remainder."""


def shown_parts(exact: Sequence[Fraction], unit: Decimal = SHOWN) -> list[Decimal]:
    """The amounts in whole ``unit`` whose sum is the total rounded half up; ties go to the earlier
    row."""
    parts, every = _in_units(exact, unit)
    whole = (2 * sum(parts) + every) // (2 * every)
    return [units * unit for units in _largest_remainder(parts, every, whole)]


def parts_of(total: Decimal, exact: Sequence[Fraction], unit: Decimal) -> list[Decimal]:
    """As `shown_parts`, for amounts that must add up to a ``total`` that is rounded already."""
    parts, every = _in_units(exact, unit)
    return [units * unit for units in _largest_remainder(parts, every, int(total / unit))]


def _in_units(exact: Sequence[Fraction], unit: Decimal) -> tuple[list[int], int]:
    """The amounts as numerators over one denominator, in ``unit``: integers add up and compare
    many times faster than fractions."""
    every = lcm(*(amount.denominator for amount in exact))
    up, down = unit.as_integer_ratio()
    return [a.numerator * (every // a.denominator) * down for a in exact], every * up


def _largest_remainder(parts: Sequence[int], every: int, whole: int) -> list[int]:
    """Integers that add up to ``whole``, each as near to its part (over ``every``) as that
    allows."""
    floors = [part // every for part in parts]
    rests = [part % every for part in parts]
    order = sorted(range(len(parts)), key=lambda i: (-rests[i], i))
    rounds, rest = divmod(whole - sum(floors), len(parts)) if parts else (0, 0)
    extra = set(order[:rest])
    return [floor + rounds + (i in extra) for i, floor in enumerate(floors)]


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """``amount`` in proportion to ``weights``, exact to the last unit; no weight at all: nothing.

    Weights below 0 count as 0. Ties go to the earlier one.
    """
    kept = [max(weight, 0) for weight in weights]
    whole = sum(kept)
    if not whole:
        return []
    return _largest_remainder([amount * weight for weight in kept], whole, amount)


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
