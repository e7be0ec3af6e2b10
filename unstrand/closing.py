"""What people say when they close a day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from analytics.errors import SettingError
from analytics.sheet import decimal_cell

# Those of analytics.ledger.closing, which loads the compiler; a test holds them equal.
GRACE_DAYS = 3
COVERAGE = "0.95"


def closing_day(text: str) -> date:
    """A day as people write it; SettingError for none."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SettingError(f"{text!r} is no day: write 2026-10-05") from error


def ratio(text: str) -> Decimal:
    """A coverage from 0 to 1; SettingError for any other."""
    found: Decimal = decimal_cell(text, "coverage", SettingError)
    if not 0 <= found <= 1:
        raise SettingError(f"coverage {text}: it must be 0 to 1, such as 0.95")
    return found
