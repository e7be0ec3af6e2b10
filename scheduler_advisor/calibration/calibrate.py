"""Replay the policy in force and say how well it repeats what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from scheduler_advisor.calibration.causes import Mismatch, mismatches
from scheduler_advisor.calibration.compare import Comparison, compare
from scheduler_advisor.calibration.grade import (
    Grade,
    Mark,
    Ungraded,
    grade_of,
    marks_of,
    ungraded,
)
from scheduler_advisor.calibration.in_force import InForce, other_readings, policy_of
from scheduler_advisor.calibration.network import Network
from scheduler_advisor.calibration.rules import rules_of
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.parts.settings import ANY_TOPOLOGY
from scheduler_advisor.engine.policy import Backfill, Order, Placement, Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.past import Past
from scheduler_advisor.workers import Inline, Workers, never

Progress = Callable[[int, int], None]

BACKFILLS = (Backfill.NONE, Backfill.GREEDY, Backfill.EASY, Backfill.CONSERVATIVE)
ORDERS = (Order.FIFO, Order.PRIORITY, Order.LARGEST_FIRST, Order.SJF_LIMIT)
PLACEMENTS = (Placement.BEST_FIT, Placement.FIRST_FIT, Placement.WORST_FIT, Placement.CONSOLIDATE)
AS_NEAR = 1.1  # most sites serve first come, first served: a tenth is no evidence against it
PLAIN = Policy()
PLANNED = 40_000  # jobs up to which a plan for all of them is tried
PLACED = 6  # the best of order and backfill, each tried with every placement
NO_QUEUE = "no queue formed: FIFO with EASY is assumed"
EASY = Policy(backfill=Backfill.EASY)
DEEP_QUEUE = 300  # mean queue from which a rebuilt plan costs minutes and repeats no real scheduler


@dataclass(frozen=True, slots=True)
class Fitted:
    """One policy that was tried on the past. ``score``: mean log error of waits."""

    policy: Policy
    score: float
    grade: Grade


@dataclass(frozen=True, slots=True)
class Calibration:
    """The policy in force, its grade, the marks behind it, and where reality differs most.

    ``past`` carries the rules (limits, tiers) that were read. Without real starts the comparison
    is None. Without a grade there are neither marks nor mismatches.
    """

    past: Past
    in_force: InForce
    grade: Grade
    marks: tuple[Mark, ...] = ()
    found: Comparison | None = None
    mismatches: tuple[Mismatch, ...] = ()
    tried: tuple[Fitted, ...] = ()

    @property
    def ungraded(self) -> Ungraded | None:
        """Why there is no grade."""
        return ungraded(self.found)

    @property
    def input_error(self) -> float:
        """By how much the replay may be off in free GPU time, relative; 1 where nothing says."""
        return 1.0 if self.ungraded or self.found is None else self.found.blocked_error

    @property
    def policy(self) -> Policy:
        """What today's cluster does, as far as it can be replayed."""
        return self.in_force.policy


def calibrate(
    past: Past,
    settings: Mapping[str, str] | None = None,
    *,
    network: Network | None = None,
    workers: Workers | None = None,
    progress: Progress = lambda done, total: None,
    cancelled: Callable[[], bool] = never,
) -> Calibration:
    """The in-force policy, read from ``settings`` or else searched for, and its fidelity.

    With a ``network`` run times follow the placement, in this replay and in all that come after.
    """
    ruled = rules_of(settings or {}, past)
    past = replace(network.past if network else past, cluster=ruled.cluster)
    part = network.part if network else ANY_TOPOLOGY
    read = policy_of(ruled.settings, past.jobs)
    if read is not None:
        read = replace(read, remarks=(*read.remarks, *ruled.remarks))
    if read is not None and network is not None:
        read = _in_network(read, network)
    if past.wait_s is None:
        plain = replace(EASY, topology=part, quota=ruled.quota)
        said = "no real starts: FIFO with EASY is assumed"
        assumed = InForce(plain, "assumed", remarks=(said, *ruled.remarks))
        return Calibration(past, read or assumed, Grade.NONE)
    place = workers or Inline()
    remarks: tuple[str, ...] = tuple(ruled.remarks)
    if read is not None:
        try:
            return _best_reading(past, read, ruled.settings, network, place, cancelled)
        except PolicyError as error:
            said = f"the policy that the settings describe is not replayed ({error})"
            remarks = (said, *remarks)
    start = Policy(topology=part, quota=ruled.quota)
    return _sought(past, start, remarks, network, (place, progress, cancelled))


def _sought(
    past: Past,
    start: Policy,
    remarks: tuple[str, ...],
    network: Network | None,
    watched: tuple[Workers, Progress, Callable[[], bool]],
) -> Calibration:
    """The nearest policy of those that are tried; where no queue formed, none is nearer than
    another. ``start`` has what is known already."""
    place, progress, cancelled = watched
    easy = replace(start, backfill=Backfill.EASY, topology=ANY_TOPOLOGY)
    [(_, (mean_queue, fits))] = place.each(past, probed, [easy], cancelled)
    if not fits.queue_formed:
        plain = replace(easy, topology=start.topology)
        assumed = InForce(plain, "assumed", remarks=(NO_QUEUE, *remarks))
        return Calibration(past, assumed, Grade.NONE, found=fits)
    tried = searched(past, mean_queue, place, progress, cancelled, start)
    found = InForce(_likeliest(tried).policy, "search", remarks=remarks)
    if network is not None:
        found = _in_network(found, network)
    return _replayed(past, found, place, cancelled, tuple(tried))


