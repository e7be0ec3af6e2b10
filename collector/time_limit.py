"""How long a unit of work of the store may take, for whoever asks in the present context."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from collector.errors import StoreLimitError

_LIMIT_S: ContextVar[float | None] = ContextVar("unstrand_time_limit_s", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Each unit of work begun in the block may take ``seconds``, None: any time.

    Its query is interrupted then, and the unit of work raises StoreLimitError.
    """
    token = _LIMIT_S.set(seconds)
    try:
        yield
    finally:
        _LIMIT_S.reset(token)


@contextmanager
def interrupted_in_time(interrupt: Callable[[], None]) -> Iterator[None]:
    """Calls ``interrupt`` from another thread when the time of this context is over."""
    seconds = _LIMIT_S.get()
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def too_long() -> StoreLimitError:
    """The refusal of a question whose query was interrupted."""
    return StoreLimitError(
        f"the question takes longer than {_LIMIT_S.get():g} s: ask for a shorter window or fewer "
        "groups"
    )
