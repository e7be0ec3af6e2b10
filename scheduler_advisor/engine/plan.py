"""Where and when a job would fit into the plan: the search of conservative backfill."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.chance import draw
from scheduler_advisor.engine.choose import better
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.profile import (
    NO_STEP,
    P_CPU,
    P_GPU,
    P_MEM,
    P_NEXT,
    P_TASKS,
    P_TIME,
    Profile,
    book,
)
from scheduler_advisor.engine.reserved import reserved_away
from scheduler_advisor.engine.shadow import tasks_in
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    BEST_FIT,
    CONSOLIDATE,
    DISTINCT,
    DOWN,
    EXCLUSIVE,
    FIRST_FIT,
    GROUP,
    M_STARTS,
    MARK,
    RANDOM,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    WORST_FIT,
    Book,
    Classes,
    Held,
    Nodes,
    Rows,
    Rules,
    Runs,
)

W_GPU, W_CPU, W_MEM, W_TASKS = 0, 1, 2, 3  # columns of the window's least free amounts
NOWHEN = 1 << 60  # no instant will do


@leaf
def first_fit_in_time(
    profile: Profile,
    held: Held,
    reserving: int,
    node: int,
    own: int,
    since: int,
    length: int,
    limit: int,
    gpu: int,
    cpu: int,
    mem: int,
    alone: int,
    least: Any,
) -> int:
    """The first instant from `since` at which one task fits on the node for its whole length, or
    NOWHEN; what is least free in that window goes to `least`."""
    steps = profile.steps
    start = since
    at = profile.first[node]
    while steps[at, P_NEXT] != NO_STEP and steps[steps[at, P_NEXT], P_TIME] <= start:
        at = steps[at, P_NEXT]
    least[node, W_GPU] = NOWHEN
    fresh = True
    while True:
        if fresh and reserving != 0:
            moved = True
            while moved:
                moved = False
                for one in range(len(held.window)):
                    if (
                        one != own
                        and held.covers[one, node] == 1
                        and start < held.window[one, 1]
                        and start + limit > held.window[one, 0]
                    ):
                        start = held.window[one, 1]
                        moved = True
            while steps[at, P_NEXT] != NO_STEP and steps[steps[at, P_NEXT], P_TIME] <= start:
                at = steps[at, P_NEXT]
        after = steps[at, P_NEXT]
        if (
            steps[at, P_GPU] < gpu
            or steps[at, P_CPU] < cpu
            or steps[at, P_MEM] < mem
            or (alone != 0 and steps[at, P_TASKS] != 0)
        ):
            if after == NO_STEP:
                return NOWHEN
            start = steps[after, P_TIME]
            at = after
            fresh = True
            least[node, W_GPU] = NOWHEN
            continue
        fresh = False
        if least[node, W_GPU] == NOWHEN:
            for column in range(4):
                least[node, column] = steps[at, P_GPU + column]
        else:
            least[node, W_GPU] = min(least[node, W_GPU], steps[at, P_GPU])
            least[node, W_CPU] = min(least[node, W_CPU], steps[at, P_CPU])
            least[node, W_MEM] = min(least[node, W_MEM], steps[at, P_MEM])
            least[node, W_TASKS] = max(least[node, W_TASKS], steps[at, P_TASKS])
        if after == NO_STEP or steps[after, P_TIME] >= start + length:
            return start
        at = after


@leaf
def window(profile: Profile, node: int, since: int, until: int, least: Any) -> int:
    """What is least free on the node during [since, until) goes to `least`; returns the first
    instant after `since` at which a step begins, or NOWHEN."""
    steps = profile.steps
    at = profile.first[node]
    while steps[at, P_NEXT] != NO_STEP and steps[steps[at, P_NEXT], P_TIME] <= since:
        at = steps[at, P_NEXT]
    for column in range(4):
        least[node, column] = steps[at, P_GPU + column]
    after = steps[at, P_NEXT]
    later = NOWHEN if after == NO_STEP else steps[after, P_TIME]
    while after != NO_STEP and steps[after, P_TIME] < until:
        least[node, W_GPU] = min(least[node, W_GPU], steps[after, P_GPU])
        least[node, W_CPU] = min(least[node, W_CPU], steps[after, P_CPU])
        least[node, W_MEM] = min(least[node, W_MEM], steps[after, P_MEM])
        least[node, W_TASKS] = max(least[node, W_TASKS], steps[after, P_TASKS])
        after = steps[after, P_NEXT]
    return later


@kernel
def put_tasks(
    nodes: Nodes,
    classes: Classes,
    shapes: Any,
    held: Held,
    rules: Rules,
    book_: Book,
    entry: int,
    job: int,
    shape: int,
    own: int,
    since: int,
    limit: int,
    attempt: int,
    stamp: int,
    least: Any,
) -> bool:
    """Places the job's tasks one by one on what is least free in the window; False if they do
    not all fit. `least` is used up."""
    cls = shapes[shape, S_CLASS]
    flags = shapes[shape, S_FLAGS]
    for task in range(tasks_of(shapes, shape)):
        rest = task == shapes[shape, S_TASKS]
        gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
        mem = shapes[shape, S_REST_MEM if rest else S_MEM]
        rule = rules.placement
        if rule == CONSOLIDATE:
            rule = WORST_FIT if rest else BEST_FIT
        best = -1
        drawn = -1
        while True:
            seen = 0
            for node in range(len(nodes.table)):
                if (
                    classes.member[cls, nodes.table[node, GROUP]] == 0
                    or nodes.table[node, DOWN] != 0
                    or least[node, W_GPU] < gpu
                    or least[node, W_CPU] < cpu
                    or least[node, W_MEM] < mem
                    or (flags & EXCLUSIVE and least[node, W_TASKS] != 0)
                    or (flags & DISTINCT and nodes.table[node, MARK] == stamp)
                    or (
                        rules.reservations != 0
                        and reserved_away(held, node, own, since, since + limit)
                    )
                ):
                    continue
                if rule == RANDOM:
                    if seen == drawn:
                        best = node
                    seen += 1
                elif best < 0 or better(rule, node, least[node, W_GPU], best, least[best, W_GPU]):
                    best = node
            if rule != RANDOM or drawn >= 0 or seen == 0:
                break
            drawn = draw(rules.seed, job, attempt, task, seen)
        if best < 0:
            for before in range(task):
                nodes.table[book_.node[entry + before], MARK] = -1
            return False
        book_.node[entry + task] = best
        nodes.table[best, MARK] = stamp
        if flags & EXCLUSIVE:
            least[best, W_GPU] = 0
            least[best, W_CPU] = 0
            least[best, W_MEM] = 0
        else:
            least[best, W_GPU] -= gpu
            least[best, W_CPU] -= cpu
            least[best, W_MEM] -= mem
        least[best, W_TASKS] += 1
    return True


@kernel
def earliest(
    nodes: Nodes,
    classes: Classes,
    shapes: Any,
    held: Held,
    rows: Rows,
    runs: Runs,
    rules: Rules,
    book_: Book,
    profile: Profile,
    least: Any,
    job: int,
    since: int,
    length: int,
    stamp: int,
) -> int:
    """The first instant from `since` at which the job fits into the plan for its whole length;
    its nodes go to the book. NOWHEN if there is none."""
    shape = rows.shape[job]
    cls = shapes[shape, S_CLASS]
    flags = shapes[shape, S_FLAGS]
    alone = flags & EXCLUSIVE
    own = held.named[job] if rules.reservations != 0 else -1
    limit = rows.limit[job]
    attempt = runs.more[job, M_STARTS] if rules.interruptible != 0 else 0
    entry = rows.place[job]
    gpu = shapes[shape, S_GPU]
    cpu = shapes[shape, S_CPU]
    mem = shapes[shape, S_MEM]
    if tasks_of(shapes, shape) == 1 and rules.placement != RANDOM:
        rule = BEST_FIT if rules.placement == CONSOLIDATE else rules.placement
        best = -1
        best_at = NOWHEN
        for node in range(len(nodes.table)):
            if classes.member[cls, nodes.table[node, GROUP]] == 0 or nodes.table[node, DOWN] != 0:
                continue
            at = first_fit_in_time(
                profile, held, rules.reservations, node, own, since, length, limit, gpu, cpu,
                mem, alone, least,
            )  # fmt: skip
            if at < best_at or (
                at == best_at
                and best >= 0
                and better(rule, node, least[node, W_GPU], best, least[best, W_GPU])
            ):
                best = node
                best_at = at
        if best < 0:
            return NOWHEN
        book_.node[entry] = best
        return best_at
    at = since
    while at < NOWHEN:
        later = NOWHEN
        fits = 0
        last = 0
        for node in range(len(nodes.table)):
            if classes.member[cls, nodes.table[node, GROUP]] == 0 or nodes.table[node, DOWN] != 0:
                continue
            later = min(later, window(profile, node, at, at + length, least))
            fits += tasks_in(
                least[node, W_GPU], least[node, W_CPU], least[node, W_MEM],
                least[node, W_TASKS], gpu, cpu, mem, flags,
            )  # fmt: skip
            last = fits
        for one in range(len(held.window) if rules.reservations != 0 else 0):
            if held.window[one, 1] > at:
                later = min(later, held.window[one, 1])
        if last >= shapes[shape, S_TASKS] and put_tasks(
            nodes, classes, shapes, held, rules, book_, entry, job, shape, own, at, limit,
            attempt, stamp, least,
        ):  # fmt: skip
            return at
        at = later
    return NOWHEN


@kernel
def book_job(
    nodes: Nodes,
    shapes: Any,
    rows: Rows,
    book_: Book,
    profile: Profile,
    job: int,
    since: int,
    until: int,
    sign: int,
) -> None:
    """Books all tasks of a job (+1), or takes them out of the plan (-1)."""
    shape = rows.shape[job]
    for task in range(tasks_of(shapes, shape)):
        node = book_.node[rows.place[job] + task]
        rest = task == shapes[shape, S_TASKS]
        gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
        mem = shapes[shape, S_REST_MEM if rest else S_MEM]
        if shapes[shape, S_FLAGS] & EXCLUSIVE:
            gpu = nodes.table[node, ALL_GPU]
            cpu = nodes.table[node, ALL_CPU]
            mem = nodes.table[node, ALL_MEM]
        book(profile, node, since, until, sign * gpu, sign * cpu, sign * mem, sign)


__all__ = ["FIRST_FIT", "NOWHEN", "book_job", "earliest"]