def _replayed(
    past: Past,
    found: InForce,
    place: Workers,
    cancelled: Callable[[], bool],
    tried: tuple[Fitted, ...] = (),
) -> Calibration:
    """Graded. Where work goes to processes, this replay goes too: compiled code lets no other
    thread run."""
    [(_, fits)] = place.each(past, replayed, [found.policy], cancelled)
    return _graded(past, found, fits, tried)


def _best_reading(
    past: Past,
    read: InForce,
    settings: Mapping[str, str],
    network: Network | None,
    workers: Workers,
    cancelled: Callable[[], bool],
) -> Calibration:
    """The first reading of the settings; where it repeats what happened badly, the nearest one."""
    first = _replayed(past, read, workers, cancelled)
    if first.grade in (Grade.A, Grade.B, Grade.NONE) or len(past.jobs) > PLANNED:
        return first
    assert first.found is not None
    others = other_readings(read, settings, past.jobs)
    if network is not None:
        others = [_in_network(each, network) for each in others]
    by_policy = {each.policy: each for each in others}
    tried = _fitted(past, workers, list(by_policy), lambda done: None, cancelled)
    best = min(tried, key=lambda each: each.score, default=None)
    if best is None or best.score * AS_NEAR > first.found.score:
        return replace(first, tried=tuple(tried))
    return _replayed(past, by_policy[best.policy], workers, cancelled, tuple(tried))


def _in_network(read: InForce, network: Network) -> InForce:
    said = (
        f"run times follow the placement: {network.fraction:.0%} of a gang's time is communication "
        f"by repeated runs of {network.measured_jobs:,} jobs, assumed of "
        f"{network.assumed_jobs:,} others"
    )
    policy = replace(read.policy, topology=network.part)
    return replace(read, policy=policy, remarks=(*read.remarks, said))


def _likeliest(tried: list[Fitted]) -> Fitted:
    """The nearest, or the nearest first-come policy where that is about as near."""
    best = min(tried, key=lambda each: each.score)
    plain = [each for each in tried if each.policy.order in (Order.FIFO, Order.PRIORITY)]
    nearest = min(plain, key=lambda each: each.score, default=best)
    return nearest if nearest.score <= best.score * AS_NEAR else best


def _graded(past: Past, read: InForce, found: Comparison, tried: tuple[Fitted, ...]) -> Calibration:
    if ungraded(found) is not None:
        return Calibration(past, read, Grade.NONE, found=found)
    marks = marks_of(found)
    return Calibration(
        past, read, grade_of(found, marks), tuple(marks), found,
        tuple(mismatches(past, found)), tried,
    )  # fmt: skip


def searched(
    past: Past,
    mean_queue: float,
    workers: Workers,
    progress: Progress,
    cancelled: Callable[[], bool],
    start: Policy = PLAIN,
) -> list[Fitted]:
    """Order and backfill first, then placements under the best of them; ``start`` has what is
    known already: quotas, the network."""
    first = _policies(past, mean_queue, start)
    places = PLACEMENTS[1:] if len(past.cluster) > 1 else ()
    total = len(first) + len(places) * min(PLACED, len(first))
    tried = _fitted(past, workers, first, lambda done: progress(done, total), cancelled)
    tried.sort(key=lambda each: each.score)
    cells = [replace(each.policy, placement=place) for each in tried[:PLACED] for place in places]
    seen = len(tried)
    tried += _fitted(past, workers, cells, lambda done: progress(seen + done, total), cancelled)
    return sorted(tried, key=lambda each: each.score)


def _fitted(
    past: Past,
    workers: Workers,
    cells: list[Policy],
    tell: Callable[[int], None],
    cancelled: Callable[[], bool],
) -> list[Fitted]:
    found = []
    for done, (_, fitted) in enumerate(workers.each(past, fit, cells, cancelled), 1):
        if fitted is not None:
            found.append(fitted)
        tell(done)
    return found


def probed(past: Past, policy: Policy) -> tuple[float, Comparison]:
    """Jobs that wait under ``policy``, mean over its replay, and this beside what happened."""
    outcome = simulate(past.jobs, past.cluster, policy)
    span = max(outcome.last_instant - int(past.jobs.submit.min()), 1)
    return outcome.queue_s / span, compare(past, outcome)


def replayed(past: Past, policy: Policy) -> Comparison:
    """A replay of ``policy`` beside what happened; runs in whatever process it is sent to."""
    return compare(past, simulate(past.jobs, past.cluster, policy))


def _policies(past: Past, mean_queue: float, start: Policy) -> list[Policy]:
    varied = int(np.ptp(past.jobs.priority)) > 0
    # A plan for every job is made in whole GPUs.
    whole = not (past.jobs.gpu_milli > 0).any()
    planned = whole and mean_queue < DEEP_QUEUE and len(past.jobs) <= PLANNED
    planned = planned and not start.live
    return [
        replace(start, order=order, backfill=backfill)
        for order in ORDERS
        if order is not Order.PRIORITY or varied
        for backfill in BACKFILLS
        if backfill is not Backfill.CONSERVATIVE or (planned and order is Order.FIFO)
    ]


def fit(past: Past, policy: Policy) -> Fitted | None:
    """How near one policy comes, None where the simulator does not take it with these jobs; runs in
    whatever process it is sent to."""
    try:
        found = replayed(past, policy)
    except PolicyError:
        return None
    return Fitted(policy, found.score, grade_of(found, marks_of(found)))
