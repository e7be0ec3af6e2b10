"""Half-open UTC windows of time and the calendar that a report prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analytics.errors import WindowError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_US = 3_600_000_000
FIRST_YEAR, LAST_YEAR = 1900, 2200
_BACK = re.compile(r"(\d+)([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def to_us(at: datetime) -> int:
    """Microseconds since 1970 of an aware datetime, exact."""
    return (at - EPOCH) // timedelta(microseconds=1)


def from_us(us: int) -> datetime:
    """The aware UTC datetime ``us`` microseconds after 1970."""
    return EPOCH + timedelta(microseconds=int(us))


def parse_time(text: str) -> datetime:
    """An ISO 8601 date or time; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise WindowError(
            f"{text!r} is no time: write 2026-10-05 or 2026-10-05T13:00:00Z"
        ) from error
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError as error:
        raise WindowError(f"{text!r} lies outside the years 1 to 9999 in UTC") from error


def earlier(at: datetime, length: timedelta) -> datetime:
    """``at`` less ``length``. Raises WindowError where the calendar ends before it."""
    try:
        return at - length
    except OverflowError as error:
        raise WindowError(f"{at.isoformat()} less {length} lies before the year 1") from error


@dataclass(frozen=True, slots=True)
class Window:
    """``[since, until)`` in UTC; ``time_zone`` only decides where days, weeks and months begin."""

    since: datetime
    until: datetime
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            at = getattr(self, name)
            if at.tzinfo is None:
                raise WindowError(f"{name} {at.isoformat()} has no zone: give it one")
            object.__setattr__(self, name, at.astimezone(UTC))
        if self.since.year < FIRST_YEAR or self.until.year > LAST_YEAR:
            raise WindowError(
                f"the window {self.since.isoformat()} to {self.until.isoformat()} leaves the years "
                f"{FIRST_YEAR} to {LAST_YEAR}: check --since and --until"
            )
        if self.since >= self.until:
            raise WindowError(
                f"the window {self.since.isoformat()} to {self.until.isoformat()} is empty: "
                "--since must lie before --until"
            )
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise WindowError(
                f"unknown time zone {self.time_zone!r}: use a name like Europe/Berlin"
            ) from error

    @classmethod
    def parse(cls, since: str, until: str, time_zone: str = "UTC") -> Window:
        """From two times as people write them."""
        return cls(parse_time(since), parse_time(until), time_zone)

    @classmethod
    def back(cls, length: str, until: datetime, time_zone: str = "UTC") -> Window:
        """The last ``length`` (``12h``, ``7d``, ``4w``) before ``until``."""
        match = _BACK.fullmatch(length)
        if match is None or int(match[1]) == 0:
            raise WindowError(f"{length!r} is no length of time: write 12h, 7d or 4w")
        try:
            span = int(match[1]) * _UNITS[match[2]]
        except OverflowError as error:
            raise WindowError(f"{length!r} is too long: write 12h, 7d or 4w") from error
        return cls(earlier(until, span), until, time_zone)

    @property
    def since_us(self) -> int:
        return to_us(self.since)

    @property
    def until_us(self) -> int:
        return to_us(self.until)

    def to_dict(self) -> dict[str, str]:
        return {
            "since": _iso(self.since),
            "until": _iso(self.until),
            "time_zone": self.time_zone,
        }


def _iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
