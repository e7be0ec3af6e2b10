"""A calendar month, as statements, invoices and overhead are dated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from analytics.errors import WindowError
from analytics.window import FIRST_YEAR, LAST_YEAR, Window

_MONTH = re.compile(r"(\d{4})-(\d{2})")


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of some calendar; which instants it holds is decided by a time zone."""

    year: int
    month: int

    @classmethod
    def parse(cls, text: str) -> Month:
        """From ``2026-10``; WindowError for anything else."""
        match = _MONTH.fullmatch(text.strip())
        year, month = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= month <= 12 or not FIRST_YEAR < year < LAST_YEAR:
            raise WindowError(
                f"{text!r} is no month of the years {FIRST_YEAR + 1} to {LAST_YEAR - 1}: "
                "write 2026-10"
            )
        return cls(year, month)

    @classmethod
    def of(cls, day: date) -> Month:
        return cls(day.year, day.month)

    @property
    def first(self) -> date:
        return date(self.year, self.month, 1)

    @property
    def next(self) -> Month:
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}"

    def starts(self, time_zone: str = "UTC") -> datetime:
        """Its first instant in that zone."""
        return datetime(self.year, self.month, 1, tzinfo=ZoneInfo(time_zone))

    def window(self, time_zone: str = "UTC") -> Window:
        """All of it; WindowError for an unknown zone."""
        whole = datetime(self.year, self.month, 1, tzinfo=ZoneInfo("UTC"))
        after = datetime(self.next.year, self.next.month, 1, tzinfo=ZoneInfo("UTC"))
        Window(whole, after, time_zone)  # names an unknown zone before it is used
        return Window(self.starts(time_zone), self.next.starts(time_zone), time_zone)
