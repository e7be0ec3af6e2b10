"""Which driver replays a policy: the one place where that is decided, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.settings import Eligible
from scheduler_advisor.engine.parts.settings import Defrag, Elastic, Sharing
from scheduler_advisor.engine.policy import Policy

COMPILED, PLAIN = "compiled", "plain"


@dataclass(frozen=True, slots=True)
class Driver:
    """`name`: compiled, or plain Python, in which jobs may change while they run: exact, and some
    hundred times slower. `because`: the parts that ask for it."""

    name: str
    because: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        return self.name == PLAIN

    def lines(self) -> list[str]:
        """What somebody who waits for it should know."""
        if not self.plain:
            return []
        return [
            f"replayed by the plain driver ({', '.join(self.because)}): exact, thousands of jobs a"
            " second; docs/simulator-parts.md says how to do without"
        ]


def driver_of(jobs: Jobs, policy: Policy) -> Driver:
    """Plain where some job of this workload could change while it runs; a part that touches none
    of them asks for nothing."""
    reasons = {
        f"defrag = {policy.defrag.kind}": _moves(jobs, policy),
        "elastic = resize": policy.elastic.kind is Elastic.RESIZE and _elastic(jobs),
        f"sharing = {policy.sharing.kind}": policy.sharing.kind is not Sharing.ASKED,
        "services": bool(jobs.service.any()),
    }
    because = tuple(reason for reason, there in reasons.items() if there)
    return Driver(PLAIN if because else COMPILED, because)


def _moves(jobs: Jobs, policy: Policy) -> bool:
    if policy.defrag.kind is not Defrag.PENDING:
        return policy.defrag.kind is not Defrag.NONE
    return policy.eviction.eligible is Eligible.ALL or bool((jobs.preemptible > 0).any())


def _elastic(jobs: Jobs) -> bool:
    """Some job may run with fewer or more tasks than it asks for."""
    smaller = (jobs.min_tasks > 0) & (jobs.min_tasks < np.maximum(jobs.tasks, 1))
    return bool((smaller | (jobs.max_tasks > jobs.tasks)).any())
