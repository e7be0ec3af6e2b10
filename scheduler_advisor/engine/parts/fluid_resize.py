"""Elastic jobs in the parts' driver: starting smaller, giving way, growing into idle GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler_advisor.engine.parts.ask import Ask, lift, place
from scheduler_advisor.engine.parts.floor import (
    Marks,
    Piece,
    marks_of,
    marks_under,
    release,
    retake,
    unmark,
)
from scheduler_advisor.engine.parts.resize import Span, next_to_grow, next_to_shrink, pays

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.fluid import Fluid


def least_tasks(fluid: Fluid, ask: Ask) -> int:
    """The fewest tasks that the job runs with."""
    least = int(fluid.jobs.min_tasks[ask.job])
    return min(least, ask.tasks) if least and not ask.milli and not ask.rest else ask.tasks


def most_tasks(fluid: Fluid, ask: Ask) -> int:
    """The most tasks that the job runs with."""
    most = int(fluid.jobs.max_tasks[ask.job])
    return max(most, ask.tasks) if most and not ask.milli and not ask.rest else ask.tasks


def start_smaller(fluid: Fluid, ask: Ask, head: bool) -> tuple[int, list[Piece]] | None:
    """The most tasks that fit, at least the job's minimum; for the head of the queue, running
    elastic jobs give tasks back until the minimum fits."""
    least = least_tasks(fluid, ask)
    for tasks in range(ask.tasks - 1, least - 1, -1):
        pieces = fluid.find(ask, tasks)
        if pieces is not None:
            return tasks, pieces
    return give_way(fluid, ask, least) if head else None


def give_way(fluid: Fluid, ask: Ask, tasks: int) -> tuple[int, list[Piece]] | None:
    """Takes tasks off running jobs, one by one, until so many of the head's fit; or changes
    nothing."""
    spans = _spans(fluid)
    given: dict[int, list[Piece]] = {}
    while (victim := next_to_shrink(spans)) is not None:
        span = spans[victim]
        spans[victim] = replace(span, tasks=span.tasks - 1)
        kept = len(fluid.running[victim].pieces) - len(given.get(victim, []))
        piece = fluid.running[victim].pieces[kept - 1]
        release(fluid.floor, piece, victim)
        given.setdefault(victim, []).append(piece)
        pieces = fluid.find(ask, tasks)
        if pieces is not None:
            for job, gone in given.items():
                runner = fluid.running[job]
                _resized(fluid, job, runner.pieces[: len(runner.pieces) - len(gone)])
            return tasks, pieces
    for job, gone in given.items():
        for piece in gone:
            retake(fluid.floor, piece, job)
    return None


def grow(fluid: Fluid) -> None:
    """While nobody waits, idle GPUs go to running elastic jobs that end sooner for it."""
    if fluid.queue:
        return
    spans = {job: span for job, span in _spans(fluid).items() if span.tasks < span.most}
    added: dict[int, list[Piece]] = {}
    marks: dict[int, Marks] = {}
    while able := next_to_grow(spans):
        for job in able:
            one = _one_more(fluid, job, added.get(job, []))
            waiting = sum(len(piece.gpus) for more in added.values() for piece in more)
            pieces = None
            if fluid.may_grow(job, one.gpus, waiting):
                before = marks_of(fluid.floor)
                pieces = place(fluid.floor, one, 1, fluid.policy, fluid.tree)
            if pieces is None:
                del spans[job]
                continue
            added.setdefault(job, []).extend(pieces)
            marks.setdefault(job, []).extend(marks_under(fluid.floor, before, pieces))
            spans[job] = replace(spans[job], tasks=spans[job].tasks + 1)
            break
    for job, more in added.items():
        if not _grown(fluid, job, more):
            lift(fluid.floor, more, job)
            unmark(marks[job])


def _one_more(fluid: Fluid, job: int, added: list[Piece]) -> Ask:
    """One more task of the running job, where it may lie beside the others."""
    runner, tree = fluid.running[job], fluid.tree
    ask = runner.ask
    used = {piece.node for piece in (*runner.pieces, *added)}
    nodes = [node for node in ask.nodes if not (ask.distinct and node in used)]
    of = {"leaf": tree.leaf, "spine": tree.spine, "block": tree.rack}.get(ask.need)
    if of is not None:
        inside = {int(of[node]) for node in used}
        nodes = [node for node in nodes if int(of[node]) in inside]
    elif ask.need:
        nodes = [node for node in nodes if node in used]
    until = max(runner.end, runner.started + int(fluid.jobs.limit[job]))
    closed = fluid.windows.kept_from(job, fluid.now, until)
    return replace(ask, tasks=1, rest=0, nodes=tuple(nodes), closed=closed)


def _grown(fluid: Fluid, job: int, more: list[Piece]) -> bool:
    runner = fluid.running[job]
    runner.settle(fluid.now)
    old, tasks, pieces = runner.speed, runner.tasks, runner.pieces
    runner.tasks, runner.pieces = tasks + len(more), [*pieces, *more]
    new = fluid.speeds.of(runner)
    runner.tasks, runner.pieces = tasks, pieces
    rest = fluid.rest_s(more)
    pause = fluid.policy.elastic.resize_s + rest
    if runner.begin_at > fluid.now or not pays(runner.left, old, new, pause):
        return False
    _resized(fluid, job, [*pieces, *more], rest)
    return True


def _resized(fluid: Fluid, job: int, pieces: list[Piece], rest_s: int = 0) -> None:
    fluid.replace(job, len(pieces), pieces, fluid.policy.elastic.resize_s + rest_s)
    fluid.running[job].resized_at = fluid.now
    fluid.resizes[job] += 1


def _spans(fluid: Fluid) -> dict[int, Span]:
    """Running elastic jobs that stay, and were not resized lately."""
    every = fluid.policy.elastic.every_s
    spans = {}
    for job, runner in sorted(fluid.running.items()):
        least, most = least_tasks(fluid, runner.ask), most_tasks(fluid, runner.ask)
        due = fluid.now - runner.resized_at >= every and runner.until is None
        due = due and not fluid.told_to_leave(job)
        if due and least < most:
            spans[job] = Span(runner.tasks, least, most)
    return spans
