"""The wall clock, for the shell only; everything below takes the time as an argument."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """This instant, aware, UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one place that asks the machine
