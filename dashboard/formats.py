"""Figures as people read them: thousands separated, ISO currency codes, a dash for unknown."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

ABSENT = "–"


def money(amount: Decimal | None, currency: str) -> str:
    """``12,345.67 USD``; to the cent, because two pages that disagree by a cent are both wrong."""
    if amount is None:
        return ABSENT
    return f"{cents(amount):,} {currency}"


def whole_money(amount: Decimal | None, currency: str) -> str:
    """``12,346 USD`` from a thousand up, to the cent below."""
    if amount is None or abs(amount) < 1000:
        return money(amount, currency)
    return f"{amount.quantize(Decimal(1), ROUND_HALF_UP):,} {currency}"


def cents(amount: Decimal) -> Decimal:
    """Rounded half up to two places; never a negative zero."""
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP) + 0


def hours(gpu_hours: float | None) -> str:
    """``12,345 GPU-h``; one decimal below a hundred."""
    return ABSENT if gpu_hours is None else f"{number(gpu_hours)} GPU-h"


def number(value: float | None) -> str:
    """Thousands separated; one decimal below a hundred."""
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


def percent(ratio: float | None) -> str:
    """``41.3%``; what is not all never reads 100.0%, what is not nothing never reads 0.0%."""
    if ratio is None:
        return ABSENT
    if 0.9995 <= ratio < 1:
        return "99.9%"
    if 0 < ratio < 0.0005:
        return "<0.1%"
    return f"{ratio * 100:.1f}%"


def change(now: Decimal | float | None, before: Decimal | float | None) -> str:
    """``+12%`` against ``before``; a dash where there is nothing to compare with."""
    if now is not None and before is not None and now == before:
        return "±0%"
    if now is None or not before:
        return ABSENT
    ratio = float(now) / float(before) - 1
    return f"{ratio * 100:+,.0f}%" if abs(ratio) >= 0.005 else "±0%"


def points(now: float | None, before: float | None) -> str:
    """``+1.2 pp``: a difference of ratios in percentage points."""
    if now is None or before is None:
        return ABSENT
    return f"{(now - before) * 100:+.1f} pp"


def moment(at: datetime, zone: str) -> str:
    """``2026-10-05 14:30`` in ``zone``."""
    return at.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


def length(span: timedelta, units: tuple[str, str, str] = (" d", " h", " min")) -> str:
    """``3 d 4 h``, ``4 h 10 min``, ``10 min``; ``units`` of days, hours and minutes."""
    minutes = int(span.total_seconds()) // 60
    days, hours_, minutes = minutes // 1440, minutes % 1440 // 60, minutes % 60
    parts = zip((days, hours_, minutes), units, strict=True)
    shown = [f"{count}{unit}" for count, unit in parts if count][:2]
    return " ".join(shown) or f"0{units[2]}"


def waited(seconds: float | None, units: tuple[str, str, str]) -> str:
    """A wait: ``<1 min`` below a minute, then as `length`."""
    if seconds is None:
        return ABSENT
    if seconds < 60:
        return f"<1{units[2]}"
    return length(timedelta(seconds=seconds), units)
