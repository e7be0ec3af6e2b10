"""How much a change would bring in other months like this one: the window's days in other orders.

Each draw makes a window of days drawn with replacement from those of the past (a weekday stands
for the same weekday where the window holds two weeks), and replays both policies on it. Queues
answer a little more load with much more waiting, so that drawing the days of a replay's result
does not show what drawing the days of its arrivals does. A later window is a draw from the true
days, of which the past is itself a draw: the spread is widened by the square root of two, and by
that of n / (n - 1), since a day has only n alike to be drawn from and their spread is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.past import DAY_S, Past
from scheduler_advisor.search.alter import altered
from scheduler_advisor.search.bench import Bench, Trial
from scheduler_advisor.search.candidate import Candidate, Weekly
from scheduler_advisor.search.effects import Effects, effects
from scheduler_advisor.workers import Workers, never

DRAWS = 24  # the 10% quantile then lies between the second and the third
SEED = 20261005
WEEK = 7
LEAST_DAYS = 7  # fewer days drawn again and again say nothing of others
LONGEST_S = 60.0  # of one core for all draws of a candidate; fewer draws on large pasts
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Drawn:
    """One replay of one draw."""

    trial: Trial
    draw: int


def in_other_months(
    bench: Bench,
    best: Sequence[Candidate],
    workers: Workers,
    progress: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = never,
) -> list[Candidate]:
    """The candidates with intervals from draws; as they are where the past is too short."""
    if bench.past.days < LEAST_DAYS or not best:
        return list(best)
    wanted: dict[Drawn, Effects | None] = {}
    for each in best:
        for draw in range(draws_of(each)):
            wanted[Drawn(each.before, draw)] = wanted[Drawn(each.trial, draw)] = None
    for done, (item, found) in enumerate(
        workers.each(bench, run_drawn, list(wanted), cancelled), 1
    ):
        wanted[item] = found
        progress(done, len(wanted))
    return [_spread(bench, each, wanted) for each in best]


def draws_of(each: Candidate) -> int:
    """As many as the time allows."""
    took = each.today.engine_s + each.found.engine_s
    return max(FEWEST, min(DRAWS, int(LONGEST_S / max(took, 1e-3))))


def run_drawn(bench: Bench, item: Drawn) -> Effects:
    """Replay one draw; runs in whatever process it is sent to."""
    past, order = drawn(bench.past, item.draw)
    jobs, cluster = altered(past.jobs, past.cluster, item.trial.world)
    past = replace(past, jobs=jobs, cluster=cluster)
    return effects(past, simulate(jobs, cluster, item.trial.policy), bench.groups.take(order))


def drawn(past: Past, draw: int) -> tuple[Past, NDArray[np.intp]]:
    """The past of draw ``draw`` and, per job of it, the job of the past that it is."""
    jobs, days = past.jobs, max(1, int(past.days))
    rng = np.random.default_rng([SEED, draw])
    day = (jobs.submit - past.since) // DAY_S
    own = past.judged & (day < days)
    orders, moved = [np.flatnonzero(~own & (jobs.submit < past.since))], []
    moved.append(np.zeros(len(orders[0]), np.int64))
    for target in range(days):
        alike = np.arange(target % WEEK, days, WEEK) if days >= 2 * WEEK else np.arange(days)
        source = int(rng.choice(alike))
        orders.append(np.flatnonzero(own & (day == source)))
        moved.append(np.full(len(orders[-1]), (target - source) * DAY_S))
    order, shift = np.concatenate(orders), np.concatenate(moved)
    taken = replace(jobs, parent_of=np.zeros((0, 2), np.int64)).take(order)
    taken = replace(taken, submit=taken.submit + shift, eligible=taken.eligible + shift)
    by_time = np.argsort(taken.submit, kind="stable")
    until = past.since + days * DAY_S
    return replace(past, jobs=taken.take(by_time), wait_s=None, until=until), order[by_time]


def _spread(bench: Bench, each: Candidate, found: dict[Drawn, Effects | None]) -> Candidate:
    gains: dict[str, list[float]] = {"lost_capacity": [], "urgent_waited": [], "big_waited": []}
    for draw in range(draws_of(each)):
        before, after = found[Drawn(each.before, draw)], found[Drawn(each.trial, draw)]
        assert before is not None
        assert after is not None
        for name, own in gains.items():
            own.append(float((getattr(before, name) - getattr(after, name)).mean()) * WEEK)
    wide = (later(int(bench.past.days)), bench.input_error)
    return replace(
        each,
        hours=widened(each.hours, gains["lost_capacity"], *wide),
        urgent_hours=widened(each.urgent_hours, gains["urgent_waited"], *wide),
        big_hours=widened(each.big_hours, gains["big_waited"], *wide),
    )


def later(days: int) -> float:
    """By how much the spread of draws from ``days`` days is too small for a later window."""
    alike = days // WEEK if days >= 2 * WEEK else days
    return math.sqrt(2 * alike / (alike - 1))


def widened(weekly: Weekly, gains: Sequence[float], wide: float, input_error: float) -> Weekly:
    """The point of this window with the 80% bounds of a later one.

    Positive draws spread by a factor, others by a sum.
    """
    low, middle, high = (float(at) for at in np.quantile(gains, [0.1, 0.5, 0.9]))
    if low > 0 and weekly.point > 0:
        extra = math.log1p(input_error)
        down = math.hypot(math.log(middle / low) * wide, extra)
        up = math.hypot(math.log(high / middle) * wide, extra)
        bounds = middle * math.exp(-down), middle * math.exp(up)
    else:
        extra = abs(middle) * input_error
        bounds = (middle - math.hypot((middle - low) * wide, extra),
                  middle + math.hypot((high - middle) * wide, extra))  # fmt: skip
    return Weekly(weekly.point, min(bounds[0], weekly.point), max(bounds[1], weekly.point))
