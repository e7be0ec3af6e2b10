"""Where a job stands in its line, and how important it is."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.fairtree import fair_tree
from scheduler_advisor.engine.live.lines import insert, sort_again
from scheduler_advisor.engine.live.queues import asks
from scheduler_advisor.engine.live.tuples import (
    TICK,
    WAITING,
    Live,
    Terms,
    Tree,
)
from scheduler_advisor.engine.world import (
    M_LEFT,
    M_LOST,
    M_OVERHEAD,
    RUNS,
    S_SIZE,
    WAITS,
    Rows,
    Runs,
    World,
)

# Terms.order
FIXED, PREDICTED, ATTAINED, MULTIFACTOR = range(4)
MILLION = 1_000_000
WHOLE = 1000


@leaf
def attained(rows: Rows, runs: Runs, size: int, job: int, until: int) -> int:
    """Milli-GPU-seconds that the job has held."""
    more = runs.more
    held = rows.run[job] - more[job, M_LEFT] + more[job, M_LOST] + more[job, M_OVERHEAD]
    if runs.phase[job] == RUNS:
        held += until - runs.start[job]
    return held * size


@leaf
def level_of(levels: Any, service: int) -> int:
    """How many thresholds the service has passed."""
    passed = 0
    for at in range(len(levels)):
        if service >= levels[at]:
            passed += 1
    return passed


@leaf
def standing(w: World, live: Live, terms: Terms, job: int, now: int) -> int:
    """The higher, the more important."""
    if terms.has_levels != 0:
        size = w.shapes[w.rows.shape[job], S_SIZE]
        return -level_of(live.levels, attained(w.rows, w.runs, size, job, now))
    return live.fate.standing[job]


@leaf
def predicted(live: Live, terms: Terms, rows: Rows, job: int) -> int:
    """Mean of ended jobs of the finest group that has enough of them; at most the limit."""
    guess = live.guess
    for at in range(guess.of.shape[1]):
        group = guess.of[job, at]
        if guess.count[group] >= terms.learn:
            return min(rows.limit[job], guess.total[group] // guess.count[group])
    return rows.limit[job]


@leaf
def learn(live: Live, rows: Rows, job: int) -> None:
    """The job has ended: what it took is known of its groups."""
    guess = live.guess
    for at in range(guess.of.shape[1]):
        group = guess.of[job, at]
        guess.total[group] += rows.run[job]
        guess.count[group] += 1


@leaf
def multifactor_key(
    live: Live, tree: Tree, terms: Terms, eligible: Any, job: int, began: int
) -> int:
    """Minus the priority as worked out when the period began."""
    age = min(max(0, began - eligible[job]), terms.max_age)
    return -(
        live.factors.fixed[job]
        + terms.weight_age * (age * MILLION // terms.max_age) // MILLION
        + terms.weight_fair * tree.factor[tree.leaf[job]] // MILLION
    )


@kernel
def enqueue(w: World, live: Live, terms: Terms, z: Any, job: int, now: int) -> None:
    """The job waits from now."""
    size = w.shapes[w.rows.shape[job], S_SIZE]
    w.runs.phase[job] = WAITS  # what it has held is settled
    if terms.order == PREDICTED:
        live.lines.key[job] = predicted(live, terms, w.rows, job)
    elif terms.order == ATTAINED:
        service = attained(w.rows, w.runs, size, job, now)
        if len(live.levels) > 0:
            live.lines.key[job] = level_of(live.levels, service)
        else:
            live.lines.key[job] = service // WHOLE
    elif terms.order == MULTIFACTOR:
        live.lines.key[job] = multifactor_key(
            live, live.tree, terms, w.eligible, job, z[TICK] * terms.period
        )
    insert(live.lines, job)
    asks(live.tree, z, live.tree.leaf[job], size, 1)
    live.hope.waits[w.rows.shape[job]] += 1
    z[WAITING] += 1


@kernel
def recompute(w: World, live: Live, terms: Terms, z: Any, now: int) -> None:
    """Multifactor priorities as of the period that has begun."""
    tick = now // terms.period
    if tick == z[TICK]:
        return
    z[TICK] = tick
    fair_tree(live.tree)
    lines = live.lines
    for line in range(len(lines.first)):
        for at in range(lines.first[line], lines.last[line]):
            job = lines.jobs[at]
            lines.key[job] = multifactor_key(
                live, live.tree, terms, w.eligible, job, tick * terms.period
            )
        sort_again(lines, line)
