"""A duration as people read it."""

from __future__ import annotations


def duration_text(seconds: float | None) -> str:
    """Seconds as s, min, h or d; an en dash for nothing."""
    if seconds is None:
        return "–"
    for size, unit in ((172800, "d"), (5400, "h"), (90, "min")):
        if seconds >= size:
            return f"{seconds / {'d': 86400, 'h': 3600, 'min': 60}[unit]:,.1f} {unit}"
    return f"{seconds:,.0f} s"
