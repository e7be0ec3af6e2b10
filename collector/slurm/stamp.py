"""Instants as Slurm writes them: epoch seconds, or ISO 8601 with or without an offset.

Zone rule: a time without an offset is read in the zone that the caller names (UTC if none is
named). An hour that a clock change repeats is read as its first pass.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from collector.slurm.refusal import MalformedError, shown

UNSET = ("Unknown", "None", "", "N/A", "NONE", "(null)", "0", "Never")
"""Not yet (Unknown), never (None), or not kept: all are "no instant" here."""

EARLIEST = 946_684_800
"""2000-01-01: Slurm is younger, so anything before is a damaged value."""
LATEST = 7_258_118_400
"""2200-01-01: anything later is milliseconds or a damaged value."""


def epoch(text: str, zone: tzinfo = UTC) -> int | None:
    """Seconds since 1970 in UTC, or None where Slurm has no instant. Raises MalformedError."""
    if text in UNSET:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 30:
        return checked(int(text), text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedError(
            f"time {shown(text)} is neither epoch seconds nor YYYY-MM-DDTHH:MM:SS"
        ) from None
    if len(text) < len("2026-11-20T10:11"):
        raise MalformedError(f"time {shown(text)} has no time of day")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return checked(int(moment.timestamp()), text)


def checked(value: int, text: str) -> int:
    """``value`` if it lies between `EARLIEST` and `LATEST`; else MalformedError."""
    if not EARLIEST <= value < LATEST:
        raise MalformedError(f"time {shown(text)} is not between the years 2000 and 2200")
    return value
