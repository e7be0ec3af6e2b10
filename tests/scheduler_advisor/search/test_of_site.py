"""Hours, limits and slices that come from the site's own past instead of a constant."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.advice.site_told import never_moved, slices, slices_by_hour
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.past import Past
from scheduler_advisor.search.of_site import fill_changes, hours_changes, quiet_hours

HOUR, DAY = 3600, 86_400


def a_past(hours, *, days=14, origin_s=0, **columns):
    """One job a day at each of these hours (UTC), so many GPUs."""
    submit = [day * DAY + hour * HOUR - origin_s % DAY for day in range(1, days) for hour in hours]
    gpus = [size for _ in range(1, days) for size in hours.values()]
    size = len(submit)
    jobs = Jobs.build(
        submit=submit, run=np.full(size, HOUR), gpus=gpus, tasks=np.ones(size, int),
        gpus_per_task=gpus, **{name: value * size for name, value in columns.items()},
    )  # fmt: skip
    return Past(jobs, Cluster.uniform(4, 8), np.zeros(size, np.int64), 0, days * DAY, origin_s)


# Busy all day but for the hours after 4, and a little less at 17 to 19.
BUSY = {hour: 8 for hour in range(24) if not 4 <= hour < 7} | dict.fromkeys((17, 18, 19), 4)


def test_the_hour_for_moves_is_the_site_s_own_quiet_one():
    assert quiet_hours(a_past(BUSY)) == (4, 17)
    night, twice = hours_changes(a_past(BUSY))
    assert (night.name, night.keys["defrag.hours"]) == ("defrag_nightly:04", "4")
    assert (twice.name, twice.keys["defrag.hours"]) == ("defrag_twice:04:17", "4|17")


def test_a_replay_that_does_not_begin_at_midnight_moves_at_the_same_hour_of_the_day():
    past = a_past(BUSY, origin_s=10 * HOUR)
    night, _ = hours_changes(past)
    assert night.name == "defrag_nightly:04"
    # Its second 0 is ten o'clock, so four in the morning is its hour 18.
    assert night.keys["defrag.hours"] == "18"


def test_what_may_fill_gaps_is_as_long_as_a_quarter_half_and_three_quarters_of_jobs():
    minutes = [30] * 30 + [100] * 40 + [600] * 30
    size = len(minutes)
    jobs = Jobs.build(
        submit=np.arange(size), run=np.full(size, 60), limit=[m * 60 for m in minutes],
        gpus=[1] * (size - 1) + [8], tasks=np.ones(size, int),
        gpus_per_task=[1] * (size - 1) + [8],
    )  # fmt: skip
    past = Past(jobs, Cluster.uniform(1, 8), None, 0, DAY)
    found = {change.name: change.keys["backfill.max_limit_s"] for change in fill_changes(past)}
    assert found == {"fill_upto:30": 1800, "fill_upto:100": 6000, "fill_upto:600": 36_000}


def test_a_limit_that_the_catalogue_has_is_not_tried_twice():
    past = a_past({1: 1, 2: 8})  # limits of an hour
    assert fill_changes(past) == []


def test_gpus_are_cut_for_the_hours_in_which_small_jobs_run():
    day = dict.fromkeys(range(8, 20), 1)
    past = a_past(day | {2: 1}, gpu_milli=[500])
    by_hour = slices_by_hour(past)
    assert [by_hour[hour] for hour in (2, 8, 19, 20)] == [1, 1, 1, 0]
    twice = a_past({hour: 1 for hour in range(8, 20) for _ in range(6)})
    assert slices(twice) is None  # whole GPUs
    many = Jobs.build(
        submit=np.repeat(past.jobs.submit[past.jobs.submit % DAY >= 8 * HOUR], 6),
        run=np.full(6 * 13 * 12, HOUR), gpus=np.ones(6 * 13 * 12, int),
        gpu_milli=np.full(6 * 13 * 12, 500),
    )  # fmt: skip
    told = slices(Past(many, past.cluster, np.zeros(len(many), np.int64), 0, 14 * DAY))
    assert told.key == "change_how.slices_hours"
    assert told.params == {"since": "08", "until": "20", "busy": 3, "rest": 0}
    assert slices(past).key == "change_how.slices_always"


def test_who_is_never_moved_is_named():
    jobs = a_past({1: 8, 2: 8}, team=["red"])
    told = never_moved(jobs)
    assert told.params == {"jobs": 26, "share": pytest.approx(1.0), "team": "red"}
    assert never_moved(a_past({1: 8}, preemptible=[1])) is None
