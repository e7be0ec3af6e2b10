"""The stretch of time that advice looks at: the ledger's window with what a report needs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analytics import window as ledger
from scheduler_advisor.errors import AdvisorError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_HOUR = timedelta(hours=1)


class Window(ledger.Window):
    """Half-open ``[since, until)`` in UTC on full hours, and the zone in which it is shown."""

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return (self.until - self.since).total_seconds()

    @property
    def weeks(self) -> float:
        """Length in weeks of 168 hours; divides amounts of the window down to a week."""
        return self.duration_s / (7 * 86400)

    @property
    def zone(self) -> ZoneInfo:
        """The zone for hours of the day and dates shown to people."""
        return ZoneInfo(self.time_zone)

    def local(self, instant: datetime) -> datetime:
        """``instant`` as people at the site read it."""
        return instant.astimezone(self.zone)


def zone_named(name: str) -> ZoneInfo:
    """The IANA zone ``name``; AdvisorError when this machine does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise AdvisorError(
            f"unknown time zone {name!r}: give an IANA name such as UTC, Europe/Berlin, Asia/Seoul"
        ) from error


def parse_duration(text: str) -> timedelta:
    """``90m``, ``2h``, ``3d`` or ``4w`` as a positive duration."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([mhdw])\s*", text)
    if match is None or float(match.group(1)) <= 0:
        raise AdvisorError(f"{text!r} is no duration: write a number and m, h, d or w, such as 4w")
    return timedelta(**{_UNITS[match.group(2)]: float(match.group(1))})


def window_back(length: str, until: datetime, time_zone: str = "UTC") -> Window:
    """The window of ``length`` (such as ``4w``) up to the last full hour before ``until``."""
    full = until.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return Window(full - max(parse_duration(length), _HOUR), full, time_zone)
