"""What the diagnosis makes the search try, and what nodes are worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler_advisor.diagnosis.aims import team_fairness
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.goals import Goals, parse_goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.again import drawn, kinds_of_days
from scheduler_advisor.search.nodes import to_give_back
from scheduler_advisor.search.search import search
from scheduler_advisor.search.usable import usable

DAY = 86_400
EASY = Policy().with_values({"backfill": "easy"})


def a_past(load=0.5, *, nodes=20, days=14, count=1200, seed=2, **columns):
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1, 2, 4, 8], count, p=[0.4, 0.3, 0.2, 0.1])
    run = rng.lognormal(8.5, 0.6, count)
    run *= load * nodes * 8 * days * DAY / float((gpus * run).sum())
    jobs = Jobs.build(
        submit=np.sort(rng.integers(0, days * DAY, count)), run=run.astype(int) + 60,
        limit=(run * 2).astype(int) + 60, gpus=gpus, tasks=np.ones(count, int), gpus_per_task=gpus,
        **columns,
    )  # fmt: skip
    cluster = Cluster.build([8] * nodes)
    outcome = simulate(jobs, cluster, EASY)
    return Past(jobs, cluster, outcome.first_start - jobs.submit, 0, days * DAY)


def names_of(found):
    """Without what a site fills in."""
    return {change.name.split(":")[0] for changes in found.sets for change in changes}


def test_what_answers_no_cause_is_left_out_and_said():
    past = a_past(gang=np.ones(1200, int), preemptible=np.ones(1200, int))
    nothing = usable(past, EASY, Goals(), ())
    gang = usable(past, EASY, Goals(), {"gang"})
    assert {"fill_15m", "fill_4h", "defrag_nightly"} <= names_of(gang) - names_of(nothing)
    assert set(nothing.unprompted) <= set(nothing.not_tried)
    assert {"fill_15m", "defrag_nightly"} <= {name.split(":")[0] for name in nothing.unprompted}
    everything = usable(past, EASY, Goals(), (), thorough=True)
    assert names_of(gang) <= names_of(everything)
    # The driver that moves jobs keeps no plan for all: then greedy backfill is tried with it.
    planned = EASY.with_values({"backfill": "conservative"})
    assert ("backfill_greedy", "defrag_nightly") in [
        tuple(change.name.split(":")[0] for change in changes)
        for changes in usable(past, planned, Goals(), {"gang"}).sets
    ]


def test_in_a_long_history_only_the_first_who_wait_have_a_plan():
    """With limits of teams a plan is made anew at each pass, which no long history bears."""
    past = a_past()
    again = np.repeat(np.arange(1200), 17)
    many = replace(past, jobs=past.jobs.take(again), wait_s=past.wait_s[again])
    limited = replace(many, cluster=replace(many.cluster, limits=(Limit(Scope.USER, max_gpus=9),)))
    plans = {"backfill_conservative", "backfill_planned"}
    assert plans & names_of(usable(past, EASY, Goals(), ())) == {"backfill_conservative"}
    assert plans & names_of(usable(many, EASY, Goals(), ())) == {"backfill_planned"}
    assert not plans & names_of(usable(limited, EASY, Goals(), ()))


def test_urgency_prompts_guards_for_preemption_only_where_work_resumes():
    urgent = {"priority": [10 * (job % 9 == 0) for job in range(1200)]}
    able = a_past(preemptible=np.ones(1200, int), **urgent)
    assert "preempt_guarded" in names_of(usable(able, EASY, Goals(), {"urgency"}))
    unable = a_past(**urgent)
    assert not {"preempt_guarded", "preempt_priority"} & names_of(
        usable(unable, EASY, Goals(), {"urgency"})
    )
    spared = parse_goals('[never]\npreempt = [{qos = "x"}]\n', "goals")
    assert "preempt_guarded" not in names_of(usable(able, EASY, spared, {"urgency"}))


def test_a_replay_that_would_take_too_long_is_named_and_not_tried():
    past = a_past(gang=np.ones(1200, int), preemptible=np.ones(1200, int))
    many = replace(past, jobs=past.jobs.take(np.repeat(np.arange(1200), 200)))
    found = usable(many, EASY, Goals(), {"gang"})
    assert "defrag_nightly" in {name.split(":")[0] for name in found.slow}
    assert "defrag_nightly" not in names_of(found)


def test_teams_that_fare_alike_need_no_fair_share():
    past = a_past(0.9, team=["a" if job % 2 else "b" for job in range(1200)])
    assert team_fairness(past) == pytest.approx(1, abs=0.05)
    slow = np.where(past.jobs.team.codes == 0, 40 * past.jobs.run, 0)
    assert team_fairness(replace(past, wait_s=slow)) < 0.6
    assert team_fairness(replace(past, wait_s=None)) is None


def test_nodes_that_nobody_needs_can_go_while_the_goals_hold():
    quiet = search(a_past(0.35), EASY, Goals())
    point = to_give_back(quiet.nodes)
    # A third of 20 nodes works all day; beyond, the waits grow.
    assert -10 <= point.nodes <= -4
    assert point.holds
    assert next(each.nodes for each in quiet.nodes if each.holds) == point.nodes
    busy = search(a_past(0.95), EASY, Goals())
    assert to_give_back(busy.nodes) is None
    assert busy.nodes[0].broken


def test_more_nodes_than_there_are_of_their_kind_are_not_taken_away_and_the_search_goes_on():
    past = a_past(0.35)
    mixed = Cluster.build([8] * 19 + [4])
    outcome = simulate(past.jobs, mixed, EASY)
    mixed_past = replace(past, cluster=mixed, wait_s=outcome.first_start - past.jobs.submit)
    found = search(mixed_past, EASY, Goals())
    # One node in twenty can go; two of the kind of the last one do not exist.
    assert {point.nodes for point in found.nodes if point.nodes < 0} <= {-1}
    assert {point.nodes for point in found.nodes if point.nodes > 0}
    assert found.tried


def test_a_placement_that_large_nodes_do_not_go_with_is_named_as_not_tried():
    past = a_past(0.8, nodes=20)
    large = Cluster.build([80, 80])
    outcome = simulate(past.jobs, large, EASY)
    found = search(
        replace(past, cluster=large, wait_s=outcome.first_start - past.jobs.submit), EASY, Goals(),
        thorough=True,
    )  # fmt: skip
    assert "fgd" in found.left_out.unknown
    assert "fgd" not in {change.name for each in found.tried for change in each.changes}


def test_a_goal_of_a_class_decides_how_few_nodes_are_enough():
    goals = '[[class]]\nname="now"\nmatch={{qos="now"}}\nmax_wait_p95="{wait}"\n'
    past = a_past(0.85, qos=["now" if job % 5 == 0 else "later" for job in range(1200)])
    loose = search(past, EASY, parse_goals(goals.format(wait="2w"), "g"))
    strict = search(past, EASY, parse_goals(goals.format(wait="1m"), "g"))
    assert not [point for point in loose.nodes if {"now", "urgent"} & set(point.broken)]
    late = [point for point in strict.nodes if "now" in point.broken]
    assert late
    for point in late:
        waits = {each.name: each for each in point.candidate.found.class_waits}
        assert waits["now"].p95_s > waits["now"].goal_s == 60
    assert {each.name for each in strict.today.class_waits} >= {"now", "other"}


def test_a_change_is_worth_the_gpus_that_cut_the_same_wait():
    past = a_past(0.85)
    spread = EASY.with_values({"placement": "worst-fit"})
    outcome = simulate(past.jobs, past.cluster, spread)
    past = replace(past, wait_s=outcome.first_start - past.jobs.submit)
    found = search(past, spread, Goals())
    assert found.best
    worth = found.worth
    assert worth.helps
    if worth.nodes is None:  # more than a fifth of the fleet
        most = max(found.nodes, key=lambda point: point.nodes).candidate
        assert most.found.mean_wait_s > found.best[0].found.mean_wait_s
    else:
        assert worth.gpus == pytest.approx(8 * worth.nodes)


def test_drawn_months_hold_the_same_days_in_another_order():
    past = a_past(0.7, days=14)
    kinds = kinds_of_days(past)
    one, order = drawn(past, 0, kinds)
    again, _ = drawn(past, 0, kinds)
    other, _ = drawn(past, 1, kinds)
    assert one.jobs.submit.tolist() == again.jobs.submit.tolist()
    assert one.jobs.submit.tolist() != other.jobs.submit.tolist()
    assert (np.diff(one.jobs.submit) >= 0).all()
    assert one.jobs.run.tolist() == past.jobs.run[order].tolist()
    # The hour of the day stays; the weekday only where weekdays differ (test_other_months.py).
    moved = one.jobs.submit - past.jobs.submit[order]
    assert (moved % DAY == 0).all()
