"""Intervals that a newer statement about ``[since, until)`` cuts."""

from __future__ import annotations

from datetime import datetime

Span = tuple[datetime, datetime | None]
"""``[since, until)``; until None = open."""


def cut(span: Span, since: datetime, until: datetime | None) -> list[Span]:
    """What is left of ``span`` outside of ``[since, until)``.

    The tail of an open span is not resumed after the statement: that it went on was an assumption
    about the time in which nobody had looked.
    """
    begin, end = span
    if (end is not None and end <= since) or (until is not None and begin >= until):
        return [span]
    left: list[Span] = [(begin, since)] if begin < since else []
    if until is not None and end is not None and end > until:
        left.append((until, end))
    return left


def union(
    span: tuple[datetime, datetime], others: list[tuple[datetime, datetime]]
) -> tuple[datetime, datetime]:
    """``span`` grown by every other one that it overlaps or touches."""
    since, until = span
    for begin, end in sorted(others):
        if begin <= until and end >= since:
            since, until = min(since, begin), max(until, end)
    return since, until
