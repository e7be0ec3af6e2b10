"""Limits of teams as candidates: what is tried, who is guarded, where it stops paying."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler_advisor.calibration.calibrate import calibrate
from scheduler_advisor.calibration.cluster_rules import with_rules
from scheduler_advisor.calibration.in_force import policy_of
from scheduler_advisor.calibration.rules import caps_of
from scheduler_advisor.diagnosis.aims import aims
from scheduler_advisor.diagnosis.diagnose import diagnose
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.goals import Goals, parse_goals
from scheduler_advisor.handover.handover import snippets, target_of
from scheduler_advisor.not_resumable import not_resumable
from scheduler_advisor.past import Past
from scheduler_advisor.quota_use import QueueUse
from scheduler_advisor.search.alter import World, altered
from scheduler_advisor.search.bench import Trial, bench_of, run_trial
from scheduler_advisor.search.boundary import boundaries
from scheduler_advisor.search.candidate import candidate, harmed
from scheduler_advisor.search.catalogue import LIMITS, Change, Part, applied, said
from scheduler_advisor.search.choose import chosen
from scheduler_advisor.search.quota_changes import quota_changes, shares_of
from scheduler_advisor.search.search import search
from scheduler_advisor.search.usable import usable
from scheduler_advisor.workers import Inline

DAYS = 14
SETTINGS = {
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_max_job_test=40",
    "SelectTypeParameters": "CR_Core",
    "PriorityType": "priority/basic",
    "AccountingStorageEnforce": "associations,limits,qos",
    "AccountingStorageTRES": "cpu,mem,gres/gpu",
    "account.bio.GrpTRES": "gres/gpu=20",
    "account.chem.GrpTRES": "gres/gpu=24",
    "account.ml.GrpTRES": "gres/gpu=20",
}


@pytest.fixture(scope="module")
def past(planted):
    """Two weeks in which ml waits at its limit and bio leaves most of its own unused."""
    site = planted.sites["quota"]
    made, _ = planted.past_of(planted.play(planted.arrivals(site, 5, DAYS), site.rules), DAYS)
    return made


@pytest.fixture(scope="module")
def policy(past):
    return policy_of(SETTINGS, past.jobs).policy


def named(changes):
    return {change.name: change for change in changes}


def tried(past, policy, change):
    bench = bench_of(past, Goals())
    base, trial = Trial(policy), Trial(applied(policy, change), World(limits=change.limits))
    today, found = run_trial(bench, base), run_trial(bench, trial)
    return bench, candidate(bench, (change,), (base, trial), today, found)


def test_limits_in_force_are_lifted_widened_moved_and_lent(past, policy):
    found = named(quota_changes(past, policy, resumes=False))
    assert {said(name)[0] for name in found} == {
        "limits_off", "limits_wider", "limits_to_shares", "borrow_half", "limit_move",
    }  # fmt: skip
    wider = applied(policy, found["limits_wider"])
    assert [queue.maximum for queue in wider.quota.queues] == [30, 36, 30]
    assert {queue.maximum for queue in applied(policy, found["limits_off"]).quota.queues} == {None}
    half = applied(policy, found["borrow_half"])
    assert [(q.guarantee, q.maximum, q.lend) for q in half.quota.queues] == [
        (20, None, 10), (24, None, 12), (20, None, 10),
    ]  # fmt: skip
    [large, small] = [name for name in found if name.startswith("limit_move")]
    assert said(large)[1]["giver"] == "bio"
    assert said(large)[1]["taker"] == "ml"
    assert int(said(large)[1]["gpus"]) > int(said(small)[1]["gpus"]) > 0
    moved = {q.name: q.maximum for q in applied(policy, found[large]).quota.queues}
    assert moved["bio"] + moved["ml"] == 40
    assert found["limits_off"].owners == ("bio",)


def test_lent_gpus_are_taken_back_only_where_work_resumes_and_may_be_stopped(past, policy):
    able = replace(past, jobs=past.jobs.changed(preemptible=np.ones(len(past.jobs), int)))
    names = {change.name for sets in usable(able, policy, Goals(), {LIMITS}).sets
             for change in sets}  # fmt: skip
    assert "borrow_reclaim" in names
    assert named(quota_changes(able, policy, resumes=True))["borrow_reclaim"].disrupts
    never = parse_goals('[never]\npreempt = [{team = "bio"}]\n', "goals")
    names = {change.name for sets in usable(able, policy, never, {LIMITS}).sets for change in sets}
    assert "borrow_reclaim" not in names
    assert "borrow_half" in names


def test_who_could_not_resume_is_told_where_lent_gpus_are_taken_back(past, policy):
    half = np.arange(len(past.jobs)) % 2
    able = replace(past, jobs=past.jobs.changed(preemptible=half))
    change = named(quota_changes(able, policy, resumes=True))["borrow_reclaim"]
    bench, each = tried(able, policy, change)
    assert each.found.preemptions > 0
    [unable] = not_resumable(able, [each], Inline())
    assert unable.change == "borrow_reclaim"
    assert unable.count > 0
    swept = {bound.assumption for bound in boundaries(bench, [each], Inline())[each.name]}
    assert swept == {"load", "returns", "checkpoint"}


def test_without_the_cause_they_are_left_out_and_named(past, policy):
    left = usable(past, policy, Goals(), frozenset())
    assert {"limits_off", "limits_wider", "borrow_half"} <= set(left.unprompted)
    assert not any(change.part is Part.QUOTA for sets in left.sets for change in sets)


def test_an_owner_who_would_wait_an_hour_for_its_own_is_guarded(past, policy):
    keys = {"quota.queues.bio.maximum": 6, "quota.queues.ml.maximum": 34}
    change = Change("limit_move:14:bio:ml", Part.QUOTA, keys, owners=("bio",))
    _, each = tried(past, policy, change)
    waits = {own.name: own.p95_s for own in each.found.team_waits}
    assert waits["ml"] == 0
    assert waits["bio"] > 3600
    assert "team:bio" in each.harms
    assert each.gain == "none"
    assert "team:bio" not in harmed(each.today, each.found)  # other changes are not judged by team


def test_what_was_lent_stops_paying_when_the_teams_that_lend_come_back(past, policy):
    change = named(quota_changes(past, policy, resumes=False))["limits_off"]
    bench, each = tried(past, policy, change)
    assert each.gain == "capacity"
    [bound] = [b for b in boundaries(bench, [each], Inline())[each.name]
               if b.assumption == "returns"]  # fmt: skip
    assert bound.values == (0.5, 1.0, 1.5, 2.0, 3.0)
    assert bound.gains[0] > bound.gains[-1]
    world = World(returns=3.0, owners=("bio",), owners_by="account")
    jobs = altered(past, world).jobs
    own = past.jobs.account.codes == past.jobs.account.names.index("bio")
    assert (jobs.run[own] == 3 * past.jobs.run[own]).all()
    assert (jobs.run[~own] == past.jobs.run[~own]).all()


def test_of_changes_that_bring_as_much_the_gentlest_is_advised(past, policy):
    found = named(quota_changes(past, policy, resumes=False))
    each = [tried(past, policy, found[name])[1]
            for name in ("limits_off", "limits_to_shares", "limits_wider")]  # fmt: skip
    assert [one.name for one in chosen(each, Goals())] == ["limits_wider"]


def test_a_limit_per_user_is_raised_to_a_share_and_handed_over(planted, past):
    site = planted.sites["quota"]
    users = [f"u{job % 4}" for job in range(len(past.jobs))]
    limit = Limit(Scope.USER, max_gpus=6, qos="normal")
    jobs = past.jobs.changed(user=users, qos=["normal"] * len(users))
    ruled = replace(past, jobs=jobs, cluster=replace(past.cluster, limits=(limit,)))
    found = named(quota_changes(ruled, Policy(), resumes=False, measured=False))
    assert found.keys() == {"user_limits_share:16", "user_limits_off"}
    raised = found["user_limits_share:16"]
    assert raised.limits == (replace(limit, max_gpus=16),)
    assert found["user_limits_off"].limits == ()
    target = target_of(ruled.cluster, {"SchedulerType": "sched/backfill",
                                       "qos.normal.MaxTRESPU": "cpu=99,gres/gpu=6"})  # fmt: skip
    made = snippets([raised], target)
    assert set(made) == {"slurm"}
    [snippet] = made["slurm"]
    assert snippet.apply == "sacctmgr -i modify qos normal set MaxTRESPU=gres/gpu=16"
    assert snippet.rollback == "sacctmgr -i modify qos normal set MaxTRESPU=cpu=99,gres/gpu=6"
    assert "maxtrespu" in snippet.verify
    assert site.rules.limits


def test_every_change_of_limits_is_handed_over_with_its_way_back(past, policy):
    target = target_of(past.cluster, SETTINGS)
    changes = quota_changes(past, policy, resumes=True)
    made = {said(change.name)[0]: snippets([change], target, policy) for change in changes}
    [move] = made["limit_move"]["slurm"][:1]
    assert {"slurm", "kueue", "volcano", "kai", "yarn"} <= set(made["limits_wider"])
    assert {"slurm", "kueue", "volcano", "kai"} <= set(made["borrow_reclaim"])
    assert set(made["borrow_half"]) == {"kueue"}
    assert "slurm" in made["limits_to_shares"]
    assert "modify account ml set GrpTRES" in move.apply
    assert "modify account bio set GrpTRES=gres/gpu=20" in move.rollback
    assert "modify account ml set GrpTRES=gres/gpu=20" in move.rollback
    [wider] = made["limits_wider"]["slurm"]
    assert wider.apply.splitlines() == [
        "sacctmgr -i modify account bio set GrpTRES=gres/gpu=30",
        "sacctmgr -i modify account chem set GrpTRES=gres/gpu=36",
        "sacctmgr -i modify account ml set GrpTRES=gres/gpu=30",
    ]
    assert "sacctmgr show assoc" in wider.verify


def test_shares_are_max_min_fair_of_what_teams_ask_for():
    teams = [QueueUse("a", 0, 4.0, 0), QueueUse("b", 0, 50.0, 0), QueueUse("c", 0, 90.0, 0)]
    assert shares_of(teams, 64) == {"a": 4, "b": 30, "c": 30}


def test_a_past_without_real_starts_tries_what_needs_no_measure(past, policy):
    bare: Past = replace(past, wait_s=None)
    names = set(named(quota_changes(bare, policy, resumes=False)))
    assert names == {"limits_off", "limits_wider", "limits_to_shares", "borrow_half"}


def test_a_limit_per_user_that_leaves_gpus_free_is_named_and_raised(planted):
    site = planted.sites["quota"]
    base, seen = planted.past_of(planted.play(planted.arrivals(site, 4, DAYS), site.fixed), DAYS)
    users = [f"u{job % 5}" if job % 3 else "heavy" for job in range(len(base.jobs))]
    jobs = base.jobs.changed(user=users, qos=["normal"] * len(users))
    settings = SETTINGS | {"qos.normal.MaxTRESPU": "gres/gpu=10"}
    settings = {key: value for key, value in settings.items() if not key.startswith("account.")}
    ruled = with_rules(base.cluster, settings)
    outcome = simulate(jobs, ruled, policy_of(settings, jobs).policy)
    past = replace(base, jobs=jobs, wait_s=outcome.first_start - jobs.submit)
    found = calibrate(past, settings)
    assert found.grade == "A"
    diagnosis = diagnose(bench_of(past, Goals()), placed(outcome, seen), caps_of(settings, past))
    assert diagnosis.leading == "quota"
    tried = search(found.past, found.policy, Goals(), aims=aims(diagnosis, past, Goals()))
    assert said(tried.best[0].name)[0] in ("user_limits_share", "user_limits_off")
    assert snippets(tried.best[0].changes, target_of(found.past.cluster, settings))["slurm"]


def placed(outcome, seen):
    """Where the replayed jobs lay; each holds GPUs of one node."""
    jobs = np.arange(len(outcome.jobs))
    nodes = outcome.place_node[outcome.place_start]
    gpus = outcome.jobs.gpus.astype(float)
    return replace(seen, job=jobs, node=nodes, gpus=gpus, cpu_milli=gpus * 6000,
                   mem_mib=np.zeros(len(jobs)))  # fmt: skip


def test_limits_that_never_bind_are_no_reason_for_advice(planted):
    site = planted.sites["healthy"]
    rules = replace(site.rules, limits=(("bio", 48), ("ml", 60)))
    site = replace(site, rules=rules, teams=(("bio", 0.4), ("ml", 0.6)))
    past, seen = planted.past_of(planted.play(planted.arrivals(site, 2, DAYS), rules), DAYS)
    settings = SETTINGS | {"PriorityType": "priority/multifactor"}
    settings = {k: v for k, v in settings.items() if not k.startswith("account.")}
    settings |= {"account.bio.GrpTRES": "gres/gpu=48", "account.ml.GrpTRES": "gres/gpu=60"}
    found = calibrate(past, settings)
    diagnosis = diagnose(bench_of(past, Goals()), seen, caps_of(settings, past))
    assert diagnosis.leading == "nothing"
    tried = search(found.past, found.policy, Goals(), aims=aims(diagnosis, past, Goals()))
    assert tried.best == ()
    assert "limits_off" in tried.not_tried
