"""Which changes of the catalogue are tried here: those that could change anything, as the diagnosis
and the time for it allow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from scheduler_advisor.engine.drive_kept import keeps_plan
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.policy import Backfill, Policy
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.alter import caps_bind
from scheduler_advisor.search.catalogue import (
    CHANGES,
    FAIRNESS,
    LIMITS,
    Alter,
    Change,
    Part,
    applied,
    replayable,
)
from scheduler_advisor.search.of_site import site_changes
from scheduler_advisor.search.quota_changes import quota_changes
from scheduler_advisor.search.writing import alone

# Jobs up to which a plan for all that wait is tried: its cost grows with the queue, and the loads
# that a change is tried at make long ones. Beyond, the first hundred have a place in the plan.
FEW = 20_000
# Jobs a second on a busy cluster, as measured: the drivers that are not the core one.
PARTS_RATE, LIVE_RATE = 4_000, 50_000
LONGEST_S = 45  # one replay: forty of them on two cores stay within a quarter of an hour
GREEDY = next(change for change in CHANGES if change.name == "backfill_greedy")


@dataclass(frozen=True, slots=True)
class Usable:
    """Sets of changes to try alone, and by name those that are not, by why.

    ``unprompted``: the diagnosis gives no reason to; ``unknown``: not in the simulator with this
    policy; ``slow``: would take too long on so many jobs.
    """

    sets: tuple[tuple[Change, ...], ...]
    unprompted: tuple[str, ...]
    unknown: tuple[str, ...]
    slow: tuple[str, ...]

    @property
    def not_tried(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.unknown, *self.slow, *self.unprompted)


def usable(
    past: Past, policy: Policy, goals: Goals, aims: Collection[str], *, thorough: bool = False
) -> Usable:
    """``aims``: causes that the diagnosis found, see `diagnosis.aims`; ``thorough``: all."""
    found: list[tuple[Change, ...]] = []
    unprompted, unknown, slow = [], [], []
    measured = thorough or bool({LIMITS, FAIRNESS} & set(aims))
    quotas = quota_changes(past, policy, resumes=_resumes(past, goals), measured=measured)
    shares = bool((past.jobs.gpu_milli > 0).any())
    for change in (*CHANGES, *site_changes(past), *quotas, *alone(past, policy)):
        if not _sensible(change, policy, past, goals):
            continue
        if change.prompted_by and not thorough and not set(change.prompted_by) & set(aims):
            unprompted.append(change.name)
            continue
        changes = _together(policy, change, shares=shares)
        if changes is None:
            unknown.append(change.name)
        elif not thorough and _seconds(past, _with(policy, changes)) > LONGEST_S:
            slow.append(change.name)
        else:
            found.append(changes)
    return Usable(tuple(found), tuple(unprompted), tuple(unknown), tuple(slow))


def _with(policy: Policy, changes: tuple[Change, ...]) -> Policy | None:
    after: Policy | None = policy
    for change in changes:
        after = applied(after, change) if after is not None else None
    return after


def _together(policy: Policy, change: Change, *, shares: bool) -> tuple[Change, ...] | None:
    """The change, or with greedy backfill where it is only replayed with that; None: neither."""
    for changes in ((change,), (GREEDY, change)):
        after = _with(policy, changes)
        if after is not None and replayable(after, shares=shares):
            return changes
        if change.part is Part.BACKFILL or policy.backfill in (Backfill.NONE, Backfill.GREEDY):
            break
    return None


def _seconds(past: Past, policy: Policy | None) -> float:
    """About how long one replay takes."""
    if policy is None:
        return 0.0
    if driver_of(past.jobs, policy).plain:
        return len(past.jobs) / PARTS_RATE
    return len(past.jobs) / LIVE_RATE if policy.live else 0.0


def _resumes(past: Past, goals: Goals) -> bool:
    """Whether some work may be stopped and goes on afterwards."""
    return bool(past.jobs.preemptible.any()) and not goals.never.preempt


def _sensible(change: Change, policy: Policy, past: Past, goals: Goals) -> bool:
    """Whether it could change anything here, and stops nothing that must not be stopped."""
    jobs, cluster = past.jobs, past.cluster
    if change.alter is not Alter.NOTHING:
        return caps_bind(jobs, cluster, change.alter)
    if change.part is Part.CHECKPOINT:
        return True  # `writing.alone` has only what could
    after = applied(policy, change)
    if (after == policy and change.limits is None) or (
        change.part is Part.PLACEMENT and len(cluster) == 1
    ):
        return False
    varied = int(np.ptp(jobs.priority)) > 0
    # Only work with evidence that it resumes may be stopped or moved.
    resumes = _resumes(past, goals)
    leaves = len(set(cluster.leaf)) > 1 and bool((jobs.tasks > 1).any())
    needs = {
        # A plan for every job is made in whole GPUs.
        "backfill_conservative": len(jobs) <= FEW and not (jobs.gpu_milli > 0).any(),
        "backfill_planned:100": len(jobs) > FEW and keeps_plan(jobs, cluster),
        "order_priority": varied,
        "order_multifactor": len(jobs.qos.names) > 1,
        "order_fair_share": len(jobs.team.names) > 1,
        "topology": leaves,
        "topology_required": leaves,
        "preempt_priority": resumes and varied,
        "preempt_guarded": resumes and varied,
    }
    by_part = {
        Part.DEFRAGMENTATION: resumes and not goals.never.move,
        Part.SHARING: bool((jobs.gpu_milli > 0).any()) and not goals.never.share,
        Part.ELASTIC: bool((jobs.max_tasks > jobs.min_tasks).any()),
    }
    return needs.get(change.name, by_part.get(change.part, True))
