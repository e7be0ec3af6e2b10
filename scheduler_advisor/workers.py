"""Many independent pieces of work over one big input: here, or in processes; with cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from scheduler_advisor.errors import AdvisorError

if TYPE_CHECKING:
    from scheduler_advisor.crew import Crew

Item = TypeVar("Item")
Result = TypeVar("Result")
LOOK_EVERY_S = 0.1


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
    """In processes of this machine, which stay until the block or `close` ends them.

    The input travels once to each process; a process that dies ends the work with AdvisorError.
    """

    def __init__(self, count: int = 2) -> None:
        self._count = count
        self._crew: Crew | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; safe to call twice."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def each(
        self,
        held: Any,
        work: Callable[[Any, Item], Result],
        items: Sequence[Item],
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[tuple[Item, Result]]:
        """See `Workers`."""
        from scheduler_advisor.crew import Crew

        if self._crew is None:
            self._crew = Crew(self._count)
        return self._crew.each(held, work, items, cancelled)
