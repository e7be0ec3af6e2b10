"""When jobs become eligible: at their instant, and after those that they wait for have ended."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from scheduler_advisor.engine.jobs import Jobs

NEVER = 1 << 62


class Family:
    """Arrivals in time; a job with parents arrives when the last of them has ended."""

    def __init__(self, jobs: Jobs) -> None:
        self._eligible: list[int] = jobs.eligible.tolist()
        self._waits_for: dict[int, set[int]] = {}
        self._children: dict[int, list[int]] = {}
        for child, parent in jobs.parent_of.tolist():
            self._waits_for.setdefault(child, set()).add(parent)
            self._children.setdefault(parent, []).append(child)
        self._due = [(at, job) for job, at in enumerate(self._eligible) if not self._parents(job)]
        heapify(self._due)

    def _parents(self, job: int) -> bool:
        return bool(self._waits_for.get(job))

    def next(self) -> int:
        """The next arrival."""
        return self._due[0][0] if self._due else NEVER

    def ended(self, jobs: Iterable[int], now: int) -> None:
        """They ended; their children may be free to come."""
        for job in jobs:
            for child in self._children.get(job, ()):
                self._waits_for[child].discard(job)
                if not self._parents(child):
                    heappush(self._due, (max(now, self._eligible[child]), child))

    def arrived(self, now: int) -> list[int]:
        """Who is there now and was not before."""
        found = []
        while self._due and self._due[0][0] <= now:
            found.append(heappop(self._due)[1])
        return found
