"""One replay by the general driver."""

from __future__ import annotations

import time

import numpy as np

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.drive import drive_live
from scheduler_advisor.engine.live.prepare import prepare_live
from scheduler_advisor.engine.live.tuples import (
    DOWN_SUM,
    EVENTS_SUM,
    EXAMINED_SUM,
    FIRST,
    FREE_SUM,
    HELD_SUM,
    KEPT_SUM,
    NEVER,
    NOW,
    PASSES_SUM,
    QUEUED_SUM,
    SHADOWS_SUM,
)
from scheduler_advisor.engine.outcome import STATES, Outcome, State
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.world import (
    M_FIRST,
    M_LEFT,
    M_LOST,
    M_OVERHEAD,
    M_PREEMPTED,
    M_STARTS,
    OVER,
    WHOLE,
)


def run_live(jobs: Jobs, cluster: Cluster, policy: Policy) -> Outcome:
    """Replays `jobs`, whose shapes are stated."""
    began = time.process_time()
    ready = prepare_live(jobs, cluster, policy)
    world, live, z = ready.base.world, ready.live, ready.z
    prepared = time.process_time()
    drive_live(world, live, ready.base.rules, ready.terms, z, ready.lines_each)
    drove = time.process_time() - prepared
    runs = world.runs
    done = runs.phase == OVER
    state = np.where(done, STATES.index(State.DONE), STATES.index(State.PENDING)).astype(np.int8)
    state[ready.base.unplaceable] = STATES.index(State.UNPLACEABLE)
    first = int(z[FIRST]) if z[FIRST] != NEVER else 0
    return Outcome(
        jobs=jobs,
        cluster=cluster,
        policy=policy,
        first_start=runs.more[:, M_FIRST],
        start=runs.start,
        end=runs.end,
        starts=runs.more[:, M_STARTS],
        state=state,
        lost_s=runs.more[:, M_LOST],
        overhead_s=runs.more[:, M_OVERHEAD],
        preemptions=runs.more[:, M_PREEMPTED],
        place_start=world.rows.place,
        place_node=world.book.node,
        deadlocks=(),
        holding_gpu_s=float(z[KEPT_SUM]) / WHOLE,
        held_gpu_s=float(z[HELD_SUM]) / WHOLE,
        queue_s=int(z[QUEUED_SUM]),
        events=int(z[EVENTS_SUM]),
        passes=int(z[PASSES_SUM]),
        examined=int(z[EXAMINED_SUM]),
        last_instant=int(z[NOW]) if z[FIRST] != NEVER else 0,
        shadows=int(z[SHADOWS_SUM]),
        prepare_s=prepared - began,
        drive_s=drove,
        left_s=np.where(done, 0, runs.more[:, M_LEFT]),
        room_by=live.fate.by,
        room_asked_at=live.fate.asked_at,
        free_gpu_s=float(z[FREE_SUM]) / WHOLE,
        down_gpu_s=float(z[DOWN_SUM]) / WHOLE,
        first_instant=first,
        slow_ppm=live.net.slow if ready.terms.slows else None,
    )
