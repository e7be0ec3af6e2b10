"""Suspended jobs go on where they are."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import kernel
from scheduler_advisor.engine.live.going import set_going
from scheduler_advisor.engine.live.queues import admits
from scheduler_advisor.engine.live.start import (
    behind_a_head,
    casts,
    ended_behind,
    promised,
    taken_off,
)
from scheduler_advisor.engine.live.tuples import (
    CAST,
    FREE,
    HEAD,
    NOW,
    Live,
    Terms,
)
from scheduler_advisor.engine.place import take_plain, tasks_of
from scheduler_advisor.engine.reserved import reserved_away
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
def goes_on_in_place(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int, job: int
) -> bool:
    """A suspended job's turn: it goes on if it delays nobody."""
    behind = behind_a_head(rules, terms, z)
    if behind and z[CAST] == 0:
        casts(w, live, rules, z, z[HEAD])
    if behind and not promised(w, job, z[NOW]):
        return False
    if not resumed(w, live, rules, terms, z, job):
        return False
    taken_off(w, live, z, line, job)
    set_going(w, live, rules, terms, z, job, z[NOW], 0)
    if behind:
        ended_behind(w, rules, job, 0)
    return True
