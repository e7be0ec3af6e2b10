"""Labels of hours in the calendar that a report prints; grouping itself stays in UTC hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

from analytics.errors import ReportError
from analytics.window import Window

# With the number of ISO 8601 before the name, so that they sort as they come.
_WEEKDAYS = ("1 Mon", "2 Tue", "3 Wed", "4 Thu", "5 Fri", "6 Sat", "7 Sun")

Labels = dict[str, list[object]]


def hour_labels(window: Window, keys: Sequence[str]) -> Labels:
    """Per hour of the window its label for each key: local time with its offset, ISO weeks.

    Raises ReportError where local days do not begin at whole UTC hours.
    """
    zone = ZoneInfo(window.time_zone)
    hour = window.since.replace(minute=0, second=0, microsecond=0)
    labels: Labels = {"starts": [], **{f"label_{key}": [] for key in keys}}
    while hour < window.until:
        local = hour.astimezone(zone)
        if (local.utcoffset() or timedelta()) % timedelta(hours=1) and set(keys) - {"hour"}:
            raise ReportError(
                f"days in {window.time_zone} do not begin at a whole UTC hour; the ledger is kept "
                "by UTC hours: choose UTC or a zone with whole hours"
            )
        year, week, _ = local.isocalendar()
        names = {
            "hour": local.isoformat(timespec="minutes").replace("+00:00", "Z"),
            "day": local.date().isoformat(),
            "week": f"{year}-W{week:02d}",
            "month": f"{local.year}-{local.month:02d}",
            "hour_of_day": f"{local.hour:02d}",
            "weekday": _WEEKDAYS[local.weekday()],
            "day_of_month": f"{local.day:02d}",
        }
        labels["starts"].append(hour)
        for key in keys:
            labels[f"label_{key}"].append(names[key])
        hour += timedelta(hours=1)
    return labels
