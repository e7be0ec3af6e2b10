"""Victims whose grace is over write their checkpoints, all over one shared storage."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.achieved import CHECKPOINT, settle
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.going import go
from scheduler_advisor.engine.live.tuples import (
    EVICTED,
    WRITERS,
    WRITING,
    WRITTEN_AT,
    Live,
    Terms,
)
from scheduler_advisor.engine.world import M_OVERHEAD, S_SIZE, Rules, World


@leaf
def rate_of(terms: Terms, writers: int) -> int:
    """KiB per second for each of those who write at once."""
    return max(1, terms.kib_s // max(1, writers))


@leaf
def kib_of(w: World, terms: Terms, job: int) -> int:
    return max(1, w.shapes[w.rows.shape[job], S_SIZE] * terms.kib_per_gpu // 1000)


@leaf
def next_written(live: Live, terms: Terms, z: Any) -> int:
    """When the next of those who write is done."""
    rate = rate_of(terms, z[WRITERS])
    least = 1 << 60
    for at in range(z[WRITERS]):
        least = min(least, live.crowd.left_kib[at])
    return z[WRITTEN_AT] + max(0, -(-least // rate))


@kernel
def write_on(w: World, live: Live, terms: Terms, z: Any, now: int) -> None:
    """Those who write share the bandwidth up to now."""
    rate = rate_of(terms, z[WRITERS])
    for at in range(z[WRITERS]):
        live.crowd.left_kib[at] -= rate * (now - z[WRITTEN_AT])
    z[WRITTEN_AT] = now


@leaf
def stop_writing(w: World, live: Live, z: Any, at: int, now: int) -> None:
    """The writer at `at` writes no more; the time that it took was overhead."""
    crowd = live.crowd
    job = crowd.writer[at]
    z[WRITERS] -= 1
    crowd.writer[at] = crowd.writer[z[WRITERS]]
    crowd.left_kib[at] = crowd.left_kib[z[WRITERS]]
    w.runs.more[job, M_OVERHEAD] += now - w.runs.end[job]
    w.runs.end[job] = now
    live.fate.kind[job] = EVICTED


@kernel
def written(w: World, live: Live, rules: Rules, terms: Terms, z: Any, now: int) -> None:
    """Whoever has written its checkpoint leaves."""
    crowd = live.crowd
    at = 0
    while at < z[WRITERS]:
        if crowd.left_kib[at] > 0:
            at += 1
            continue
        job = crowd.writer[at]
        stop_writing(w, live, z, at, now)
        live.fate.stake[job] = 0
        go(w, live, rules, terms, z, job, now)


@kernel
def force_out(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """Grace is over: the victim leaves, or begins to write its checkpoint."""
    settle(w.rows, w.runs, live.fate, terms.mode, job, now)
    if terms.mode == CHECKPOINT and terms.kib_per_gpu > 0:
        live.fate.kind[job] = WRITING
        live.crowd.writer[z[WRITERS]] = job
        live.crowd.left_kib[z[WRITERS]] = kib_of(w, terms, job)
        z[WRITERS] += 1
        return
    if terms.mode == CHECKPOINT:
        live.fate.stake[job] = 0
    go(w, live, rules, terms, z, job, now)
