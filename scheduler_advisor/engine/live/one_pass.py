"""One pass over one set of competing jobs: whose turn it is, who starts, who is stopped for it."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.cast import cast_shadow, release_at_shadow
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.live.evict import set_going
from scheduler_advisor.engine.live.lines import take_out
from scheduler_advisor.engine.live.plan import plan_job
from scheduler_advisor.engine.live.queues import admits, asks
from scheduler_advisor.engine.live.tuples import (
    BELIEVED,
    BLOCKED,
    EPOCH,
    EXAMINED_SUM,
    FREE,
    LONG_EPOCH,
    NOW,
    PASS,
    PINNED,
    PLANS,
    Q_OPEN,
    Q_PARENT,
    Q_SEEN,
    SHADOWS_SUM,
    STAMP,
    WAITING,
    Live,
    Terms,
    Tree,
)
from scheduler_advisor.engine.live.victims import claim, make_room, stop_at_once
from scheduler_advisor.engine.parts.network import place_in_network
from scheduler_advisor.engine.place import take_plain, tasks_of
from scheduler_advisor.engine.placing import may_fit
from scheduler_advisor.engine.reserved import reserved_away
from scheduler_advisor.engine.shadow import SH_AT, SH_FREE
from scheduler_advisor.engine.steps import milli_held, wall_of
from scheduler_advisor.engine.waiting import held_back
from scheduler_advisor.engine.world import (
    CPU,
    DOWN,
    GPU,
    S_CPU,
    S_GPU,
    S_PLAIN,
    S_REST_CPU,
    S_REST_GPU,
    S_SIZE,
    S_TASKS,
    TASKS,
    Rules,
    World,
)

NO_BACKFILL, GREEDY, EASY = 0, 1, 2


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
def goes_on(rules: Rules, terms: Terms, now: int, examined: int) -> bool:
    """May anything behind a blocked job be examined?"""
    if rules.backfill == NO_BACKFILL and terms.strict == 0:
        return False
    if terms.interval != 0 and now % terms.interval != 0:
        return False
    return rules.depth == 0 or examined < rules.depth


@leaf
def taken_off(w: World, live: Live, z: Any, line: int, job: int) -> None:
    """The job, just examined, no longer waits."""
    live.lines.cursor[line] = take_out(live.lines, line, live.lines.cursor[line] - 1)
    z[WAITING] -= 1
    asks(live.tree, live.tree.leaf[job], -w.shapes[w.rows.shape[job], S_SIZE])


@kernel
def resumed(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int) -> bool:
    """A suspended job goes on where it is, if its GPUs and CPUs are free."""
    shape = w.rows.shape[job]
    size = w.shapes[shape, S_SIZE]
    if z[FREE] - size < rules.headroom_milli:
        return False
    if not admits(live.tree, terms, live.tree.leaf[job], size, z[FREE]):
        return False
    now = z[NOW]
    own = w.held.named[job] if rules.reservations != 0 else -1
    wanted = tasks_of(w.shapes, shape)
    task = 0
    while task < wanted:
        node = w.book.node[w.rows.place[job] + task]
        rest = task == w.shapes[shape, S_TASKS]
        gpu = w.shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = w.shapes[shape, S_REST_CPU if rest else S_CPU]
        if (
            w.nodes.table[node, DOWN] != 0
            or gpu > w.nodes.table[node, GPU]
            or cpu > w.nodes.table[node, CPU]
        ):
            break
        if rules.reservations != 0 and reserved_away(
            w.held, node, own, now, now + w.rows.limit[job]
        ):
            break
        take_plain(w.nodes, w.buckets, rules.most, node, gpu, cpu, 0)
        w.nodes.table[node, TASKS] += 1 - w.shapes[shape, S_PLAIN]
        task += 1
    if task == wanted:
        return True
    for one in range(task):
        node = w.book.node[w.rows.place[job] + one]
        rest = one == w.shapes[shape, S_TASKS]
        gpu = w.shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = w.shapes[shape, S_REST_CPU if rest else S_CPU]
        take_plain(w.nodes, w.buckets, rules.most, node, -gpu, -cpu, 0)
        w.nodes.table[node, TASKS] -= 1 - w.shapes[shape, S_PLAIN]
    return False


@kernel
def makes_room(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int, job: int, head: int
) -> bool:
    """Stops others for the job if it may, and starts it now or when they have left."""
    seen = live.tree.row[live.tree.leaf[job], Q_SEEN] == z[PASS]
    by_rank = 0
    if terms.by_rank != 0:
        by_rank = 1 - seen if terms.own_queue != 0 else (1 if head < 0 else 0)
    if terms.has_levels == 0 and live.fate.standing[job] <= terms.lowest:
        by_rank = 0
    reclaim = 1 if terms.reclaim != 0 and not seen else 0
    if by_rank == 0 and reclaim == 0:
        return False
    victims = make_room(w, live, rules, terms, z, job, by_rank, reclaim)
    if victims == 0:
        return False
    taken_off(w, live, z, line, job)
    if terms.timed != 0:
        claim(w, live, rules, terms, z, job, victims)
        return True
    stop_at_once(w, live, rules, terms, z, victims)
    z[STAMP] += 1
    place_in_network(w, live.net, rules, terms.by_network, job, z[NOW], z[STAMP], 0)
    set_going(w, live, rules, terms, z, job, z[NOW], 0)
    return True


@kernel
def casts(w: World, live: Live, rules: Rules, z: Any, head: int) -> None:
    """The promise to the head as things stand."""
    z[BELIEVED] = cast_shadow(
        w.nodes, w.shadow, w.shapes, w.classes, w.held, w.rows, w.runs, w.book, rules,
        live.believed, z[BELIEVED], w.scratch, head, z[FREE],
    )  # fmt: skip
    z[SHADOWS_SUM] += 1
    z[LONG_EPOCH] += 1


@leaf
def promised(w: World, job: int, now: int) -> bool:
    """Does the job end by the head's shadow, as far as anyone believes?"""
    until = now + max(wall_of(w.rows, w.runs, 1, job), w.rows.limit[job])
    return until <= w.shadow.number[SH_AT]


