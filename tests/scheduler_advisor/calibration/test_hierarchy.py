"""Of several limits on one job that counts which Slurm takes: a QoS goes before accounts.

What a real Slurm (22.05) said of such limits lies in `recorded/limits` of the tests on a real one:
account nlp may hold 4 GPUs and its user 3; QoS burst 10, and 9 for each user. Jobs 1 (8 GPUs), 2
(3) and 4 (8) are burst's, job 3 (2) is not.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collector.slurm.settings import settings as settings_of
from scheduler_advisor.calibration.calibrate import calibrate
from scheduler_advisor.calibration.cluster_rules import with_rules
from scheduler_advisor.calibration.enforced import enforced
from scheduler_advisor.calibration.quotas import quotas_of
from scheduler_advisor.calibration.rules import caps_of, rules_of
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, Partition, Scope
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.reference import reference
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.handover.handover import snippets, target_of
from scheduler_advisor.past import Past
from scheduler_advisor.search.quota_changes import quota_changes

RECORDED = Path(__file__).parents[2] / "real_slurm" / "recorded" / "limits"
CONFIG = {
    "SchedulerType": "sched/backfill", "PriorityType": "priority/basic",
    "AccountingStorageEnforce": "associations,limits,qos",
}  # fmt: skip


@pytest.fixture
def recorded():
    """The settings as the real Slurm showed them."""
    qos, assoc = ((RECORDED / f"{name}.txt").read_text() for name in ("qos", "assoc"))
    return settings_of(CONFIG, "", qos, assoc, "lab")


def seen(number):
    """What squeue showed: jobs that ran, and why the others waited."""
    table = (RECORDED / "squeue.txt").read_text().split("\n\n")[number]
    rows = [line.split() for line in table.strip().splitlines()[1:]]
    return {int(row[0]): "runs" if row[3] == "RUNNING" else row[4] for row in rows}


def four_jobs(submit=(0, 1, 2, 700)):
    return Jobs.build(
        submit=list(submit), run=[600] * 4, limit=[900] * 4, gpus=[8, 3, 2, 8], tasks=[1] * 4,
        gpus_per_task=[8, 3, 2, 8], account=["nlp"] * 4, user=["unstrand_ada"] * 4,
        qos=["burst", "burst", "normal", "burst"], priority=[0] * 4,
    )  # fmt: skip


def past_of_four(jobs):
    return Past(jobs, Cluster.build([8, 8, 8]), None, 0, 86_400)


def test_limits_are_read_as_a_real_slurm_shows_them(recorded):
    assert recorded == CONFIG | {
        "account.nlp.GrpJobs": "9", "account.nlp.GrpTRES": "gres/gpu=4",
        "account.nlp.Parent": "root", "user.nlp/unstrand_ada.GrpTRES": "gres/gpu=3",
        "user.nlp/unstrand_ada.MaxJobs": "7", "account.vision.GrpTRES": "gres/gpu=12",
        "account.vision.Parent": "root", "account.vision.Share": "5",
        "account.deep.Parent": "vision", "qos.burst.GrpTRES": "gres/gpu=10",
        "qos.burst.MaxTRESPU": "gres/gpu=9", "qos.burst.Flags": "OverPartQOS",
        **{f"qos.{name}.{key}": value for name in ("normal", "burst") for key, value in
           {"Priority": "0", "GraceTime": "00:00:00", "PreemptMode": "cluster"}.items()},
    }  # fmt: skip


def test_who_is_held_back_is_who_the_real_slurm_held_back(recorded):
    caps = caps_of(recorded, past_of_four(four_jobs()))
    held = caps.hold_back(np.array([1, 2]), np.array([0]))
    first = seen(0)
    assert first == {1: "runs", 2: "QOSGrpGRES", 3: "AssocGrpGRES"}
    # What burst's job holds counts against its account, whose limit does not bind it.
    assert held.tolist() == [True, True]
    assert seen(1) == {3: "runs"}
    assert caps.hold_back(np.array([2]), np.array([], int)).tolist() == [False]
    assert seen(2) == {3: "runs", 4: "runs"}
    assert caps.hold_back(np.array([3]), np.array([2])).tolist() == [False]


def test_the_replay_lets_a_qos_with_a_limit_of_its_own_exceed_its_account(recorded):
    jobs = four_jobs()
    ruled = rules_of(recorded, past_of_four(jobs))
    assert ruled.quota.by == "qos"
    assert {rule.name: rule.maximum for rule in ruled.quota.queues} == {"burst": 10}
    policy = replace(Policy(), quota=ruled.quota)
    outcome = simulate(jobs, ruled.cluster, policy)
    # Job 1 has 8 although its account may hold 4; job 2 waits for its end, the QoS is at 10. Job 3
    # waits for both, as they count against its account; job 4 until job 2 has ended.
    assert outcome.first_start.tolist() == [0, 600, 1200, 1200]
    bound = [
        limit for limit in ruled.cluster.limits if limit.max_gpus is not None and limit.account
    ]
    assert bound == [
        Limit(Scope.ALL, max_gpus=4, account="nlp", but_qos=("burst",)),
        Limit(Scope.ALL, max_gpus=3, account="nlp", user="unstrand_ada", but_qos=("burst",)),
    ]


def test_accounts_that_no_job_of_such_a_qos_uses_keep_their_queues(recorded):
    jobs = four_jobs().changed(qos=["normal"] * 4)
    quotas = quotas_of(recorded, jobs)
    assert quotas.limits == ()
    assert quotas.keys["quota.queues.nlp.maximum"] == 4
    assert quotas.keys["quota.queues.nlp/unstrand_ada.maximum"] == 3


def test_an_account_above_counts_the_jobs_of_those_below_but_those_of_the_qos():
    jobs = four_jobs((0, 0, 0, 0)).changed(account=["deep", "vision", "deep", "other"])
    settings = CONFIG | {
        "account.vision.GrpTRES": "gres/gpu=4",
        "account.deep.Parent": "vision",
        "account.vision.Parent": "root",
        "qos.burst.GrpTRES": "gres/gpu=64",
    }
    jobs = jobs.changed(qos=["burst", "normal", "normal", "burst"])
    limits = quotas_of(settings, jobs).limits
    assert limits == (
        Limit(Scope.ALL, max_gpus=4, account="vision", below=("deep",), but_qos=("burst",)),
    )
    cluster = replace(Cluster.build([8, 8, 8]), limits=limits)
    outcome = simulate(jobs, cluster, Policy())
    # Job 1 holds 8 against vision's 4, and 3 and 2 are more than 4 as well.
    assert outcome.first_start.tolist() == [0, 600, 1200, 0]
    slow = reference(jobs, cluster, Policy())
    assert slow.first_start == outcome.first_start.tolist()


PARTED = {
    "partition.low.QoS": "part", "partition.high.QoS": "N/A", "qos.part.MaxTRESPU": "gres/gpu=4",
    "qos.part.GrpJobs": "6", "qos.own.MaxTRESPU": "gres/gpu=8", "qos.own.GrpJobs": "3",
}  # fmt: skip


def rules(settings):
    cluster = Cluster.build([8], names=["a"], partitions=(Partition("low", ("a",)),))
    return set(with_rules(cluster, settings).limits)


def test_the_qos_of_a_partition_goes_before_that_of_the_job():
    assert rules(PARTED) == {
        Limit(Scope.USER, max_gpus=8, qos="own", but_partitions=("low",)),
        Limit(Scope.ALL, max_jobs=3, qos="own", but_partitions=("low",)),
        Limit(Scope.USER, max_gpus=4, qos="part"), Limit(Scope.ALL, max_jobs=6, qos="part"),
        Limit(Scope.USER, max_gpus=4, partition="low"),
        Limit(Scope.ALL, max_jobs=6, partition="low"),
    }  # fmt: skip


def test_a_qos_with_the_flag_goes_before_that_of_the_partition():
    assert rules(PARTED | {"qos.own.Flags": "DenyOnLimit,OverPartQOS"}) == {
        Limit(Scope.USER, max_gpus=8, qos="own"), Limit(Scope.ALL, max_jobs=3, qos="own"),
        Limit(Scope.USER, max_gpus=4, qos="part"), Limit(Scope.ALL, max_jobs=6, qos="part"),
        Limit(Scope.USER, max_gpus=4, partition="low", but_qos=("own",)),
        Limit(Scope.ALL, max_jobs=6, partition="low", but_qos=("own",)),
    }  # fmt: skip


def test_each_kind_of_limit_is_taken_where_it_is_set_first():
    """The job's QoS limits jobs, the partition's GPUs: both hold, and accounts' limits neither."""
    settings = {
        "partition.low.QoS": "part", "qos.part.MaxTRESPU": "gres/gpu=4", "qos.own.MaxJobsPU": "3",
        "account.a.GrpJobs": "9", "account.a.MaxJobs": "2",
    }  # fmt: skip
    assert rules(settings) == {
        Limit(Scope.USER, max_jobs=3, qos="own"), Limit(Scope.USER, max_gpus=4, qos="part"),
        Limit(Scope.USER, max_gpus=4, partition="low"), Limit(Scope.ALL, max_jobs=9, account="a"),
        Limit(Scope.USER, max_jobs=2, account="a", but_qos=("own",)),
    }  # fmt: skip


