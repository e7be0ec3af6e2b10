"""What a request may ask for, with limits that say themselves. Unknown parameters are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from analytics.errors import AnalyticsError
from analytics.health.span import facts_span
from analytics.window import Window, earlier, parse_time
from collector.store import Store
from unstrand.errors import RequestRefusedError

LONGEST = timedelta(days=400)
DEFAULT = timedelta(days=28)
MOST_ROWS = 100_000
T = TypeVar("T")


class ClusterQuery(BaseModel):
    """Facts of one cluster or of all."""

    model_config = ConfigDict(extra="forbid")

    cluster: str | None = Field(None, description="One cluster; all of them without it.")


class InstantQuery(ClusterQuery):
    """One instant."""

    at: str | None = Field(None, description="An instant; without it, the last one known.")


class WindowQuery(ClusterQuery):
    """A window of time; without one, the last 28 days of known facts."""

    since: str | None = Field(
        None, description="First instant, 2026-10-05 or 2026-10-05T13:00:00Z; UTC without a zone."
    )
    until: str | None = Field(None, description="First instant after the window.")
    tz: str = Field("UTC", description="Time zone in which days, weeks and months begin.")


class ReportQuery(WindowQuery):
    """A report over a window."""

    by: str = Field("", description="Group keys, comma separated: team,gpu_model,day,class,...")
    currency: str | None = Field(None, description="ISO 4217 code, joined by dated rates.")
    as_of: Literal["was", "now"] = Field(
        "was", description="Owners as they were at the time, or as they are now."
    )

    def keys(self, default: str) -> tuple[str, ...]:
        """The group keys asked for."""
        return tuple(key.strip() for key in (self.by or default).split(",") if key.strip())


def asked_window(store: Store, query: WindowQuery) -> Window:
    """The window asked for. RequestRefusedError for what is none, or one longer than LONGEST."""
    known_cluster(store, query.cluster)
    where = "query parameters since, until and tz"
    last = asked_instant(store, query.cluster, query.until, "query parameter until")
    first = (
        read_or_refuse(where, lambda: earlier(last, DEFAULT))
        if query.since is None
        else asked_instant(store, query.cluster, query.since, "query parameter since")
    )
    window = read_or_refuse(where, lambda: Window(first, last, query.tz))
    if window.until - window.since > LONGEST:
        raise RequestRefusedError(
            f"{(window.until - window.since).days} days are more than {LONGEST.days}",
            where=where,
            remedy="ask for shorter windows, one after the other",
        )
    return window


def asked_instant(store: Store, cluster: str | None, text: str | None, where: str) -> datetime:
    """The instant ``text``, or the last one of which something is known."""
    if text is not None:
        return read_or_refuse(where, lambda: parse_time(text))
    known = facts_span(store, cluster)
    if known is None:
        raise RequestRefusedError(
            "the store holds no facts, so there is no last moment to start from",
            where=where,
            remedy="bring facts in (unstrand import ..., unstrand demo), or give a time",
        )
    return known.until


def within_rows(rows: Sequence[T], keys: Sequence[str]) -> Sequence[T]:
    """``rows``, refused when they are more than MOST_ROWS."""
    if len(rows) > MOST_ROWS:
        raise RequestRefusedError(
            f"{len(rows):,} rows are more than {MOST_ROWS:,}",
            where="query parameter by",
            remedy=f"ask for fewer keys than {','.join(keys)}, or a shorter window",
        )
    return rows


def known_cluster(store: Store, cluster: str | None) -> None:
    """Refuse a cluster that the store does not hold; None is all of them."""
    rows = store.rows("SELECT DISTINCT cluster FROM node ORDER BY cluster")
    known = [str(row["cluster"]) for row in rows]
    if cluster is not None and cluster not in known:
        raise RequestRefusedError(
            f"there is no cluster {cluster!r}",
            where="query parameter cluster",
            remedy=f"known are: {', '.join(known) or 'none'}",
            status=404,
        )


def read_or_refuse(where: str, read: Callable[[], T]) -> T:
    """What ``read`` returns; what it refuses is refused as the request's fault at ``where``."""
    try:
        return read()
    except AnalyticsError as error:
        what, _, remedy = str(error).partition(": ")
        raise RequestRefusedError(
            what, where=where, remedy=remedy or "see /api/v1/docs for what it takes"
        ) from error
