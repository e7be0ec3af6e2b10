"""Long work shows that it is alive, on stderr, where somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner with ``what`` while the block runs, if stderr is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield


@contextmanager
def counting() -> Iterator[Callable[[str, int, int], None]]:
    """A line ``what 3 of 20`` on stderr that follows the calls, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    with Console(stderr=True).status("replaying") as status:

        def tell(what: str, done: int, total: int) -> None:
            status.update(f"{what}: {done}" + (f" of {total}" if total else ""))

        yield tell
