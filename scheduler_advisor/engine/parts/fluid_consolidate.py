"""Moving running jobs so that one that waits fits: consolidation, as KAI does it.

A job that the free GPUs would hold, were they in one place, may have running jobs moved. They are
lifted off in thought, the smallest first, until it fits; then, last one first, each goes back if it
fits all the same; then all of them must find another place, the largest first. If they do not, or
are more than `defrag.moves`, nothing happens. A move stops the job and starts it elsewhere at the
same instant: work since its last checkpoint is lost and the restore is paid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.engine.parts.ask import lift
from scheduler_advisor.engine.parts.floor import Piece, retake
from scheduler_advisor.engine.parts.settings import Defrag

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.fluid import Fluid


def consolidate(fluid: Fluid, job: int) -> bool:
    """Starts the job where others made room by moving; False: nothing has changed."""
    if fluid.policy.defrag.kind is not Defrag.PENDING:
        return False
    if not fluid.headroom_left(fluid.queues.size[job]):
        return False
    moved = _least(fluid, job)
    if not moved:
        return False
    ask = fluid.asks[job]
    pieces = fluid.find(ask, ask.tasks)
    assert pieces is not None  # it fitted a moment ago
    homes = _homes(fluid, moved)
    for other, found in (homes or {}).items():
        lift(fluid.floor, found, other)
    lift(fluid.floor, pieces, job)
    for other in moved:
        fluid.put_back(other)
    if homes is None:
        return False
    sizes = {other: fluid.running[other].tasks for other in moved}
    for other in moved:
        fluid.stop(other)
        fluid.migrations[other] += 1
    for other, found in ((job, pieces), *homes.items()):
        for piece in found:
            retake(fluid.floor, piece, other)
        fluid.begin(fluid.asks[other], sizes.get(other, ask.tasks), found)
    return True


def _least(fluid: Fluid, job: int) -> list[int]:
    """Whom to move, lifted off the floor in thought; none: nobody is."""
    lifted: list[int] = []
    fits = False
    for other in _movable(fluid, job):
        fluid.lift_off(other)
        lifted.append(other)
        fits = fluid.would_fit(job) is not None
        if fits:
            break
    for other in list(reversed(lifted)) if fits else ():
        fluid.put_back(other)
        if fluid.would_fit(job) is not None:
            lifted.remove(other)
        else:
            fluid.lift_off(other)
    if fits and len(lifted) <= fluid.policy.defrag.moves:
        return lifted
    for other in lifted:
        fluid.put_back(other)
    return []


def _movable(fluid: Fluid, job: int) -> list[int]:
    """Running jobs that may be moved, those that hold least first, then the youngest."""
    every, least = fluid.policy.defrag.every_s, fluid.policy.eviction.min_run_s
    found = [
        other
        for other, runner in fluid.running.items()
        if fluid.stops.may_stop[other]
        and other not in fluid.stops.claim_of
        and runner.until is None
        and runner.ask.milli == 0
        and fluid.component[other] == fluid.component[job]
        and fluid.now - runner.started >= max(least, every)
    ]
    return sorted(found, key=lambda one: (fluid.held_by(one), -fluid.running[one].started, -one))


def _homes(fluid: Fluid, moved: list[int]) -> dict[int, list[Piece]] | None:
    """Another place for each of them, taken on the floor; None, and nothing taken: not for all."""
    homes: dict[int, list[Piece]] = {}
    for other in sorted(moved, key=lambda one: (-fluid.held_by(one), one)):
        runner = fluid.running[other]
        pieces = fluid.find(runner.ask, runner.tasks)
        if pieces is None:
            for placed, found in homes.items():
                lift(fluid.floor, found, placed)
            return None
        homes[other] = pieces
    return homes
