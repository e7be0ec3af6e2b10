"""The window and filters that a request asks for, with limits that say themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from analytics.errors import AnalyticsError
from analytics.health.span import facts_span
from analytics.window import Window, parse_time
from collector.store import Store
from unstrand.errors import RequestRefusedError

LONGEST = timedelta(days=400)
DEFAULT = timedelta(days=28)
MOST_ROWS = 100_000
T = TypeVar("T")


def asked_window(
    store: Store, since: str | None, until: str | None, time_zone: str, cluster: str | None
) -> Window:
    """The window asked for; without one, the last 28 days of known facts.

    Raises RequestRefusedError for what is no window, or one longer than LONGEST.
    """
    known = facts_span(store, cluster)
    if cluster is not None and (known is None or cluster not in known.clusters):
        names = ", ".join(known.clusters) if known else ", ".join(_clusters(store)) or "none"
        raise RequestRefusedError(
            f"there is no cluster {cluster!r}",
            where="query parameter cluster",
            remedy=f"known are: {names}",
            status=404,
        )
    if known is None and (since is None or until is None):
        raise RequestRefusedError(
            "the store holds no facts, so there is no window to show",
            where="query parameters since and until",
            remedy="bring facts in (unstrand import ..., unstrand demo), or name a window",
        )
    end = known.until if known else None
    last = _read("until", lambda: parse_time(until)) if until else end
    assert last is not None
    first = _read("since", lambda: parse_time(since)) if since else last - DEFAULT
    window = _read("since, until and tz", lambda: Window(first, last, time_zone))
    if window.until - window.since > LONGEST:
        raise RequestRefusedError(
            f"{(window.until - window.since).days} days are more than {LONGEST.days}",
            where="query parameters since and until",
            remedy="ask for a shorter window, one after the other",
        )
    return window


def asked_keys(by: str, default: str) -> tuple[str, ...]:
    """Group keys, comma separated; `by` empty = the report's default."""
    return tuple(key.strip() for key in (by or default).split(",") if key.strip())


def within_rows(rows: list[T], by: str) -> list[T]:
    """``rows``, refused when they are more than MOST_ROWS."""
    if len(rows) > MOST_ROWS:
        raise RequestRefusedError(
            f"{len(rows):,} rows are more than {MOST_ROWS:,}",
            where="query parameter by",
            remedy=f"ask for fewer keys than {by}, or a shorter window",
        )
    return rows


def _read(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except AnalyticsError as error:
        what, _, remedy = str(error).partition(": ")
        raise RequestRefusedError(
            what,
            where=f"query parameters {name}" if " " in name else f"query parameter {name}",
            remedy=remedy or "see /api/v1/docs",
        ) from error


def _clusters(store: Store) -> list[str]:
    rows = store.rows("SELECT DISTINCT cluster FROM node ORDER BY cluster")
    return [str(row["cluster"]) for row in rows]
