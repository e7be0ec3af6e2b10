"""How much a change would bring in other months like this one: the window's days in other orders.

Each draw makes a window of days of the past, and replays both policies on it. Queues answer a
little more load with much more waiting, so that drawing the days of a replay's result does not show
what drawing the days of its arrivals does. A later window is a draw from the true days, of which
the past is itself a draw: so the days are drawn twice, first those that the truth could have had,
then the window's from them. A weekday stands for the same weekday where the weekdays of the past
differ more than chance lets them; few days alike spread too little, and the spread of the result is
widened by what is missing then.
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

DRAWS = 48  # the 10% quantile then lies between the second and the third
SEED = 20261005
PERMUTED = 400
NORMAL_90 = 1.2815515655
WEEK = 7
LEAST_DAYS = 7  # fewer days drawn again and again say nothing of others
LONGEST_S = 60.0  # of one core for all draws of a candidate; fewer draws on large pasts
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Drawn:
    """One replay of one draw. ``kinds`` of days: see `kinds_of_days`."""

    trial: Trial
    draw: int
    kinds: int


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
    kinds = kinds_of_days(bench.past)
    wanted: dict[Drawn, Effects | None] = {}
    for each in best:
        for draw in range(draws_of(each)):
            for trial in (each.before, each.trial):
                wanted[Drawn(trial, draw, kinds)] = None
    for done, (item, found) in enumerate(
        workers.each(bench, run_drawn, list(wanted), cancelled), 1
    ):
        wanted[item] = found
        progress(done, len(wanted))
    return [_spread(bench, each, kinds, wanted) for each in best]


def draws_of(each: Candidate) -> int:
    """As many as the time allows, which is counted, not measured: see `counted`."""
    took = each.today.counted_s + each.found.counted_s
    return max(FEWEST, min(DRAWS, int(LONGEST_S / max(took, 1e-3))))


def run_drawn(bench: Bench, item: Drawn) -> Effects:
    """Replay one draw; runs in whatever process it is sent to."""
    past, order = drawn(bench.past, item.draw, item.kinds)
    past = altered(past, item.trial.world)
    outcome = simulate(past.jobs, past.cluster, item.trial.policy)
    return effects(past, outcome, bench.groups.take(order))


def drawn(past: Past, draw: int, kinds: int) -> tuple[Past, NDArray[np.intp]]:
    """The past of draw ``draw`` and, per job of it, the job of the past that it is."""
    jobs, days = past.jobs, max(1, int(past.days))
    rng = np.random.default_rng([SEED, draw])
    day = (jobs.submit - past.since) // DAY_S
    own = past.judged & (day < days)
    orders, moved = [np.flatnonzero(~own & (jobs.submit < past.since))], []
    moved.append(np.zeros(len(orders[0]), np.int64))
    alike = [np.arange(kind, days, kinds) for kind in range(kinds)]
    true = [rng.choice(each, len(each)) for each in alike]
    for target in range(days):
        source = int(rng.choice(true[target % kinds]))
        orders.append(np.flatnonzero(own & (day == source)))
        moved.append(np.full(len(orders[-1]), (target - source) * DAY_S))
    order, shift = np.concatenate(orders), np.concatenate(moved)
    taken = replace(jobs, parent_of=np.zeros((0, 2), np.int64)).take(order)
    taken = replace(taken, submit=taken.submit + shift, eligible=taken.eligible + shift)
    by_time = np.argsort(taken.submit, kind="stable")
    until = past.since + days * DAY_S
    order, known = order[by_time], past.checkpoints
    known = known.take(order) if known is not None else None
    made = replace(past, jobs=taken.take(by_time), wait_s=None, until=until, checkpoints=known)
    return made, order


def _spread(
    bench: Bench, each: Candidate, kinds: int, found: dict[Drawn, Effects | None]
) -> Candidate:
    wide = later(int(bench.past.days), kinds)
    bounds: dict[str, Weekly] = {}
    for name, weekly in (("lost_capacity", each.hours), ("urgent_waited", each.urgent_hours),
                         ("big_waited", each.big_hours),
                         ("starved_waited", each.team_hours)):  # fmt: skip
        gains = []
        for draw in range(draws_of(each)):
            before = found[Drawn(each.before, draw, kinds)]
            after = found[Drawn(each.trial, draw, kinds)]
            assert before is not None
            assert after is not None
            gains.append(float((getattr(before, name) - getattr(after, name)).mean()) * WEEK)
        daily = getattr(each.today, name) - getattr(each.found, name)
        bounds[name] = widened(weekly, gains, wide * few(daily), bench.input_error)
    return replace(
        each,
        hours=bounds["lost_capacity"],
        urgent_hours=bounds["urgent_waited"],
        big_hours=bounds["big_waited"],
        team_hours=bounds["starved_waited"],
    )


def few(daily: NDArray[np.float64]) -> float:
    """By how much draws of days spread too little where few of the days bring nearly all.

    Student's 90% quantile over the normal one, and n / (n - 1), for the days that count: Kish's
    effective number (1965), at least two. The quantile is Fisher's expansion (Abramowitz and Stegun
    26.7.5), within 4% from two degrees of freedom on.
    """
    size = np.abs(daily)
    total = float((size**2).sum())
    count = max(2.0, float(size.sum()) ** 2 / total if total else 2.0)
    free, z = max(count - 1, 1.0), NORMAL_90
    student = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return student / z * math.sqrt(count / (count - 1))


def kinds_of_days(past: Past) -> int:
    """7 where weekdays differ in the GPU time that they bring, else 1.

    A permutation test at 5% of the variance between weekdays (Fisher 1935).
    """
    days = max(1, int(past.days))
    if days < 2 * WEEK:
        return 1
    jobs, own = past.jobs, past.judged
    day = np.minimum((jobs.submit[own] - past.since) // DAY_S, days - 1)
    brought = np.bincount(day, (past.gpus_held * jobs.run)[own], days).astype(np.float64)
    weekday = np.arange(days) % WEEK
    found = _between(brought, weekday)
    rng = np.random.default_rng(SEED)
    larger = sum(_between(rng.permutation(brought), weekday) >= found for _ in range(PERMUTED))
    return WEEK if larger < 0.05 * PERMUTED else 1


def _between(amount: NDArray[np.float64], weekday: NDArray[np.int64]) -> float:
    """Spread of the weekdays' means, each by its days."""
    count = np.bincount(weekday)
    means = np.bincount(weekday, amount) / count
    return float((count * (means - amount.mean()) ** 2).sum())


def later(days: int, kinds: int) -> float:
    """By how much the spread of draws from ``days`` days is too small for a later window: with n
    days alike, each of the two draws has (n - 1) / n of the true variance."""
    alike = days // kinds
    kept = (alike - 1) / alike
    return math.sqrt(2 / (kept + kept**2))


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