@leaf
def ended_behind(w: World, rules: Rules, job: int, guard: int) -> None:
    """A job started beside the promise to the head: what it takes is noted in the shadow."""
    if guard == 0:
        release_at_shadow(w.nodes, w.shadow, w.shapes, w.rows, w.book, rules.shares, job, 1)
    else:
        w.shadow.number[SH_FREE] -= milli_held(
            w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 1
        )


@kernel
def part_pass(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, first_line: int, lines_each: int
) -> None:
    """Examines waiting jobs in order, until nothing more may start."""
    now = z[NOW]
    lines = live.lines
    tree = live.tree
    easy = rules.backfill == EASY and terms.whole_nodes == 0
    selective = rules.limits != 0 or rules.reservations != 0
    z[PASS] += 1
    open_lines(live, terms, first_line, lines_each)
    head = -1
    cast = False
    examined = 0
    while True:
        line = next_line(live, terms, first_line)
        if line < 0:
            break
        if head >= 0:
            if not goes_on(rules, terms, now, examined):
                break
            examined += 1
        job = lines.jobs[lines.cursor[line]]
        lines.cursor[line] += 1
        shape = w.rows.shape[job]
        size = w.shapes[shape, S_SIZE]
        leaf_queue = tree.leaf[job]
        z[EXAMINED_SUM] += 1
        skip = (
            (terms.strict != 0 and tree.row[leaf_queue, Q_SEEN] == z[PASS])
            or (head >= 0 and rules.max_limit != 0 and w.rows.limit[job] > rules.max_limit)
            or (
                selective
                and held_back(
                    w.held, w.limits, w.rows, size, rules.reservations, rules.limits, job, now
                )
            )
        )
        if not skip and live.fate.kind[job] == PINNED:
            skip = True
            behind = head >= 0 and easy
            if behind and not cast:
                casts(w, live, rules, z, head)
                cast = True
            if (not behind or promised(w, job, now)) and resumed(w, live, rules, terms, z, job):
                taken_off(w, live, z, line, job)
                set_going(w, live, rules, terms, z, job, now, 0)
                if behind:
                    ended_behind(w, rules, job, 0)
        if not skip:
            admitted = admits(tree, terms, leaf_queue, size, z[FREE])
            placed = 0
            guard = 0
            tried = admitted and z[FREE] - size >= rules.headroom_milli
            if tried and w.failed[shape, 0] == z[EPOCH]:
                tried = False
            if tried and head >= 0 and easy:
                if not cast:
                    if may_fit(w.buckets, w.classes, w.shapes, rules.most, shape):
                        casts(w, live, rules, z, head)
                        cast = True
                    else:
                        w.failed[shape, 0] = z[EPOCH]
                        tried = False
                if tried and not promised(w, job, now):
                    guard = 1
                    if (
                        w.failed[shape, 1] == z[LONG_EPOCH]
                        or w.shadow.number[SH_FREE] - size < rules.headroom_milli
                    ):
                        tried = False
            if tried:
                z[STAMP] += 1
                placed = place_in_network(
                    w, live.net, rules, terms.by_network, job, now, z[STAMP], guard
                )
                if placed == 0 and rules.reservations == 0:
                    if guard != 0:
                        w.failed[shape, 1] = z[LONG_EPOCH]
                    else:
                        w.failed[shape, 0] = z[EPOCH]
            if placed == 1:
                taken_off(w, live, z, line, job)
                set_going(w, live, rules, terms, z, job, now, 0)
                if head >= 0 and easy:
                    ended_behind(w, rules, job, guard)
            elif terms.preempts != 0 and makes_room(w, live, rules, terms, z, line, job, head):
                cast = False
            else:
                tree.row[leaf_queue, Q_SEEN] = z[PASS]
                if admitted:
                    z[BLOCKED] = 1
                    if terms.whole_nodes != 0 and z[PLANS] < terms.most_plans:
                        plan_job(w, live, rules, terms, z, job)
                    if head < 0:
                        head = job
                        cast = False
        if terms.by_queue != 0 and lines.cursor[line] >= lines.last[line]:
            change_open(tree, line - first_line, -1)