SHARED = CONFIG | {
    "SchedulerType": "sched/builtin", "account.ml.GrpTRES": "gres/gpu=8",
    "account.bio.GrpTRES": "gres/gpu=16", "qos.burst.GrpTRES": "gres/gpu=24",
}  # fmt: skip


class AsSlurm:
    """Starts in order of submit on the fullest node with room, with SHARED's limits as Slurm has
    them, in the test's own words: burst's jobs count against their account, which binds others."""

    MOST = {"ml": 8, "bio": 16, "burst": 24}  # noqa: RUF012

    def __init__(self, jobs, nodes=4, gpus=8):
        self.jobs, self.free, self.held = jobs, [gpus] * nodes, dict.fromkeys(self.MOST, 0)
        self.waiting, self.running, self.start = [], [], {}

    def starts(self):
        submits = [(int(at), job) for job, at in enumerate(self.jobs.submit)]
        while submits or self.running or self.waiting:
            now = min([at for at, _ in submits[:1]] + [end for end, *_ in self.running])
            for ended in [each for each in self.running if each[0] == now]:
                self.running.remove(ended)
                self.holds(*ended[1:], -1)
            while submits and submits[0][0] == now:
                self.waiting.append(submits.pop(0)[1])
            self.serve(now)
        return np.array([self.start[job] for job in range(len(self.jobs))])

    def serve(self, now):
        for job in list(self.waiting):
            need, first = int(self.jobs.gpus[job]), owners(self.jobs, job)[0]
            if self.held[first] + need > self.MOST[first]:
                continue
            places = [node for node, free in enumerate(self.free) if free >= need]
            if not places:
                return
            node = min(places, key=lambda each: (self.free[each], each))
            self.holds(job, node, 1)
            self.start[job] = now
            self.running.append((now + int(self.jobs.run[job]), job, node))
            self.waiting.remove(job)

    def holds(self, job, node, sign):
        self.free[node] -= sign * int(self.jobs.gpus[job])
        for name in owners(self.jobs, job):
            self.held[name] += sign * int(self.jobs.gpus[job])


