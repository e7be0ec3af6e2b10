"""How many questions are worked on at once, and how long one may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from collector.time_limit import time_limit
from unstrand.errors import RequestRefusedError

AT_ONCE = 8
WAIT_S = 20.0
ANSWER_S = 60.0  # a browser's and most proxies' patience


def limited(
    at_once: int = AT_ONCE, wait_s: float = WAIT_S, answer_s: float = ANSWER_S
) -> Callable[[], AsyncIterator[None]]:
    """A dependency of routes that ask the store: one more than ``at_once`` waits for its turn for
    ``wait_s`` and is refused then; each has ``answer_s``."""
    turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    async def turn() -> AsyncIterator[None]:
        free = turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(at_once))
        try:
            await asyncio.wait_for(free.acquire(), wait_s)
        except TimeoutError:
            raise RequestRefusedError(
                f"{at_once} other questions are being worked on",
                where="service",
                remedy="ask again in a moment",
                status=503,
            ) from None
        try:
            with time_limit(answer_s):
                yield
        finally:
            free.release()

    return turn
