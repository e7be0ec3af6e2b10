"""EASY's promise to the head of the queue, kept per node.

The shadow is the first instant at which the head fits if running jobs end as believed. A job that
outlasts it may start only on nodes where the head, at that instant, still finds room for all its
tasks. What counts is how many of the head's tasks each node has room for: their sum less what the
head needs is the slack that later jobs may use up.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.reserved import reserved_away
from scheduler_advisor.engine.world import (
    ALL_GPU,
    CPU,
    DISTINCT,
    DOWN,
    ENDS_CPU,
    ENDS_GPU,
    ENDS_MEM,
    ENDS_TASKS,
    EXCLUSIVE,
    GPU,
    GROUP,
    MEM,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_MILLI,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    STAMP,
    TASKS,
    WHOLE,
    Classes,
    Held,
    Nodes,
    Rules,
    Shadow,
)

# Entries of Shadow.number
SH_AT, SH_SLACK, SH_REST_SLACK, SH_STAMP, SH_SHAPE, SH_FREE, SH_HEAD, SH_LIMIT = range(8)
SHADOW_NUMBERS = 8
NEVER = 1 << 38  # a shadow that no running job's end brings about
MANY = 1 << 16  # tasks that ask for nothing


@leaf
def times(room: int, need: int, most: int) -> int:
    """How often `need` goes into `room`, at most `most` times."""
    if need == 0:
        return most
    if room < need:
        return 0
    if room < 2 * need:
        return min(1, most)
    return min(room // need, most)


@leaf
def tasks_in(gpu: int, cpu: int, mem: int, tasks: int, g: int, c: int, m: int, flags: int) -> int:
    """How many tasks of (g, c, m) fit side by side into what is free."""
    if flags & EXCLUSIVE:
        return 1 if tasks == 0 and gpu >= g and cpu >= c and mem >= m else 0
    count = times(mem, m, times(cpu, c, times(gpu, g, MANY)))
    return min(count, 1) if flags & DISTINCT else count


@kernel
def shared_counts(
    nodes: Nodes, shadow: Shadow, node: int, milli: int, gone_gpu: int, gone_milli: int, gone: int
) -> tuple[int, int]:
    """Whole GPUs and shares of `milli` on a node at the shadow, after a share of `gone_milli` on
    `gone_gpu`, or the lowest `gone` GPUs that are whole now (-1: all), are taken away."""
    stamped = nodes.table[node, STAMP] == shadow.number[SH_STAMP]
    whole = 0
    shares = 0
    for gpu in range(nodes.table[node, ALL_GPU]):
        left = nodes.share[node, gpu]
        whole_now = left == WHOLE
        if stamped:
            left += shadow.share[node, gpu]
        if gone < 0:
            left = 0
        elif gone_milli != 0 and gpu == gone_gpu:
            left -= gone_milli
        elif gone_milli == 0 and whole_now and gone > 0:
            left = 0
            gone -= 1
        if left == WHOLE:
            whole += 1
        if milli != 0:
            shares += left // milli
    return whole, shares


@leaf
def room(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    shares: int,
    node: int,
    rest: int,
    gpu: int,
    cpu: int,
    mem: int,
    tasks: int,
    share_gpu: int,
    milli: int,
) -> int:
    """Tasks of the head (its last one if `rest`) that the node has room for at the shadow, after
    (gpu, cpu, mem, tasks) more are taken from it; gpu -1: all of them."""
    shape = shadow.number[SH_SHAPE]
    g = shapes[shape, S_REST_GPU if rest else S_GPU]
    c = shapes[shape, S_REST_CPU if rest else S_CPU]
    m = shapes[shape, S_REST_MEM if rest else S_MEM]
    flags = shapes[shape, S_FLAGS]
    free_gpu = nodes.table[node, GPU] - (nodes.table[node, GPU] if gpu < 0 else gpu)
    free_cpu = nodes.table[node, CPU] - cpu
    free_mem = nodes.table[node, MEM] - mem
    held = nodes.table[node, TASKS] + tasks
    if nodes.table[node, STAMP] == shadow.number[SH_STAMP]:
        free_gpu += nodes.table[node, ENDS_GPU]
        free_cpu += nodes.table[node, ENDS_CPU]
        free_mem += nodes.table[node, ENDS_MEM]
        held += nodes.table[node, ENDS_TASKS]
    if shares != 0:
        asked = 0 if rest else shapes[shape, S_MILLI]
        whole, parts = shared_counts(nodes, shadow, node, asked, share_gpu, milli, gpu)
        free_gpu = whole
        if asked != 0:
            free_gpu = parts
            g = 1
    return tasks_in(free_gpu, free_cpu, free_mem, held, g, c, m, flags)


@leaf
def counts(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    reservations: int,
    node: int,
    at: int,
) -> bool:
    """Is the node one that the head could use at the shadow?"""
    cls = shapes[shadow.number[SH_SHAPE], S_CLASS]
    if classes.member[cls, nodes.table[node, GROUP]] == 0 or nodes.table[node, DOWN] != 0:
        return False
    if reservations == 0:
        return True
    until = at + shadow.number[SH_LIMIT]
    return not reserved_away(held, node, held.named[shadow.number[SH_HEAD]], at, until)


@leaf
def cost_of(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    node: int,
    gpu: int,
    cpu: int,
    mem: int,
    milli: int,
    flags: int,
    on_gpu: int,
) -> tuple[int, int]:
    """How much less room the head would have at the shadow with one such task on the node; a
    share goes to `on_gpu`, or if that is -1 to the fullest GPU that has room."""
    at = shadow.number[SH_AT]
    if not counts(nodes, shadow, shapes, classes, held, rules.reservations, node, at):
        return 0, 0
    share_gpu = on_gpu
    if flags & EXCLUSIVE:
        gpu = -1
        cpu = nodes.table[node, CPU]
        mem = nodes.table[node, MEM]
        milli = 0
    if milli != 0 and on_gpu < 0:
        best = WHOLE + 1
        for one in range(nodes.table[node, ALL_GPU]):
            left = nodes.share[node, one]
            if milli <= left < best:
                best = left
                share_gpu = one
    main = 0
    rest = 0
    has_rest = shapes[shadow.number[SH_SHAPE], S_REST_GPU] != 0
    for which in range(2 if has_rest else 1):
        before = room(nodes, shadow, shapes, rules.shares, node, which, 0, 0, 0, 0, -1, 0)
        after = room(
            nodes, shadow, shapes, rules.shares, node, which, gpu, cpu, mem, 1, share_gpu, milli
        )
        if which == 0:
            main = before - after
        else:
            rest = before - after
    return main, rest