def owners(jobs, job):
    """Whose limit binds the job first, then whom else it counts against."""
    account = jobs.account[job]
    return ("burst", account) if jobs.qos[job] == "burst" else (account,)


@pytest.fixture
def bursting(made_past):
    """600 jobs as Slurm would have run them: one in six is burst's, and exceeds ml's limit."""
    base = made_past(Policy(), load=0.6)
    jobs = base.jobs.changed(
        account=["bio" if job % 2 else "ml" for job in range(600)],
        qos=["burst" if job % 6 == 0 else "normal" for job in range(600)],
        user=[f"u{job % 7}" for job in range(600)],
    )
    return replace(base, jobs=jobs, wait_s=AsSlurm(jobs).starts() - jobs.submit)


def test_a_limit_that_only_jobs_of_the_qos_exceed_is_in_force(bursting):
    kept, gone = enforced(SHARED, bursting)
    assert kept == SHARED
    assert gone == ()
    # Without the QoS' limit the same jobs exceed it, and it is not.
    bare = {key: value for key, value in SHARED.items() if not key.startswith("qos.")}
    assert "account.ml.GrpTRES" not in enforced(bare, bursting)[0]


def test_such_limits_repeat_what_happened_and_are_handed_over(bursting):
    found = calibrate(bursting, SHARED)
    assert found.grade == "A"
    assert any("QoS burst" in remark for remark in found.in_force.remarks)
    changes = {each.name: each for each in quota_changes(found.past, found.policy, resumes=False)}
    target = target_of(found.past.cluster, SHARED)
    [off] = snippets([changes["limits_off"]], target, found.policy)["slurm"]
    assert [line for line in off.apply.splitlines() if line.startswith("sacctmgr")] == [
        "sacctmgr -i modify qos burst set GrpTRES=gres/gpu=-1",
        "sacctmgr -i modify account bio set GrpTRES=gres/gpu=-1",
        "sacctmgr -i modify account ml set GrpTRES=gres/gpu=-1",
    ]
    assert "modify account ml set GrpTRES=gres/gpu=8" in off.rollback
