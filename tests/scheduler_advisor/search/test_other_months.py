"""How wide an interval is made where the past holds few days that count, or few days alike."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import DAY_S, Past
from scheduler_advisor.search.again import drawn, draws_of, few, kinds_of_days, later
from scheduler_advisor.search.bench import bench_of
from scheduler_advisor.search.effects import effects

DAYS = 28


def a_past(hours_of_day):
    """One job a day that holds one GPU for so many hours."""
    hours = [hours_of_day(day) for day in range(DAYS)]
    jobs = Jobs.build(
        submit=[day * DAY_S for day in range(DAYS)],
        run=[max(1, round(hour * 3600)) for hour in hours],
        gpus=[1] * DAYS,
    )
    return Past(jobs, Cluster.uniform(4, 8), None, 0, DAYS * DAY_S)


def test_weekdays_stand_for_themselves_only_where_they_differ():
    noise = np.random.default_rng(7).uniform(4, 6, DAYS)
    assert kinds_of_days(a_past(lambda day: noise[day])) == 1
    assert kinds_of_days(a_past(lambda day: noise[day] + (20 if day % 7 < 5 else 0))) == 7


def test_a_draw_of_a_working_week_has_idle_weekends():
    past = a_past(lambda day: 20.0 if day % 7 < 5 else 1.0)
    for number in range(5):
        again, order = drawn(past, number, kinds_of_days(past))
        assert len(again.jobs) == DAYS
        assert (again.jobs.submit // DAY_S % 7 == past.jobs.submit[order] // DAY_S % 7).all()


def test_days_are_drawn_twice_so_fewer_of_them_differ_than_in_one_draw():
    noise = np.random.default_rng(7).uniform(4, 6, DAYS)
    past = a_past(lambda day: noise[day])
    kinds = kinds_of_days(past)
    different = [len(set(drawn(past, number, kinds)[1].tolist())) for number in range(200)]
    # One draw of 28 keeps 28 (1 - (27/28)^28) = 17.9 of them; the second keeps 13.2 of those.
    assert np.mean(different) == pytest.approx(13.2, abs=0.6)


def test_four_weekdays_alike_spread_less_than_28_days():
    assert later(28, 1) == pytest.approx((2 / (27 / 28 + (27 / 28) ** 2)) ** 0.5)
    assert later(28, 7) == pytest.approx((2 / (3 / 4 + 9 / 16)) ** 0.5)


def test_a_saving_of_one_day_is_less_sure_than_one_of_every_day():
    steady, rare = np.ones(DAYS), np.zeros(DAYS)
    rare[[3, 9, 20]] = 10.0
    # Student's 90% quantiles with 27 and 2 degrees of freedom: 1.314 and 1.886.
    assert few(steady) == pytest.approx(1.314 / 1.2816 * (28 / 27) ** 0.5, rel=0.01)
    assert few(rare) == pytest.approx(1.886 / 1.2816 * (3 / 2) ** 0.5, rel=0.04)
    assert few(np.zeros(DAYS)) > few(rare)


def test_how_many_draws_a_candidate_gets_does_not_hang_on_the_clock():
    """Else the same store would be given other intervals on a busy machine."""
    past = a_past(lambda day: 5.0)
    outcome, groups = simulate(past.jobs, past.cluster, Policy()), bench_of(past, Goals()).groups
    draws = set()
    for seconds in (1e-4, 1.0, 1e4):
        found = effects(past, replace(outcome, drive_s=seconds), groups)
        assert found.engine_s >= seconds
        draws.add(draws_of(SimpleNamespace(today=found, found=found)))
    assert draws == {48}
    large = replace(outcome, examined=10**10)
    found = effects(past, large, groups)
    assert draws_of(SimpleNamespace(today=found, found=found)) == 8
