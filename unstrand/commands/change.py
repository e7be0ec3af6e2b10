"""One change to the books: made by the service that holds the file, or in the file itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from collector.store import Work
from unstrand.commands.send import send
from unstrand.commands.source import opened, server_for


def change(
    db: Path | None,
    server: str | None,
    path: str,
    body: Mapping[str, Any],
    write: Callable[[Work], Any],
) -> Any:
    """POST ``body`` to ``path`` of the service, or ``write`` in one transaction; what either
    returns."""
    address = server_for(db, server)
    if address is not None:
        return send(address, path, body)
    with opened(db, create=True) as store, store.work() as work, work.transaction():
        return write(work)
