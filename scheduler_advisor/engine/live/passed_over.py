"""The jobs of a line, behind a blocked head, that a pass need not look at again; see the plain
driver's `passed_over`, of which this is the counterpart over a line instead of bits."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.start import behind_a_head, promised
from scheduler_advisor.engine.live.tuples import (
    CAST,
    EPOCH,
    EXAMINED,
    EXAMINED_SUM,
    LONG_EPOCH,
    MOMENT,
    NOW,
    Live,
    Terms,
)
from scheduler_advisor.engine.world import Rules, World


@leaf
def may_pass_over(rules: Rules, terms: Terms) -> bool:
    """Does a job that cannot start leave no trace in the pass? It does where others could be
    stopped for it, where it blocks its queue or is planned, and where it may be held back."""
    plain = rules.limits == 0 and rules.reservations == 0 and terms.skips != 0
    return plain and terms.preempts == 0 and terms.strict == 0 and terms.whole_nodes == 0


@kernel
def pass_over(w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int) -> None:
    """Moves the line's cursor to the next job that is worth a look, or to its end; with a depth no
    further than that."""
    jobs = live.lines.jobs
    first = live.lines.cursor[line]
    last = live.lines.last[line]
    if rules.depth != 0:
        last = min(last, first + rules.depth - z[EXAMINED])
    at = first
    bound = behind_a_head(rules, terms, z) and z[CAST] != 0
    while at < last:
        job = jobs[at]
        shape = w.rows.shape[job]
        if w.failed[shape, 0] != z[EPOCH] and (
            rules.max_limit == 0 or w.rows.limit[job] <= rules.max_limit
        ):
            gone = w.failed[shape, 1] == z[LONG_EPOCH] or w.failed[shape, 2] == z[MOMENT]
            if not (bound and gone) or promised(w, job, z[NOW]):
                break
        at += 1
    live.lines.cursor[line] = at
    z[EXAMINED] += at - first
    z[EXAMINED_SUM] += at - first
