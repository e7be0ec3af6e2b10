"""What rows of a report can be grouped by."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.errors import ReportError

HOLDER_KEYS = ("team", "project", "cost_center", "user", "account", "queue", "job")
"""Null where nobody holds, and for what the platform pays."""
PLACE_KEYS = ("cluster", "node", "gpu_model")
TIME_KEYS = ("hour", "day", "week", "month", "hour_of_day", "weekday", "day_of_month")
CLASS_KEY = "class"
ALL_KEYS = (*HOLDER_KEYS, *PLACE_KEYS, *TIME_KEYS, CLASS_KEY)
_OTHER_NAMES = {"partition": "queue", "model": "gpu_model", "cost_centre": "cost_center"}


def checked(by: Sequence[str]) -> tuple[str, ...]:
    """Known keys, each once; ReportError names the ones that exist."""
    names = tuple(_OTHER_NAMES.get(name.strip(), name.strip()) for name in by)
    for name in names:
        if name not in ALL_KEYS:
            raise ReportError(f"cannot group by {name!r}: use {', '.join(ALL_KEYS)}")
    if len(set(names)) != len(names):
        raise ReportError(f"group keys {', '.join(names)}: name each once")
    return names
