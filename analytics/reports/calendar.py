"""Labels of hours in the calendar that a report prints; grouping itself stays in UTC hours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from analytics.errors import ReportError
from analytics.window import Window

# With the number of ISO 8601 before the name, so that they sort as they come.
_WEEKDAYS = ("1 Mon", "2 Tue", "3 Wed", "4 Thu", "5 Fri", "6 Sat", "7 Sun")
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


def _week(local: datetime) -> str:
    year, week, _ = local.isocalendar()
    return f"{year}-W{week:02d}"


_LABELS: dict[str, Callable[[datetime], str]] = {
    "hour": lambda local: local.isoformat(timespec="minutes").replace("+00:00", "Z"),
    "day": lambda local: local.date().isoformat(),
    "week": _week,
    "month": lambda local: f"{local.year}-{local.month:02d}",
    "hour_of_day": lambda local: f"{local.hour:02d}",
    "weekday": lambda local: _WEEKDAYS[local.weekday()],
    "day_of_month": lambda local: f"{local.day:02d}",
}

Moments = list[tuple[datetime, tuple[str, ...]]]


def moments(window: Window, keys: Sequence[str], *, days: bool = False) -> Moments:
    """Per hour of the window, or per UTC day, its label for each key: local time with its offset,
    ISO weeks.

    Raises ReportError where local days do not begin at whole UTC hours.
    """
    zone = ZoneInfo(window.time_zone)
    at = window.since.replace(minute=0, second=0, microsecond=0)
    labels = [_LABELS[key] for key in keys]
    by_days = bool(set(keys) - {"hour"})
    found: Moments = []
    while at < window.until:
        local = at.astimezone(zone)
        if by_days and (local.utcoffset() or timedelta()) % _HOUR:
            raise ReportError(
                f"days in {window.time_zone} do not begin at a whole UTC hour; the ledger is kept "
                "by UTC hours: choose UTC or a zone with whole hours"
            )
        found.append((at, tuple(label(local) for label in labels)))
        at += _DAY if days else _HOUR
    return found
