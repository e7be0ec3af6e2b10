"""Taking nodes for tasks and giving them back."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.bits import ONE
from scheduler_advisor.engine.buckets import enter, leave
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    CPU,
    DOWN,
    EXCLUSIVE,
    GPU,
    GROUP,
    MEM,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_MILLI,
    S_PLAIN,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    TASKS,
    VERSION,
    WHOLE,
    Book,
    Buckets,
    Nodes,
    Rows,
)


@leaf
def tasks_of(shapes: Any, shape: int) -> int:
    return shapes[shape, S_TASKS] + (1 if shapes[shape, S_REST_GPU] != 0 else 0)


@leaf
def shift(nodes: Nodes, buckets: Buckets, most: int, node: int, gpus: int) -> None:
    """`gpus` more (or fewer) whole GPUs are free on the node."""
    old = nodes.table[node, GPU]
    nodes.table[node, GPU] = old + gpus
    if gpus != 0 and nodes.table[node, DOWN] == 0:
        leave(buckets, nodes.table[node, GROUP], old, most, node)
        enter(buckets, nodes.table[node, GROUP], old + gpus, most, node)


@leaf
def take_plain(
    nodes: Nodes, buckets: Buckets, most: int, node: int, gpu: int, cpu: int, mem: int
) -> None:
    """A task of whole GPUs, CPU and memory is on the node from now (-amounts: no longer)."""
    nodes.table[node, CPU] -= cpu
    nodes.table[node, MEM] -= mem
    shift(nodes, buckets, most, node, -gpu)


@kernel
def take_general(
    nodes: Nodes,
    buckets: Buckets,
    most: int,
    shares: int,
    node: int,
    gpu: int,
    cpu: int,
    mem: int,
    milli: int,
    flags: int,
    on_gpu: int,
) -> int:
    """Any task is on the node from now; returns which GPUs, where that matters: `on_gpu` for a
    share, or if that is -1 the fullest that has room (lowest on ties); or the bits of the lowest
    whole ones."""
    nodes.table[node, VERSION] += 1
    if flags & EXCLUSIVE:
        gpu = nodes.table[node, GPU]
        cpu = nodes.table[node, CPU]
        mem = nodes.table[node, MEM]
        milli = 0
    nodes.table[node, TASKS] += 1
    held: Any = 0 * ONE
    if milli != 0:
        best = max(on_gpu, 0)
        best_left = nodes.share[node, on_gpu] if on_gpu >= 0 else WHOLE + 1
        for one in range(nodes.table[node, ALL_GPU] if on_gpu < 0 else 0):
            left = nodes.share[node, one]
            if milli <= left < best_left:
                best = one
                best_left = left
        nodes.share[node, best] = best_left - milli
        held += best
        gpu = 1 if best_left == WHOLE else 0
    elif shares != 0:
        left = gpu
        for one in range(nodes.table[node, ALL_GPU]):
            if left > 0 and nodes.share[node, one] == WHOLE:
                nodes.share[node, one] = 0
                held |= ONE << one
                left -= 1
    take_plain(nodes, buckets, most, node, gpu, cpu, mem)
    return held


@kernel
def move_general(
    nodes: Nodes,
    buckets: Buckets,
    most: int,
    shares: int,
    node: int,
    gpu: int,
    cpu: int,
    mem: int,
    milli: int,
    flags: int,
    held: int,
    sign: int,
) -> None:
    """A task leaves the node (+1), or is put back on the very same GPUs (-1)."""
    if flags & EXCLUSIVE:
        gpu = nodes.table[node, ALL_GPU]
        cpu = nodes.table[node, ALL_CPU]
        mem = nodes.table[node, ALL_MEM]
        milli = 0
    nodes.table[node, VERSION] += 1
    nodes.table[node, TASKS] -= sign
    if milli != 0:
        before = nodes.share[node, held]
        nodes.share[node, held] = before + sign * milli
        gpu = 1 if max(before, before + sign * milli) == WHOLE else 0
    elif shares != 0:
        for one in range(nodes.table[node, ALL_GPU]):
            if (held >> one) & 1:
                nodes.share[node, one] = WHOLE if sign > 0 else 0
    take_plain(nodes, buckets, most, node, -sign * gpu, -sign * cpu, -sign * mem)


@leaf
def move_task(
    nodes: Nodes,
    buckets: Buckets,
    shapes: Any,
    book: Book,
    most: int,
    shares: int,
    entry: int,
    shape: int,
    task: int,
    sign: int,
) -> None:
    """One task of a job whose places begin at `entry` leaves (+1) or is put back (-1)."""
    node = book.node[entry + task]
    rest = task == shapes[shape, S_TASKS]
    gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
    cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
    mem = shapes[shape, S_REST_MEM if rest else S_MEM]
    if shapes[shape, S_PLAIN] != 0:
        take_plain(nodes, buckets, most, node, -sign * gpu, -sign * cpu, -sign * mem)
    else:
        held: Any = book.gpu[entry + task] if shares != 0 else 0 * ONE
        milli = 0 if rest else shapes[shape, S_MILLI]
        flags = shapes[shape, S_FLAGS]
        move_general(nodes, buckets, most, shares, node, gpu, cpu, mem, milli, flags, held, sign)


@leaf
def move_job(
    nodes: Nodes,
    buckets: Buckets,
    shapes: Any,
    rows: Rows,
    book: Book,
    most: int,
    shares: int,
    job: int,
    sign: int,
) -> None:
    """All tasks of a job leave (+1) or are put back (-1)."""
    shape = rows.shape[job]
    for task in range(tasks_of(shapes, shape)):
        move_task(nodes, buckets, shapes, book, most, shares, rows.place[job], shape, task, sign)
