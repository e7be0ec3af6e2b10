"""Passes of moves in the parts' driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler_advisor.engine.parts.ask import lift
from scheduler_advisor.engine.parts.floor import Floor, Piece, take_whole
from scheduler_advisor.engine.parts.moves import House, Move, Tenant, plan_moves, scattered_share
from scheduler_advisor.engine.parts.settings import Defrag

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.fluid import Fluid

HOUR_S = 3600
DAY_HOURS = 24
NEVER = 1 << 62


def next_moves(fluid: Fluid) -> int:
    """When the next pass by the clock is due: hours of a day that begins at second 0."""
    part = fluid.policy.defrag
    if part.kind is not Defrag.HOURS or not fluid.running:
        return NEVER
    hour = fluid.now // HOUR_S
    ahead = [
        (hour + step) * HOUR_S
        for step in range(1, DAY_HOURS + 1)
        if (hour + step) % DAY_HOURS in part.hours_of_day()
    ]
    return min(ahead, default=NEVER)


def move_together(fluid: Fluid) -> None:
    """One pass of moves, if one is due; who waits may start where a node came free."""
    part = fluid.policy.defrag
    if (
        part.kind in (Defrag.NONE, Defrag.PENDING)
        or not fluid.running
        or fluid.moved_at == fluid.now
    ):
        return
    if part.kind is Defrag.HOURS:
        hour = fluid.now // HOUR_S % DAY_HOURS
        if fluid.now % HOUR_S or hour not in part.hours_of_day():
            return
    elif fluid.now - fluid.moved_at < part.every_s:
        return
    houses = houses_of(fluid)
    if part.kind is Defrag.THRESHOLD and scattered_share(houses) <= part.threshold:
        return
    fluid.moved_at = fluid.now
    fluid.move_passes += 1
    moves = plan_moves(houses, part.moves, part.horizon_s, part.min_gain)
    for move in moves:
        runner = fluid.running[move.job]
        pieces = moved_pieces(fluid.floor, runner.pieces, move)
        rest = fluid.rest_s([piece for piece in pieces if piece not in runner.pieces])
        fluid.replace(move.job, runner.tasks, pieces, move_cost_s(fluid, move.job) + rest)
        fluid.migrations[move.job] += 1
    if moves and fluid.queue:
        fluid.one_pass()


def moved_pieces(floor: Floor, pieces: Sequence[Piece], move: Move) -> list[Piece]:
    """The job's tasks, those of one node on another; the floor is changed."""
    lift(floor, [piece for piece in pieces if piece.node == move.source], move.job)
    return [
        take_whole(floor, move.target, move.job, len(old.gpus), old.cpu, old.mem)
        if old.node == move.source
        else old
        for old in pieces
    ]


def move_cost_s(fluid: Fluid, job: int) -> int:
    """A checkpoint and a restore."""
    return int(fluid.jobs.checkpoint_cost[job] + fluid.jobs.restore_cost[job])


def houses_of(fluid: Fluid) -> list[House]:
    """The nodes that are up, as a pass of moves sees them."""
    tenants: dict[int, list[Tenant]] = {}
    for job, runner in sorted(fluid.running.items()):
        nodes = {piece.node for piece in runner.pieces}
        whole = runner.ask.gpus > 0 or runner.ask.rest > 0
        may = bool(fluid.jobs.preemptible[job]) or fluid.jobs.checkpoint_every[job] > 0
        may = may and not fluid.told_to_leave(job)
        # A gang that must stay within a domain, or one task to a node, moves as one or not at all.
        free_to_go = len(nodes) == 1 or not (runner.ask.need or runner.ask.distinct)
        believed = max(runner.end, runner.started + int(fluid.jobs.limit[job]))
        free_to_go = free_to_go and not runner.ask.exclusive
        barred = fluid.windows.kept_from(job, fluid.now, believed)
        for node in sorted(nodes):
            here = [piece for piece in runner.pieces if piece.node == node]
            tenants.setdefault(node, []).append(
                Tenant(
                    job,
                    sum(len(piece.gpus) for piece in here),
                    sum(piece.cpu for piece in here),
                    sum(piece.mem for piece in here),
                    move_cost_s(fluid, job),
                    believed - fluid.now,
                    bool(may and whole and free_to_go and runner.until is None),
                    sum(len(piece.gpus) for piece in runner.pieces),
                    barred,
                )
            )
    return [
        House(
            node,
            len(machine.gpus),
            machine.whole,
            machine.cpu,
            machine.mem,
            fluid.kinds[node],
            tuple(tenants.get(node, ())),
        )
        for node, machine in enumerate(fluid.floor)
        if machine.down == 0
    ]
