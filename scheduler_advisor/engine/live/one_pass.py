"""One pass over one set of competing jobs: whose turn it is, and when nothing more may start."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import leaf
from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.live.hope import nobody_can_start
from scheduler_advisor.engine.live.passed_over import may_pass_over, pass_over
from scheduler_advisor.engine.live.start import NO_BACKFILL
from scheduler_advisor.engine.live.tuples import (
    CAST,
    EXAMINED,
    HEAD,
    HOPE,
    MOMENT,
    NONE,
    NOW,
    PASS,
    Q_OPEN,
    Q_PARENT,
    Q_SEEN,
    SEEN_QUEUES,
    WAITING_QUEUES,
    Live,
    Terms,
    Tree,
)
from scheduler_advisor.engine.live.turn import examine
from scheduler_advisor.engine.world import Rules, World


@leaf
def open_lines(live: Live, terms: Terms, first_line: int, lines_each: int) -> None:
    """Every line is read from its front; queues know whether something waits below them."""
    lines = live.lines
    row = live.tree.row
    if terms.by_queue != 0:
        for queue in range(len(row)):
            row[queue, Q_OPEN] = 0
    for at in range(lines_each):
        line = first_line + at
        lines.cursor[line] = lines.first[line]
        if terms.by_queue != 0 and lines.first[line] < lines.last[line]:
            change_open(live.tree, at, 1)


@leaf
def change_open(tree: Tree, queue: int, by: int) -> None:
    while queue > 0:
        tree.row[queue, Q_OPEN] += by
        queue = tree.row[queue, Q_PARENT]
    tree.row[0, Q_OPEN] += by


@leaf
def next_line(live: Live, terms: Terms, first_line: int) -> int:
    """The line whose turn it is: down the tree, the least served queue first; -1: none is left."""
    tree = live.tree
    if terms.by_queue == 0:
        at_end = live.lines.cursor[first_line] >= live.lines.last[first_line]
        return -1 if at_end else first_line
    if tree.row[0, Q_OPEN] == 0:
        return -1
    queue = 0
    while tree.child_start[queue] < tree.child_start[queue + 1]:
        best = -1
        for at in range(tree.child_start[queue], tree.child_start[queue + 1]):
            child = tree.children[at]
            if tree.row[child, Q_OPEN] > 0 and (best < 0 or tree.key[child] < tree.key[best]):
                best = child
        queue = best
    return first_line + queue


@leaf
def goes_on(rules: Rules, terms: Terms, z: Any) -> bool:
    """May anything behind a blocked job be examined?"""
    if rules.backfill == NO_BACKFILL and terms.strict == 0:
        return False
    if terms.interval != 0 and z[NOW] % terms.interval != 0:
        return False
    return rules.depth == 0 or z[EXAMINED] < rules.depth


@leaf
def nothing_follows(rules: Rules, terms: Terms, z: Any) -> bool:
    """After a blocked job, when no shape that waits can start: can nobody make room either?"""
    if terms.reclaim == 0 and (terms.by_rank == 0 or terms.own_queue == 0):
        return True  # only the head could have
    return rules.components == 1 and z[SEEN_QUEUES] == z[WAITING_QUEUES]


@leaf
def skip_line(live: Live, terms: Terms, z: Any, line: int, job: int) -> None:
    """Nobody else of a blocked queue can start in this pass."""
    lines = live.lines
    if terms.by_queue != 0 and live.tree.row[live.tree.leaf[job], Q_SEEN] == z[PASS]:
        z[EXAMINED] += lines.last[line] - lines.cursor[line]
        lines.cursor[line] = lines.last[line]


@dissolved
def part_pass(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, part: int, lines_each: int
) -> None:
    """Examines waiting jobs in order, until nothing more may start. Whose turn it is changes only
    when somebody starts, or a queue has no more jobs."""
    first_line = part * lines_each
    lines = live.lines
    z[PASS] += 1
    z[MOMENT] += 1
    z[HEAD] = NONE
    z[CAST] = 0
    z[EXAMINED] = 0
    z[SEEN_QUEUES] = 0
    z[HOPE] = live.hope.start[part]
    open_lines(live, terms, first_line, lines_each)
    line = NONE
    passes_over = may_pass_over(rules, terms)
    while True:
        if line == NONE:
            line = next_line(live, terms, first_line)
            if line < 0:
                break
        if z[HEAD] != NONE:
            if not goes_on(rules, terms, z):
                break
            if passes_over:
                pass_over(w, live, rules, terms, z, line)
                if lines.cursor[line] >= lines.last[line]:
                    if terms.by_queue != 0:
                        change_open(live.tree, line - first_line, -1)
                    line = NONE
                    continue
                if rules.depth != 0 and z[EXAMINED] >= rules.depth:
                    break
            z[EXAMINED] += 1
        job = lines.jobs[lines.cursor[line]]
        lines.cursor[line] += 1
        started = examine(w, live, rules, terms, z, line, job)
        if started:
            z[MOMENT] += 1
        blocked = not started and z[HEAD] != NONE and terms.skips != 0
        if blocked and nobody_can_start(w, live, z, part):
            if nothing_follows(rules, terms, z):
                break
            skip_line(live, terms, z, line, job)
        at_end = lines.cursor[line] >= lines.last[line]
        if at_end and terms.by_queue != 0:
            change_open(live.tree, line - first_line, -1)
        if started and terms.preempts != 0:
            z[HOPE] = live.hope.start[part]  # room may have been made
        if started or at_end:
            line = NONE
