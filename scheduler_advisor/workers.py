"""Many independent pieces of work over one big input: here, or in processes; with cancel."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

from scheduler_advisor.errors import AdvisorError

Item = TypeVar("Item")
Result = TypeVar("Result")
LOOK_EVERY_S = 0.1
_ATTEMPTS = 2


class CancelledError(AdvisorError):
    """Somebody asked to stop; nothing was kept."""


def never() -> bool:
    """Nobody cancels."""
    return False


class Workers(Protocol):
    """A place that does ``work(held, item)`` for every item, in any order."""

    def each(
        self,
        held: Any,
        work: Callable[[Any, Item], Result],
        items: Sequence[Item],
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[tuple[Item, Result]]:
        """Every item once; CancelledError as soon as ``cancelled()`` says so."""


class Inline:
    """In this process, one after another."""

    def each(
        self,
        held: Any,
        work: Callable[[Any, Item], Result],
        items: Sequence[Item],
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[tuple[Item, Result]]:
        """See `Workers`."""
        for item in items:
            if cancelled():
                raise CancelledError("cancelled")
            yield item, work(held, item)


class Processes:
    """In processes of this machine, which end with the iteration.

    The input travels once to each process. A pool that lost a process is made anew once.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count

    def each(
        self,
        held: Any,
        work: Callable[[Any, Item], Result],
        items: Sequence[Item],
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[tuple[Item, Result]]:
        """See `Workers`."""
        left = list(items)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                for item, result in self._once(held, work, tuple(left), cancelled):
                    left.remove(item)
                    yield item, result
                return
            except BrokenProcessPool as error:
                if attempt == _ATTEMPTS:
                    raise AdvisorError(
                        f"worker processes died twice with {len(left)} replays left, as they do "
                        "when memory runs out: use a shorter window"
                    ) from error

    def _once(
        self,
        held: Any,
        work: Callable[[Any, Item], Result],
        items: Sequence[Item],
        cancelled: Callable[[], bool],
    ) -> Iterator[tuple[Item, Result]]:
        pool = ProcessPoolExecutor(
            self._count,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_hold,
            initargs=(held,),
        )
        try:
            waiting: dict[Future[Result], Item] = {
                pool.submit(_work, work, item): item for item in items
            }
            while waiting:
                if cancelled():
                    raise CancelledError("cancelled")
                done, _ = wait(waiting, LOOK_EVERY_S, FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_held: list[Any] = [None]


def _hold(held: Any) -> None:
    _held[0] = held


def _work(work: Callable[[Any, Item], Result], item: Item) -> Result:
    return work(_held[0], item)
