"""Keeps the ledger as new as the facts: the newest days every minute, all of it now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from analytics.health.span import facts_span
from analytics.ledger import clusters, ensure_built
from analytics.window import Window
from collector.store import Store
from collector.time_limit import time_limit

RECENT = timedelta(days=2)
RECENT_EVERY = timedelta(minutes=1)
ALL_EVERY = timedelta(hours=1)
PIECE = timedelta(days=1)
# Whether facts are newer than accounts is looked at by the month; a question that comes again
# within half a minute (pages, dashboards) is not looked at again.
MONTH = timedelta(days=31)
ASKED_FOR = timedelta(seconds=30)


class LedgerKeeper:
    """Builds the hours whose facts are newer than their accounts, one piece at a time.

    Newest first: pages open on the last weeks. Between pieces it looks whether to stop.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._one = threading.Lock()
        self._stop = threading.Event()
        self._asking = threading.Lock()  # requests come on many threads
        self._asked: dict[tuple[Window, str | None], datetime] = {}

    def recent(self) -> int:
        """Build what is missing of the last known days; returns the hours built."""
        return self._build(RECENT)

    def everything(self) -> int:
        """Build what is missing anywhere; returns the hours built."""
        return self._build(None)

    def stop(self) -> None:
        """End after the piece that is being built."""
        self._stop.set()

    def window(self, window: Window, cluster: str | None) -> int:
        """Build what is missing of a window that somebody asks for; returns the hours built.

        Also hours after the last fact: what is installed then is `unknown`, and must be posted so.
        """
        now = self._clock()
        with self._asking:
            self._asked = {key: at for key, at in self._asked.items() if now - at < ASKED_FOR}
            if (window, cluster) in self._asked:
                return 0
        with time_limit(None):  # what is built stays, however long somebody would have waited
            names = clusters(self._store) if cluster is None else [cluster]
            built = sum(
                self._piece(piece, name)
                for name in names
                for piece in _cut(window.since, window.until, MONTH)
            )
        with self._asking:
            self._asked[window, cluster] = now
        return built

    def past_the_facts(self, window: Window, cluster: str | None) -> int:
        """Build the hours of a window from the last fact on, for a page; returns the hours built.

        What is before is built in the background, and shown as it is. What is still to come of a
        running day is `unknown`, as the command line and the API post it: the day adds up to what
        is installed in every view.
        """
        built = 0
        for name in clusters(self._store) if cluster is None else [cluster]:
            known = facts_span(self._store, name)
            if known is None:
                continue
            last = known.until.replace(minute=0, second=0, microsecond=0)
            since = max(window.since, last)
            if since < window.until:
                built += self.window(Window(since, window.until), name)
        return built

    def _build(self, back: timedelta | None) -> int:
        return sum(
            self._piece(piece, cluster)
            for cluster in clusters(self._store)
            for piece in self._pieces(cluster, back)
        )

    def _piece(self, piece: Window, cluster: str) -> int:
        with self._one:
            if self._stop.is_set():
                return 0
            return ensure_built(self._store, piece, cluster=cluster)

    def _pieces(self, cluster: str, back: timedelta | None) -> list[Window]:
        """Windows of a day from the newest back."""
        span = facts_span(self._store, cluster)
        if span is None:
            return []
        until = min(span.until, self._clock())
        first = span.since if back is None else max(span.since, until - back)
        return _cut(first, until, PIECE)


def _cut(first: datetime, until: datetime, longest: timedelta) -> list[Window]:
    """Windows of at most ``longest``, the newest first."""
    pieces = []
    while until > first:
        since = max(first, until - longest)
        pieces.append(Window(since, until))
        until = since
    return pieces
