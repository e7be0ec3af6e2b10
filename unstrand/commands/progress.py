"""Long work shows that it is alive, on stderr, where somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
