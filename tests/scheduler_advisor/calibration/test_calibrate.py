"""The policy in force is read or found; the grade says how far the replay can be trusted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from scheduler_advisor.calibration.calibrate import calibrate
from scheduler_advisor.calibration.cluster_rules import with_rules
from scheduler_advisor.calibration.compare import compare, rank_correlation
from scheduler_advisor.calibration.grade import Grade, Ungraded
from scheduler_advisor.calibration.in_force import policy_of, stored_settings
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.limits import Limit, Partition, Scope
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.past import past_of
from scheduler_advisor.readers.jobs import read_jobs
from scheduler_advisor.report.replay_json import calibration_json

T0 = datetime(2026, 10, 5, tzinfo=UTC)
SLURM = {
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=30,bf_max_job_test=77",
    "SelectTypeParameters": "CR_CORE_MEMORY,CR_LLN",
    "PriorityType": "priority/basic",
    "PreemptType": "preempt/none",
    "partition.low.MaxTime": "01:00:00",
    "partition.low.PriorityTier": "3",
    "partition.low.MaxNodes": "2",
    "qos.normal.MaxTRESPU": "cpu=64,gres/gpu=8",
    "qos.normal.MaxJobsPA": "5",
}


@pytest.mark.parametrize(
    "values",
    [{"order": "priority", "backfill": "easy"}, {"backfill": "none"},
     {"backfill": "easy", "placement": "worst-fit"}, {"order": "largest-first",
                                                      "backfill": "greedy"}],
)  # fmt: skip
def test_a_policy_that_really_ruled_is_found_and_graded_a(made_past, values):
    policy = Policy().with_values(values)
    found = calibrate(made_past(policy))
    assert found.in_force.source == "search"
    assert found.grade is Grade.A
    assert found.found.replay_mean_wait_s == pytest.approx(found.found.real_mean_wait_s, rel=0.05)


def test_settings_name_the_policy_before_any_search(made_past):
    past = made_past(Policy().with_values({"backfill": "easy", "placement": "worst-fit"}))
    found = calibrate(past, SLURM)
    policy = found.policy
    assert found.in_force.source == "settings"
    assert (policy.backfill, policy.backfill_depth, policy.placement, policy.order) == (
        "easy", 77, "worst-fit", "fifo",
    )  # fmt: skip
    assert found.tried == ()
    assert found.grade is Grade.A


def test_multifactor_priority_is_said_to_be_approximated(made_past):
    past = made_past(Policy())
    read = policy_of(SLURM | {"PriorityType": "priority/multifactor"}, past.jobs)
    assert read.policy.order == "priority"
    assert any("multifactor" in remark for remark in read.remarks)
    assert policy_of({"ClusterName": "x"}, past.jobs) is None


def test_limits_of_partitions_and_qos_bind_the_replay():
    cluster = Cluster.build([8, 8], names=["a", "b"], partitions=(Partition("low", ("a", "b")),))
    ruled = with_rules(cluster, SLURM)
    [part] = ruled.partitions
    assert (part.max_limit_s, part.tier, part.max_nodes_per_job) == (3600, 3, 2)
    assert ruled.limits == (
        Limit(Scope.USER, max_gpus=8, qos="normal"),
        Limit(Scope.ACCOUNT, max_jobs=5, qos="normal"),
    )


def test_a_limit_per_user_that_the_facts_do_not_hold_is_suspected(made_past):
    past = made_past(Policy().with_values({"backfill": "easy"}), load=0.5)
    # One user whose next job only starts when the one before has ended, on an empty cluster.
    size = len(past.jobs)
    jobs = past.jobs.changed(user=["ada"] * size, gpus=np.ones(size, int),
                             gpus_per_task=np.ones(size, int), run=np.full(size, 1300))  # fmt: skip
    ends = np.zeros(size, np.int64)
    starts = np.zeros(size, np.int64)
    for place in range(size):
        starts[place] = max(jobs.submit[place], ends[place - 1] if place else 0)
        ends[place] = starts[place] + 1300
    found = calibrate(replace(past, jobs=jobs, wait_s=starts - jobs.submit))
    assert found.grade is Grade.D
    assert found.mismatches[0].cause == "user_limit"


def test_without_real_starts_or_with_few_jobs_there_is_no_grade(made_past):
    past = made_past(Policy())
    bare = calibrate(replace(past, wait_s=None))
    assert bare.grade is Grade.NONE
    assert not bare.grade.promises
    few = replace(past, until=int(past.jobs.submit[20]))
    assert calibrate(few).grade is Grade.NONE


def late(past, seconds, seed=5):
    """The same past with jobs that all start that late on average, whatever was free."""
    rng = np.random.default_rng(seed)
    return replace(past, wait_s=rng.integers(0, 2 * seconds, len(past.jobs)))


@pytest.mark.parametrize("settings", [{}, SLURM])
def test_where_no_queue_formed_the_starts_grade_nothing(made_past, settings):
    # A minute or two of start-up beside free GPUs says nothing of order or placement.
    past = late(made_past(Policy(), nodes=60, load=0.03), 65)
    found = calibrate(past, settings)
    assert found.ungraded is Ungraded.NO_QUEUE
    assert found.grade is Grade.NONE
    assert found.found.contested == 0
    assert found.found.real_mean_wait_s == pytest.approx(65, abs=5)
    assert (found.marks, found.mismatches, found.tried) == ((), (), ())
    assert found.in_force.source == ("settings" if settings else "assumed")


def test_long_waits_beside_free_gpus_are_graded_and_badly(made_past):
    # Hours of waiting are somebody's decision, even if no fact says whose.
    found = calibrate(late(made_past(Policy(), nodes=60, load=0.03), 7200))
    assert found.found.contested == 0
    assert found.ungraded is None
    assert found.grade is Grade.D


def test_short_waits_for_gpus_are_a_queue(made_past):
    # Jobs of a minute on a busy cluster wait for seconds, but for GPUs.
    past = made_past(Policy(), load=0.95)
    jobs = past.jobs.changed(**{name: getattr(past.jobs, name) // 1000
                                for name in ("submit", "eligible", "run")})  # fmt: skip
    short = replace(past, jobs=jobs, wait_s=past.wait_s // 1000, until=past.until // 1000 + 1)
    found = calibrate(short)
    assert found.found.real_mean_wait_s < 300
    assert found.found.contested >= 50
    assert found.ungraded is None


def test_ranks_of_ties_are_their_mean():
    one = np.array([1.0, 1.0, 2.0, 3.0])
    assert rank_correlation(one, one) == pytest.approx(1)
    assert rank_correlation(one, -one) == pytest.approx(-1)
    assert rank_correlation(one, np.zeros(4)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "gpus"), [("KTH-SP2", 100), ("wagap-2013", 1531)])
def test_graded_reports_of_real_logs(shared_data, golden, trace, gpus):
    read = read_jobs(shared_data / "traces" / "swf" / f"{trace}.swf")
    found = calibrate(past_of(read, Cluster.pool(gpus), name=trace))
    document = calibration_json(found)
    # What a published simulator does on KTH under EASY is less than half of the real waits: the
    # grade must say that nothing can be promised from such a log, and why.
    assert found.grade is Grade.D
    assert found.found.replay_mean_wait_s < 0.6 * found.found.real_mean_wait_s
    for name in ("occupancy", "settings", "policy"):
        document.pop(name)
    golden(f"calibration_{trace}", document)


WEIGHED = {
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_max_job_test=100",
    "SelectTypeParameters": "CR_CORE_MEMORY",
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityWeightQOS": "10000",
    "PriorityWeightJobSize": "0",
    "PriorityWeightTRES": "CPU=5,GRES/gpu=2000",
    "PriorityMaxAge": "2-00:00:00",
    "PriorityDecayHalfLife": "7-00:00:00",
    "PriorityCalcPeriod": "00:05:00",
    "qos.high.Priority": "100",
    "qos.normal.Priority": "10",
    "partition.low.PriorityJobFactor": "3",
}


def test_stored_weights_become_the_multifactor_order(made_past):
    read = policy_of(WEIGHED, made_past(Policy()).jobs)
    policy = read.policy
    weights = policy.multifactor
    assert policy.order == "multifactor"
    assert (weights.age, weights.qos, weights.tres_gpu, weights.tres_cpu) == (1000, 10000, 2000, 5)
    assert (weights.site, weights.max_age_s) == (0, 2 * 86_400)
    assert weights.qos_priority == (("high", 100), ("normal", 10))
    assert weights.partition_priority == (("low", 3),)
    assert policy.fair.half_life_s == 7 * 86_400
    assert not [remark for remark in read.remarks if "not replayed" in remark]


def test_a_multifactor_cluster_is_repeated_by_its_weights_and_not_by_its_priorities(made_past):
    base = made_past(Policy(), load=1.1)
    size = len(base.jobs)
    jobs = base.jobs.changed(qos=["high" if job % 7 == 0 else "normal" for job in range(size)],
                             user=[f"u{job % 5}" for job in range(size)])  # fmt: skip
    ruled = policy_of(WEIGHED, jobs).policy
    outcome = simulate(jobs, base.cluster, ruled)
    # Accounting keeps the priority at the start: age counts in it, and so it tells little.
    kept = jobs.changed(priority=(outcome.first_start - jobs.submit) // 60)
    past = replace(base, jobs=kept, wait_s=outcome.first_start - jobs.submit)
    found = calibrate(past, WEIGHED)
    assert found.policy.order == "multifactor"
    assert found.grade is Grade.A
    plain = policy_of(WEIGHED, kept, weighed=False)
    assert plain.policy.order == "priority"
    stood_in = compare(past, simulate(kept, past.cluster, plain.policy))
    assert stood_in.score > 2 * found.found.score + 0.05


def test_a_bad_first_reading_is_replaced_by_a_nearer_one_of_the_same_settings(made_past):
    # The controller says multifactor with weights, but what ran was the priority of each job.
    past = made_past(Policy().with_values({"order": "priority", "backfill": "easy"}), load=1.1)
    found = calibrate(past, WEIGHED | {"PriorityWeightJobSize": "50000"})
    assert found.in_force.source == "settings"
    assert found.policy.order == "priority"
    assert found.grade is Grade.A
    assert len(found.tried) >= 1


LIMITED = {
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_max_job_test=100",
    "SelectTypeParameters": "CR_CORE_MEMORY",
    "PriorityType": "priority/basic",
    "AccountingStorageEnforce": "associations,limits,qos",
    "account.science.GrpTRES": "cpu=900,gres/gpu=14",
    "account.science.Parent": "root",
    "account.bio.GrpTRES": "gres/gpu=9",
    "account.bio.Parent": "science",
    "account.chem.Parent": "science",
    "account.ml.GrpTRES": "gres/gpu=12",
    "account.ml.Parent": "root",
    "user.ml/u0.GrpTRES": "gres/gpu=8",
}


def limited_past(made_past, settings=LIMITED):
    """600 jobs of three accounts under limits, and what the scheduler said of those they held."""
    base = made_past(Policy(), load=0.7)
    size = len(base.jobs)
    jobs = base.jobs.changed(
        account=[("bio", "chem", "ml", "ml")[job % 4] for job in range(size)],
        user=[f"u{job % 3}" for job in range(size)], run=base.jobs.run,
    )  # fmt: skip
    outcome = simulate(jobs, base.cluster, policy_of(settings, jobs).policy)
    free = simulate(jobs, base.cluster, Policy(backfill="easy", backfill_depth=100))
    wait = outcome.first_start - jobs.submit
    by_limit = wait > (free.first_start - jobs.submit) + 600
    return replace(base, jobs=jobs, wait_s=wait, by_limit=by_limit.astype(np.int64))


def test_limits_of_accounts_and_users_are_quotas_and_repeat_what_happened(made_past):
    past = limited_past(made_past)
    found = calibrate(past, LIMITED)
    quota = found.policy.quota
    assert quota.by == "account/user"
    assert {q.name: (q.maximum, q.parent) for q in quota.queues} == {
        "science": (14, ""), "bio": (9, "science"), "chem": (None, "science"), "ml": (12, ""),
        "ml/u0": (8, ""),
    }  # fmt: skip
    assert found.grade is Grade.A
    assert any("quotas of GPUs" in remark for remark in found.in_force.remarks)


def test_limits_that_no_setting_tells_are_named_and_taken_from_the_schedulers_reasons(made_past):
    settings = {key: value for key, value in LIMITED.items() if not key.startswith("user")}
    past = limited_past(made_past, settings)
    rest = {key: value for key, value in settings.items() if not key.startswith("account")}
    without = calibrate(replace(past, by_limit=None), rest)
    assert without.grade is Grade.D
    assert without.found.replay_mean_wait_s < 0.5 * without.found.real_mean_wait_s
    assert without.mismatches[0].cause in ("held_back", "user_limit")
    # A limit per user of another QoS is known, so that the reasons stand for none of all users.
    known = rest | {"qos.other.MaxTRESPU": "gres/gpu=64"}
    named = calibrate(replace(past, by_limit=2 * past.by_limit), known)
    assert named.mismatches[0].cause == "quota"
    assert named.mismatches[0].evidence > 0.5
    told = calibrate(past, rest)
    assert {q.name: q.maximum for q in told.policy.quota.queues}["ml"] == 12
    assert told.found.score < 0.5 * without.found.score
    assert any("by the reasons" in remark for remark in told.in_force.remarks)


def test_limits_that_slurm_does_not_enforce_or_that_were_exceeded_bind_nobody(made_past):
    past = replace(limited_past(made_past), by_limit=None)
    off = calibrate(past, LIMITED | {"AccountingStorageEnforce": "associations"})
    assert off.policy.quota.queues == ()
    assert any("not enforced" in remark for remark in off.in_force.remarks)
    lower = calibrate(past, LIMITED | {"account.ml.GrpTRES": "gres/gpu=6"})
    assert "ml" not in {queue.name for queue in lower.policy.quota.queues}
    assert any("account.ml.GrpTRES" in remark for remark in lower.in_force.remarks)


def test_what_qos_may_hold_in_all_is_a_quota_where_no_account_has_one(made_past):
    past = made_past(Policy())
    jobs = past.jobs.changed(qos=["a" if job % 2 else "b" for job in range(len(past.jobs))])
    settings = SLURM | {"qos.a.GrpTRES": "gres/gpu=20", "qos.a.GrpJobs": "9"}
    read = policy_of(settings, jobs)
    assert read.policy.quota.by == "qos"
    assert [(queue.name, queue.maximum) for queue in read.policy.quota.queues] == [("a", 20)]
    ruled = with_rules(past.cluster, settings, queues_are_qos=True)
    assert [e for e in ruled.limits if e.qos == "a"] == [Limit(Scope.ALL, max_jobs=9, qos="a")]


def test_the_qos_of_a_partition_limits_all_jobs_in_it(made_past):
    past = made_past(Policy())
    settings = SLURM | {"partition.low.QoS": "p", "qos.p.MaxTRESPU": "gres/gpu=4"}
    limits = with_rules(past.cluster, settings).limits
    assert Limit(Scope.USER, max_gpus=4, partition="low") in limits
    jobs = past.jobs.changed(partitions=["low|high"] * 300 + ["high"] * 300, user=["u"] * 600)
    ruled = replace(past.cluster, limits=(Limit(Scope.USER, max_gpus=8, partition="low"),))
    outcome = simulate(jobs, ruled, Policy())
    assert held_most(outcome, np.arange(600) < 300) == 8
    assert held_most(outcome, np.arange(600) >= 300) > 8


def held_most(outcome, own):
    starts, ends = outcome.start[own], outcome.end[own]
    gpus = outcome.jobs.gpus[own]
    return max(int(gpus[(starts <= at) & (at < ends)].sum()) for at in starts)


def test_quotas_of_other_schedulers_are_caps_or_guarantees_where_they_were_exceeded(
    store, made_past
):
    with store.work() as work:
        rows = (("bio-a", "bio", 9), ("bio-b", "bio", 3), ("ml", "ml", 6), ("chem", "chem", 40))
        work.append("quota", {
            "cluster": ["c"] * 4, "name": [row[0] for row in rows],
            "account": [row[1] for row in rows], "gpus": [row[2] for row in rows],
            "valid_from": [T0] * 4, "source": ["t"] * 4,
        })  # fmt: skip
    settings = stored_settings(store, "c", T0)
    assert settings == {"quota.bio.gpus": "12", "quota.chem.gpus": "40", "quota.ml.gpus": "6"}
    past = limited_past(made_past)  # bio held 9 at most, ml up to 12
    found = calibrate(past, settings)
    quotas = {q.name: (q.guarantee, q.maximum) for q in found.policy.quota.queues}
    assert quotas == {"bio": (12, 12), "chem": (40, 40), "ml": (6, None)}
