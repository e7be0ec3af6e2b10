"""A question about a window, put to the service that holds the file or to the file itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import typer

from analytics.errors import WindowError
from analytics.health.span import facts_span
from analytics.window import Window, earlier
from collector.errors import StoreError
from collector.store import Store
from unstrand.api.query import LONGEST
from unstrand.commands.progress import working
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

DEFAULT_LENGTH = timedelta(weeks=4)
Answer = Callable[[Store, Window], Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What every question takes."""

    db: Path | None
    server: str | None
    since: datetime | None = None
    until: datetime | None = None
    time_zone: str = "UTC"
    cluster: str | None = None
    how: Format = Format.TABLE
    out: Path | None = None


def fetch(asked: Asked, path: str, answer: Answer, **parameters: object) -> Any:
    """One answer, from the service if one holds the file, else from the file itself."""
    server = server_for(asked.db, asked.server)
    if server is None:
        return _from_file(asked, answer)
    return ask(
        server,
        path,
        since=iso(asked.since),
        until=iso(asked.until),
        tz=asked.time_zone,
        cluster=asked.cluster,
        **parameters,
    )


def _from_file(asked: Asked, answer: Answer) -> Any:
    """The answer from the store, its ledger brought up to date for the window first."""
    # Here, not above: the ledger loads numba, which asking a service does not need.
    from analytics.ledger import ensure_built

    with opened(asked.db) as store:
        window = asked_window(store, asked)
        with working("bringing the ledger up to date"):
            ensure_built(store, window, cluster=asked.cluster)
        return answer(store, window)


def asked_window(store: Store, asked: Asked) -> Window:
    """The window asked for; by default the four weeks before the last known fact."""
    span = facts_span(store, asked.cluster)
    until = asked.until or (span.until if span else None)
    if until is None:
        if asked.cluster is not None and facts_span(store, None) is not None:
            raise StoreError(
                f"{store.path} holds no facts of a cluster {asked.cluster!r}: "
                "check --cluster, or leave it out for all"
            )
        raise StoreError(
            f"{store.path} holds no facts, so there is no window to report: import some first "
            "(unstrand import slurm --help)"
        )
    window = Window(asked.since or earlier(until, DEFAULT_LENGTH), until, asked.time_zone)
    if window.until - window.since > LONGEST:
        # Every hour of a window is built, and one that was mistyped would be built for hours.
        raise WindowError(
            f"the window has {(window.until - window.since).days} days, more than {LONGEST.days}: "
            "ask for shorter ones, one after the other"
        )
    return window


def iso(at: datetime | None) -> str | None:
    """A time as requests carry it."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def failed(rows: Sequence[Mapping[str, Any]], how: Format, fine: str) -> None:
    """Print what a check found; exit code 1 if it found anything, and ``fine`` if not."""
    if rows or how is not Format.TABLE:
        print_document({"rows": rows}, how)
    else:
        typer.echo(fine)
    if rows:
        raise typer.Exit(1)
