"""What a replay may remember of searches that failed, and the arrays for it (hope.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.settings import Stop
from scheduler_advisor.engine.live.tuples import NONE, Hope, Terms
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.prepare import Prepared
from scheduler_advisor.engine.world import S_CLASS

Ints = NDArray[np.int64]
MOST_RANKS = 64


def with_hope(terms: Terms, policy: Policy, jobs: Jobs, cluster: Cluster, ranks: int) -> Terms:
    """The terms with what holds for these jobs. A search is remembered where victims are told by a
    standing that never changes; bounds count GPUs, which an exclusive job holds more of than it
    asks for; and a guard that spares somebody must be noticed, so nothing is refused before it."""
    part = policy.eviction
    suspends = bool(terms.preempts) and part.mode is Stop.SUSPEND
    anywhere = terms.by_rank and not terms.own_queue and not terms.reclaim
    steady = not terms.has_levels and not suspends and not cluster.reservations
    guarded = part.max_per_hour or part.max_team_gpus_per_hour
    return terms._replace(
        remembers=int(anywhere and steady),
        bounded=int(not guarded and not (jobs.exclusive > 0).any()),
        coarse=int(ranks > MOST_RANKS or bool(terms.has_levels)),
        skips=int(not suspends),
    )


def make_hope(base: Prepared, standing: Ints, queues: int, terms: Terms) -> Hope:
    """Nothing runs, nothing has failed. Many different standings are put into 64 ranks."""
    world = base.world
    distinct, rank = np.unique(standing, return_inverse=True)
    rank = rank.reshape(-1).astype(np.int64)
    if terms.has_levels:
        rank[:] = 0
    elif len(distinct) > MOST_RANKS:
        rank = rank * MOST_RANKS // len(distinct)
    ranks = int(rank.max(initial=0)) + 1
    part = world.component[world.shapes[:, S_CLASS]]
    shapes = np.argsort(part, kind="stable").astype(np.int64)
    start = np.searchsorted(part[shapes], np.arange(base.rules.components + 1))
    size = len(standing)
    return Hope(
        rank=rank,
        counted=np.zeros(size, np.int64),
        freeable=np.zeros((queues, ranks + 1), np.int64),
        grown=np.zeros(ranks, np.int64),
        vain=np.full(size, NONE, np.int64),
        waits=np.zeros(len(world.shapes), np.int64),
        shapes=shapes,
        start=start.astype(np.int64),
    )
