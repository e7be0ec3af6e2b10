"""Which node a task goes to: the placement rules, over buckets of nodes by free GPUs."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_filled, next_node
from scheduler_advisor.engine.chance import draw
from scheduler_advisor.engine.jit import leaf
from scheduler_advisor.engine.reserved import reserved_away
from scheduler_advisor.engine.shadow import SH_REST_SLACK, SH_SLACK, cost_of
from scheduler_advisor.engine.world import (
    ALL_GPU,
    BEST_FIT,
    CONSOLIDATE,
    CPU,
    DISTINCT,
    DOWN,
    EXCLUSIVE,
    FIRST_FIT,
    GPU,
    GROUP,
    MARK,
    MEM,
    RANDOM,
    TASKS,
    WHOLE,
    WORST_FIT,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rules,
    Shadow,
)


@leaf
def walk_plain(
    nodes: Nodes,
    buckets: Buckets,
    classes: Classes,
    most: int,
    rule: int,
    cls: int,
    gpu: int,
    cpu: int,
    mem: int,
) -> int:
    """The node that the rule prefers for a task that asks for whole GPUs, CPU and memory, or -1:
    fewest free GPUs first (best fit), most first (worst fit), or the lowest node (first fit)."""
    best = -1
    best_free = 0
    for at in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[at]
        free = most if rule == WORST_FIT else next_filled(buckets, group, gpu)
        while free >= gpu:
            bucket = group * (most + 1) + free
            node = next_node(buckets, bucket, 0)
            while node >= 0 and (cpu > nodes.table[node, CPU] or mem > nodes.table[node, MEM]):
                node = next_node(buckets, bucket, node + 1)
            if node >= 0:
                if better(rule, node, free, best, best_free):
                    best = node
                    best_free = free
                if rule != FIRST_FIT:
                    break
            free = free - 1 if rule == WORST_FIT else next_filled(buckets, group, free + 1)
    return best


@leaf
def better(rule: int, node: int, free: int, best: int, best_free: int) -> bool:
    if best < 0:
        return True
    if rule == FIRST_FIT or free == best_free:
        return node < best
    return free < best_free if rule == BEST_FIT else free > best_free


@leaf
def shared_room(nodes: Nodes, node: int, milli: int, opened: int) -> bool:
    """Has a GPU of the node room for a share of `milli`; `opened`: one that is shared already?"""
    found = False
    for gpu in range(nodes.table[node, ALL_GPU]):
        left = nodes.share[node, gpu]
        if left >= milli and (opened == 0 or left < WHOLE):
            found = True
            break
    return found


@leaf
def admits(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    node: int,
    own: int,
    gpu: int,
    cpu: int,
    mem: int,
    milli: int,
    flags: int,
    now: int,
    until: int,
    stamp: int,
    opened: int,
    guard: int,
    on_gpu: int,
) -> bool:
    """Whether the node, whose whole free GPUs suffice, meets everything else that is asked.
    `on_gpu`: where a share would go; -1: to the fullest GPU that has room."""
    if cpu > nodes.table[node, CPU] or mem > nodes.table[node, MEM]:
        return False
    if (flags & EXCLUSIVE and nodes.table[node, TASKS] != 0) or (
        flags & DISTINCT and nodes.table[node, MARK] == stamp
    ):
        return False
    if milli != 0 and not shared_room(nodes, node, milli, opened):
        return False
    if rules.reservations != 0 and reserved_away(held, node, own, now, until):
        return False
    if guard == 0:
        return True
    main, rest = cost_of(
        nodes, shadow, shapes, classes, held, rules, node, gpu, cpu, mem, milli, flags, on_gpu
    )
    return main <= shadow.number[SH_SLACK] and rest <= shadow.number[SH_REST_SLACK]


@leaf
def choose(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    job: int,
    own: int,
    cls: int,
    gpu: int,
    cpu: int,
    mem: int,
    milli: int,
    flags: int,
    now: int,
    until: int,
    stamp: int,
    guard: int,
    attempt: int,
    task: int,
    is_rest: int,
) -> int:
    """The node for one task under the policy's placement rule, whatever it asks for, or -1.

    Three rounds at most. Best fit puts a share on a GPU that is shared already, if there is one
    anywhere, before it opens another. Random counts the nodes that fit, then takes the one that
    was drawn."""
    rule = rules.placement
    if rule == CONSOLIDATE:
        rule = WORST_FIT if is_rest != 0 else BEST_FIT
    opened = 1 if milli != 0 and rule == BEST_FIT else 0
    drawn = -1
    best = -1
    best_free = 0
    while True:
        seen = 0
        groups = 1 if rule == RANDOM else classes.start[cls + 1] - classes.start[cls]
        for at in range(groups):
            group = classes.groups[classes.start[cls] + at]
            bucket = 0
            free = most_or_first(buckets, rules.most, rule, group, gpu)
            node = 0
            while True:
                if rule == RANDOM:
                    if node >= len(nodes.table):
                        break
                    fits = (
                        classes.member[cls, nodes.table[node, GROUP]] != 0
                        and nodes.table[node, DOWN] == 0
                        and nodes.table[node, GPU] >= gpu
                    )
                else:
                    if free < gpu:
                        break
                    bucket = group * (rules.most + 1) + free
                    node = next_node(buckets, bucket, node)
                    fits = node >= 0
                if fits and not admits(
                    nodes, shadow, shapes, classes, held, rules, node, own, gpu, cpu, mem,
                    milli, flags, now, until, stamp, opened, guard, -1,
                ):  # fmt: skip
                    node += 1
                    continue
                if rule == RANDOM:
                    if fits:
                        if seen == drawn:
                            return node
                        seen += 1
                    node += 1
                    continue
                if fits:
                    if better(rule, node, free, best, best_free):
                        best = node
                        best_free = free
                    if rule != FIRST_FIT:
                        break
                node = 0
                if rule == WORST_FIT:
                    free -= 1
                else:
                    free = next_filled(buckets, group, free + 1)
        if rule == RANDOM:
            if seen == 0:
                return -1
            drawn = draw(rules.seed, job, attempt, task, seen)
        elif best >= 0 or opened == 0:
            return best
        opened = 0


@leaf
def most_or_first(buckets: Buckets, most: int, rule: int, group: int, gpu: int) -> int:
    return most if rule == WORST_FIT else next_filled(buckets, group, gpu)
