"""Stranded GPU time split over the runs on its node, exactly."""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.compiled import driver, leaf
from analytics.ledger.kernel.state import (
    C_CPU,
    C_CPU_REQUEST,
    C_MEM,
    C_SHAPE,
    C_TOPOLOGY,
    UNLIMITED,
    ZERO,
    Array,
)

# Rows of `host`: what a run holds of a node over [H_T0, H_T1), in the order (node, run name).
H_RUN, H_GPUS, H_CPU, H_MEM, H_T0, H_T1 = range(6)
# Rows of `inventory`: what a node has over [I_T0, I_T1), in node order; -1 = not known.
I_GPUS, I_CPU, I_MEM, I_T0, I_T1 = range(5)
# Rows of `stranded`: what is to be split; RELEASE is filled in, -1 = nothing to release.
S_NODE, S_CODE, S_AT, S_TIME, S_MOST, S_RELEASE = range(6)
# Rows of `spans`: where the host and inventory rows of a node begin and end.
HOST_LO, HOST_HI, INV_LO, INV_HI = range(4)


@leaf
def _mul_div(a: int, b: int, d: int) -> tuple[int, int]:
    """Quotient and remainder of a x b by d, also where the product has more than 63 bits."""
    if a == 0 or b <= UNLIMITED // a:
        return a * b // d, a * b % d
    quotient, rest, whole, part = ZERO, ZERO, b // d, b % d
    for bit in range(61, -1, -1):
        quotient, rest = 2 * quotient, 2 * rest
        if rest >= d:
            quotient, rest = quotient + 1, rest - d
        if a >> bit & 1:
            quotient, rest = quotient + whole, rest + part
            if rest >= d:
                quotient, rest = quotient + 1, rest - d
    return quotient, rest


@leaf
def _node_at(inventory: Array, lo: int, hi: int, t: int, totals: Array) -> None:
    """GPUs, CPU and memory of a node at ``t``."""
    totals[0], totals[1], totals[2] = 0, -1, -1
    first = True
    for i in range(lo, hi):
        if inventory[I_T0, i] <= t < inventory[I_T1, i]:
            totals[0] += inventory[I_GPUS, i]
            if first:
                totals[1], totals[2] = inventory[I_CPU, i], inventory[I_MEM, i]
                first = False


@leaf
def _weight(host: Array, h: int, code: int, totals: Array) -> int:
    """GPUs held where they block a shape, else what is held beyond the GPUs' share of the node, in
    1/GPUs of the unit."""
    gpus = host[H_GPUS, h]
    if code == C_SHAPE or code == C_TOPOLOGY:
        return int(gpus)
    cpu = code == C_CPU or code == C_CPU_REQUEST
    total = totals[1] if cpu else totals[2]
    if total < 0:
        return 0
    return int((host[H_CPU, h] if cpu else host[H_MEM, h]) * totals[0] - gpus * total)


@leaf
def _release(code: int, most: int, used: int, totals: Array, own: int) -> int:
    """How much of the exhausted resource must come free so that every free GPU is usable."""
    if code != C_CPU and code != C_MEM:
        return -1
    total = max(totals[1] if code == C_CPU else totals[2], 0)
    per_gpu = own if own >= 0 else total // max(totals[0], 1)
    if per_gpu == 0:
        return -1
    left = total - used
    return int((max(left, 0) // per_gpu + most) * per_gpu - left)


@leaf
def _round(amount: int, n: int, parts: Array, total: int) -> None:
    """Exactly ``amount`` by largest remainder, ties in the order of the parts."""
    given = ZERO
    for k in range(n):
        parts[1, k], parts[2, k] = _mul_div(amount, parts[0, k], total)
        given += parts[1, k]
    for _ in range(amount - given):
        best = ZERO
        for k in range(n):
            if parts[2, k] > parts[2, best]:
                best = ZERO + k
        parts[1, best] += 1
        parts[2, best] = -1


@driver
def blame(
    stranded: Array, host: Array, inventory: Array, spans: Array, demand: Array, parts: Array,
    out: Array,
) -> int:  # fmt: skip
    """Rows ``(stranded, run, GPU time)`` in ``out``, run -1 where nobody is to blame; their number,
    which may be more than ``out`` holds: then nothing beyond it is written.

    ``demand``: rows of (day, CPU, memory) per GPU, -1 = the node's own ratio. ``parts``: room for
    weight, share and remainder of the runs of one node, and for totals.
    """
    n = np.int64(0)
    totals = parts[3]
    for s in range(stranded.shape[1]):
        node, code, t = stranded[S_NODE, s], stranded[S_CODE, s], stranded[S_AT, s]
        _node_at(inventory, spans[INV_LO, node], spans[INV_HI, node], t, totals)
        count, whole, used = ZERO, ZERO, ZERO
        cpu = code == C_CPU
        for h in range(spans[HOST_LO, node], spans[HOST_HI, node]):
            if host[H_T0, h] <= t < host[H_T1, h]:
                used += host[H_CPU, h] if cpu else host[H_MEM, h]
                weight = _weight(host, h, code, totals)
                if weight > 0:
                    parts[0, count], parts[4, count] = weight, host[H_RUN, h]
                    whole += weight
                    count += 1
        day = ZERO
        while day + 1 < demand.shape[0] and demand[day + 1, 0] <= t:
            day += 1
        own = demand[day, 1] if cpu else demand[day, 2]
        stranded[S_RELEASE, s] = _release(code, stranded[S_MOST, s], used, totals, own)
        if count == 0:
            parts[0, 0], parts[4, 0] = 1, -1
            count, whole = ZERO + 1, ZERO + 1
        if n + count <= out.shape[0]:
            _round(stranded[S_TIME, s], count, parts, whole)
            for k in range(count):
                out[n + k, 0], out[n + k, 1], out[n + k, 2] = s, parts[4, k], parts[1, k]
        n += count
    return int(n)
