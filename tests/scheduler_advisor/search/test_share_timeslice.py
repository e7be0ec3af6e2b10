"""Time slicing as a candidate of the search: when it is tried, and what it does, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine import Cluster, Jobs, Policy, simulate
from scheduler_advisor.goals import Goals, parse_goals
from scheduler_advisor.messages import LANGUAGES, Words
from scheduler_advisor.past import Past
from scheduler_advisor.search.catalogue import CHANGES, applied, replayable
from scheduler_advisor.search.search import search
from scheduler_advisor.search.usable import usable

WHOLE = Policy().with_values({"sharing": "none", "backfill": "greedy"})
CHANGE = next(change for change in CHANGES if change.name == "share_timeslice")
DAY = 86_400


def small(count, milli, *, submit=0, run=100):
    return Jobs.build(
        submit=[submit] * count, run=[run] * count, gpus=[1] * count, gpu_milli=[milli] * count
    )


def ends(jobs, policy, gpus=1):
    return simulate(jobs, Cluster.build([gpus], gpu_model=["H100"]), policy).end.tolist()


@pytest.mark.parametrize(
    ("count", "milli", "today", "sliced"),
    [
        (2, 400, [100, 200], [105, 105]),  # 800 of 1,000 wanted: a switch of 5% is all it costs
        (2, 500, [100, 200], [105, 105]),
        (1, 400, [100], [100]),  # alone nobody is switched to
    ],
)
def test_two_jobs_take_turns_where_each_had_waited_for_the_other(count, milli, today, sliced):
    jobs = small(count, milli)
    assert ends(jobs, WHOLE) == today
    assert ends(jobs, applied(WHOLE, CHANGE)) == sliced


def test_a_job_that_wants_a_whole_gpu_still_gets_one_to_itself():
    jobs = Jobs.build(submit=[0, 0], run=[100, 50], gpus=[1, 1], gpu_milli=[0, 400])
    assert ends(jobs, applied(WHOLE, CHANGE)) == [100, 150]


def a_past(milli):
    count = 200
    jobs = Jobs.build(
        submit=np.arange(count) * 600, run=[3600] * count, gpus=[1] * count,
        gpu_milli=[milli] * count,
    )  # fmt: skip
    return Past(jobs, Cluster.build([4, 4]), np.zeros(count, int), 0, 3 * DAY)


def tried(past, goals=None, aims=("packing",)):
    found = usable(past, WHOLE, goals or Goals(), set(aims))
    return {change.name for changes in found.sets for change in changes}


def test_it_is_tried_where_packing_or_idleness_is_the_cause_and_jobs_use_parts():
    assert "share_timeslice" in tried(a_past(400))
    assert "share_timeslice" in tried(a_past(400), aims=["idle"])
    assert "share_timeslice" not in tried(a_past(400), aims=["urgency"])
    assert "share_timeslice" not in tried(a_past(0))  # whole GPUs: nothing is known of their parts


def test_work_that_must_not_share_keeps_it_from_being_tried():
    spared = parse_goals('[never]\nshare = [{team = "x"}]\n', "goals")
    assert "share_timeslice" not in tried(a_past(400), spared)


def test_it_is_not_tried_where_it_is_the_policy_already():
    today = applied(WHOLE, CHANGE)
    found = usable(a_past(400), today, Goals(), {"packing"})
    assert "share_timeslice" not in {c.name for changes in found.sets for c in changes}


def test_beside_a_backfill_that_plans_whole_gpus_it_brings_one_that_does_not():
    easy = WHOLE.with_values({"backfill": "easy"})
    found = usable(a_past(400), easy, Goals(), {"packing"})
    names = [tuple(change.name for change in changes) for changes in found.sets]
    assert ("backfill_greedy", "share_timeslice") in names


def test_a_search_over_jobs_that_take_parts_tries_it_and_ends():
    """Four jobs that use 400 thousandths come every 20 minutes to 2 GPUs and take 40."""
    count = 4 * 3 * 24 * 3
    jobs = Jobs.build(
        submit=np.arange(count) // 4 * 1200, run=[2400] * count, gpus=[1] * count,
        gpu_milli=[400] * count, limit=[3600] * count,
    )  # fmt: skip
    cluster = Cluster.build([4], gpu_model=["H100"])
    easy = Policy().with_values({"backfill": "easy"})
    today = simulate(jobs, cluster, easy)
    past = Past(jobs, cluster, today.first_start - jobs.submit, 0, 3 * DAY)
    found = search(past, easy, Goals(), aims={"packing"})
    names = {one.name for one in found.tried}
    assert "backfill_greedy + share_timeslice" in names


def test_it_can_be_replayed_and_said():
    assert replayable(applied(WHOLE, CHANGE))
    for language in LANGUAGES:
        words = Words(language)
        for part in ("change", "change_how", "change_risk"):
            assert words.say(f"{part}.share_timeslice")
