"""Placement by score: FGD and dot product, on a cluster whose jobs come and go.

A node's score for a shape stays true until something starts or ends there: it is remembered with
the node's version. Looking for the best node is then one walk over remembered numbers.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.chance import draw
from scheduler_advisor.engine.choose import admits
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.packing.devices import shift, tightest
from scheduler_advisor.engine.packing.fragmentation import unusable
from scheduler_advisor.engine.packing.scores import TOP, graded
from scheduler_advisor.engine.packing.typical import Typical
from scheduler_advisor.engine.scoring import (
    MEMO,
    MODEL,
    N_CPU,
    N_LEVELS,
    N_MILLI,
    N_TOTAL,
    RANK,
    T_CPU,
    T_GPUS,
    T_LEVEL,
    T_MILLI,
    T_MODELS,
    T_TASKS,
)
from scheduler_advisor.engine.world import (
    ALL_GPU,
    CPU,
    DOWN,
    EXCLUSIVE,
    FGD,
    GPU,
    GROUP,
    MEM,
    VERSION,
    WHOLE,
    Classes,
    Held,
    Nodes,
    Rules,
    Shadow,
)

BY_NAME, MOST_PACKED, BY_CHANCE = 0, 1, 2
GPU_BITS = 7  # a GPU's number, one more, in the low bits of what the search returns
GPU_MASK = (1 << GPU_BITS) - 1
SCORE_BITS = 8


@leaf
def typical_in(table: Any) -> Typical:
    """The table of typical tasks as the kernels of packing want it."""
    last = len(table) - 1
    return Typical(
        table[:last, T_CPU],
        table[:last, T_GPUS],
        table[:last, T_MILLI],
        table[:last, T_MODELS],
        table[:last, T_TASKS],
        table[: table[last, N_LEVELS], T_LEVEL],
        table[last, N_TOTAL],
    )


@leaf
def idle_on(nodes: Nodes, shares: int, node: int) -> int:
    """Idle thousandths of GPUs on the node."""
    if shares == 0:
        return nodes.table[node, GPU] * WHOLE
    idle = 0
    for gpu in range(nodes.table[node, ALL_GPU]):
        idle += nodes.share[node, gpu]
    return idle


@kernel
def fgd_score(
    nodes: Nodes, rules: Rules, node: int, gpu: int, cpu: int, milli: int, flags: int
) -> int:
    """Score << GPU_BITS | GPU + 1 (0: whole ones) of the choice that lets F grow least there, -1
    where no GPU has room for a share; all else must fit. The first GPU wins on ties."""
    typical = typical_in(rules.typical)
    free = nodes.share
    gpus = nodes.table[node, ALL_GPU]
    model = rules.scored[MODEL, node]
    now_cpu = nodes.table[node, CPU]
    before = unusable(typical, now_cpu, free, node, gpus, model)
    if flags & EXCLUSIVE:
        return graded(before, 0, typical.total) << GPU_BITS
    if milli == 0:
        mask = tightest(free, node, gpus, gpu, WHOLE)
        shift(free, node, gpus, mask, -WHOLE)
        after = unusable(typical, now_cpu - cpu, free, node, gpus, model)
        shift(free, node, gpus, mask, WHOLE)
        return graded(before, after, typical.total) << GPU_BITS
    best = -1
    for one in range(gpus):
        if free[node, one] < milli:
            continue
        free[node, one] -= milli
        after = unusable(typical, now_cpu - cpu, free, node, gpus, model)
        free[node, one] += milli
        score = graded(before, after, typical.total)
        if score > best >> GPU_BITS:
            best = (score << GPU_BITS) | (one + 1)
    return best


@kernel
def dot_score(
    nodes: Nodes, rules: Rules, node: int, gpu: int, cpu: int, milli: int, flags: int
) -> int:
    """Small where what is idle and what is asked for point the same way (see packing.scores)."""
    table = rules.typical
    last = len(table) - 1
    idle = idle_on(nodes, rules.shares, node)
    asked = gpu * WHOLE + milli
    if flags & EXCLUSIVE:
        asked = idle
        cpu = nodes.table[node, CPU]
    most = table[last, N_CPU]
    most_milli = table[last, N_MILLI]
    dot = (nodes.table[node, CPU] / most) * (cpu / most)
    dot += (idle / most_milli) * (asked / most_milli)
    return int(TOP * (1.0 - dot / 2.0)) << GPU_BITS


@kernel
def remembered(
    nodes: Nodes,
    rules: Rules,
    key: int,
    node: int,
    gpu: int,
    cpu: int,
    milli: int,
    flags: int,
) -> int:
    """The node's score for the tasks numbered `key`, worked out again only where the node has
    changed since."""
    memo = rules.scored
    row = MEMO + key % (len(memo) - MEMO)
    owner = memo.shape[1] - 1
    if memo[row, owner] != key + 1:
        memo[row, :] = 0
        memo[row, owner] = key + 1
    version = nodes.table[node, VERSION] + 1
    entry = memo[row, node]
    if entry >> (GPU_BITS + SCORE_BITS) == version:
        return entry & ((1 << (GPU_BITS + SCORE_BITS)) - 1)
    if rules.placement == FGD:
        score = fgd_score(nodes, rules, node, gpu, cpu, milli, flags)
    else:
        score = dot_score(nodes, rules, node, gpu, cpu, milli, flags)
    memo[row, node] = (version << (GPU_BITS + SCORE_BITS)) | score
    return score


@kernel
def choose_scored(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    job: int,
    own: int,
    cls: int,
    key: int,
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
) -> int:
    """The node of the best score, as node << GPU_BITS | GPU + 1 (0: which one is not settled), or
    -1. Ties go by name, to the node with the least idle GPU and then by name, or by chance."""
    rank = rules.scored
    best = -1
    best_score = -1
    best_idle = 0
    best_gpu = 0
    tied = 0
    drawn = -1
    while True:
        for node in range(len(nodes.table)):
            if (
                classes.member[cls, nodes.table[node, GROUP]] == 0
                or nodes.table[node, DOWN] != 0
                or nodes.table[node, GPU] < gpu
                or nodes.table[node, CPU] < cpu
                or nodes.table[node, MEM] < mem
            ):
                continue
            packed = remembered(nodes, rules, key, node, gpu, cpu, milli, flags)
            score = packed >> GPU_BITS
            if packed < 0 or score < best_score:
                continue
            idle = 0
            if rules.ties == MOST_PACKED:
                idle = idle_on(nodes, rules.shares, node)
            if score == best_score and rules.ties != BY_CHANCE:
                if idle > best_idle:
                    continue
                if idle == best_idle and rank[RANK, node] > rank[RANK, best]:
                    continue
            if not admits(
                nodes, shadow, shapes, classes, held, rules, node, own, gpu, cpu, mem, milli,
                flags, now, until, stamp, 0, guard, (packed & GPU_MASK) - 1,
            ):  # fmt: skip
                continue
            if score > best_score:
                tied = 0
            if tied == drawn:
                return (node << GPU_BITS) | (packed & GPU_MASK)
            tied += 1
            best = node
            best_score = score
            best_idle = idle
            best_gpu = packed & GPU_MASK
        if best < 0:
            return -1
        if rules.ties != BY_CHANCE:
            return (best << GPU_BITS) | best_gpu
        drawn = draw(rules.seed, job, attempt, task, tied)
        tied = 0
