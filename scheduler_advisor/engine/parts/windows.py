"""Reservations in the parts' driver: who may use which nodes until when."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs


class Windows:
    """Nodes kept for the jobs that name a reservation, from its start to its end."""

    def __init__(self, jobs: Jobs, cluster: Cluster) -> None:
        self._jobs = jobs
        self._rules = [
            (rule.name, {cluster.index[node] for node in rule.nodes}, rule.start_at, rule.end_at)
            for rule in cluster.reservations
        ]
        self.any = bool(self._rules)

    def edges(self) -> list[int]:
        """Instants at which a reservation begins or ends."""
        return [at for _, _, since, until in self._rules for at in (since, until)]

    def never(self, job: int) -> bool:
        """Whether the job names a reservation that is not there, or too short for its limit."""
        name, limit = self._jobs.reservation[job], int(self._jobs.limit[job])
        return bool(name) and not any(
            own == name and until - since >= limit for own, _, since, until in self._rules
        )

    def held_back(self, job: int, now: int) -> bool:
        """Whether the job's own reservation has not begun, or ends too soon for it by its limit;
        such a job blocks nobody."""
        name, limit = self._jobs.reservation[job], int(self._jobs.limit[job])
        return any(
            own == name and not since <= now <= until - limit
            for own, _, since, until in self._rules
        )

    def open_to(self, job: int, nodes: Sequence[int], now: int, until: int) -> tuple[int, ...]:
        """Those of the nodes that no reservation of others needs in [now, until)."""
        away = self.kept_from(job, now, until)
        return tuple(node for node in nodes if node not in away)

    def kept_from(self, job: int, now: int, until: int) -> frozenset[int]:
        """Nodes that reservations of others need in [now, until)."""
        name = self._jobs.reservation[job]
        return frozenset(
            node
            for own, kept, since, end in self._rules
            if own != name and now < end and until > since
            for node in kept
        )
