"""One replay: jobs, a cluster and a policy in; what would have happened out."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.drive import (
    CONSERVATIVE,
    EVENTS,
    EXAMINED,
    FREE,
    HELD,
    LAST,
    PASSES,
    QUEUED,
    SHADOWS,
    drive,
)
from scheduler_advisor.engine.drive_holding import (
    DEADLOCKS,
    HOLDING,
    HOLDING_TOTALS,
    drive_holding,
    empty_patience,
)
from scheduler_advisor.engine.drive_kept import drive_kept, suits_kept
from scheduler_advisor.engine.drive_planned import LENGTHS, drive_planned
from scheduler_advisor.engine.drive_pool import drive_pool, empty_pool, suits
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.kept import empty_kept
from scheduler_advisor.engine.outcome import STATES, Deadlock, Outcome, State
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.parts.fluid_run import simulate_fluid
from scheduler_advisor.engine.parts.wired import refuse_unwired
from scheduler_advisor.engine.plan import NOWHEN
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.prepare import Prepared, order_bands, prepare
from scheduler_advisor.engine.profile import empty_profile
from scheduler_advisor.engine.shapes import fitted
from scheduler_advisor.engine.world import (
    M_FIRST,
    M_LOST,
    M_OVERHEAD,
    M_PREEMPTED,
    M_STARTS,
    OVER,
    WHOLE,
)

NO_DEADLOCKS = np.zeros((0, 3), np.int64)


def simulate(jobs: Jobs, cluster: Cluster, policy: Policy, *, seed: int | None = None) -> Outcome:
    """Replays `jobs` on `cluster` under `policy`; `seed` replaces the policy's own."""
    if seed is not None:
        policy = replace(policy, seed=seed)
    refuse_unwired(policy)
    began = time.process_time()
    jobs = fitted(jobs, int(cluster.gpus.max(initial=0)))
    if driver_of(jobs, policy).plain:
        return simulate_fluid(jobs, cluster, policy)
    if policy.live:
        from scheduler_advisor.engine.live.run import run_live  # its compiled code is large

        return run_live(jobs, cluster, policy)
    ready = prepare(jobs, cluster, policy)
    totals = np.zeros(HOLDING_TOTALS, np.int64)
    totals[FREE] = cluster.total_gpus * WHOLE
    prepared = time.process_time()
    deadlocks = run(jobs, cluster, policy, ready, totals)
    seconds = (prepared - began, time.process_time() - prepared)
    return _outcome(jobs, cluster, policy, ready, totals, seconds, deadlocks)


def run(
    jobs: Jobs, cluster: Cluster, policy: Policy, ready: Prepared, totals: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Lets the driver of the policy's kind replay what was prepared; returns deadlocks."""
    world, rules = ready.world, ready.rules
    if not policy.gang:
        patience = empty_patience(world, jobs.submit, order_bands(jobs, cluster, policy))
        drive_holding(world, rules, patience, totals)
        return patience.deadlocks[: totals[DEADLOCKS]]
    if rules.backfill < CONSERVATIVE:
        drive(world, rules, totals)
        return NO_DEADLOCKS
    if suits(jobs, cluster, policy, rules):
        drive_pool(world, empty_pool(world, int(totals[FREE])), rules.smallest_milli, totals)
        return NO_DEADLOCKS
    if suits_kept(jobs, cluster, policy):
        drive_kept(world, rules, empty_kept(world, rules.most), totals)
        return NO_DEADLOCKS
    plan_anew(ready, totals)
    return NO_DEADLOCKS


def plan_anew(ready: Prepared, totals: NDArray[np.int64]) -> None:
    """Lets the driver replay that plans at each pass anew: any conservative policy, slowly."""
    world = ready.world
    drive_planned(
        world,
        ready.rules,
        empty_profile(world.nodes, len(world.book.node) + 1),
        np.full(len(world.rows.run), NOWHEN, np.int64),
        np.zeros((len(world.nodes.table), 4), np.int64),
        np.zeros((len(world.shapes), LENGTHS, 2), np.int64),
        totals,
    )


def _outcome(
    jobs: Jobs,
    cluster: Cluster,
    policy: Policy,
    ready: Prepared,
    totals: NDArray[np.int64],
    seconds: tuple[float, float],
    deadlocks: NDArray[np.int64],
) -> Outcome:
    runs, size = ready.world.runs, len(jobs)
    done = runs.phase == OVER
    if ready.rules.interruptible:
        first, starts = runs.more[:, M_FIRST], runs.more[:, M_STARTS]
        lost, overhead = runs.more[:, M_LOST], runs.more[:, M_OVERHEAD]
        preempted = runs.more[:, M_PREEMPTED]
    else:
        first, starts = runs.start, done.astype(np.int64)
        lost = overhead = preempted = np.broadcast_to(np.zeros(1, np.int64), (size,))
    state = np.where(done, STATES.index(State.DONE), STATES.index(State.PENDING)).astype(np.int8)
    state[ready.unplaceable] = STATES.index(State.UNPLACEABLE)
    return Outcome(
        jobs=jobs,
        cluster=cluster,
        policy=policy,
        first_start=first,
        start=runs.start,
        end=runs.end,
        starts=starts,
        state=state,
        lost_s=lost,
        overhead_s=overhead,
        preemptions=preempted,
        place_start=ready.world.rows.place,
        place_node=ready.world.book.node,
        place_gpu=ready.world.book.gpu if ready.rules.shares else None,
        deadlocks=tuple(
            Deadlock(at, count, held / WHOLE) for at, count, held in deadlocks.tolist()
        ),
        holding_gpu_s=float(totals[HOLDING]) / WHOLE,
        held_gpu_s=float(totals[HELD]) / WHOLE,
        queue_s=int(totals[QUEUED]),
        events=int(totals[EVENTS]),
        passes=int(totals[PASSES]),
        examined=int(totals[EXAMINED]),
        last_instant=int(totals[LAST]),
        shadows=int(totals[SHADOWS]),
        prepare_s=seconds[0],
        drive_s=seconds[1],
    )
