"""Slurm's files as text, its settings as stored, and what is handed over without a replay."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.handover.handover import snippets, target_of
from scheduler_advisor.handover.memory_default import memory_default
from scheduler_advisor.handover.slurm.conf import Conf, duration, minutes_of
from scheduler_advisor.search.catalogue import CHANGES

T0 = datetime(2026, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("30", 30), ("10:30", 10), ("2:00:00", 120), ("1-0", 1440), ("1-12:30", 2190),
     ("7-00:00:00", 10_080), ("UNLIMITED", 0), ("infinite", 0), ("", 0)],
)  # fmt: skip
def test_times_of_slurm_conf_are_read_in_every_form_that_it_takes(text, minutes):
    assert minutes_of(text) == minutes


def test_times_are_written_so_that_slurm_reads_the_same():
    for seconds in (1, 59, 60, 3600, 86_399, 86_400, 604_800, 90_061):
        assert minutes_of(duration(seconds)) == seconds // 60


def test_only_the_line_in_question_changes_and_comments_stay():
    conf = Conf("# top\nSchedulerType=sched/builtin\t# why\nA=1 b=2 C=3\nNodeName=n[1-2] B=9\n")
    conf.set("schedulertype", "sched/backfill")
    conf.set("B", "7")
    conf.set("New", "x")
    assert str(conf) == (
        "# top\nSchedulerType=sched/backfill\t# why\nA=1 b=7 C=3\nNew=x\nNodeName=n[1-2] B=9\n"
    )
    conf.set("b", None)
    conf.set("New", None)
    assert str(conf) == (
        "# top\nSchedulerType=sched/backfill\t# why\nA=1 C=3\nNodeName=n[1-2] B=9\n"
    )


def test_a_key_of_a_partition_is_not_taken_for_one_of_the_cluster():
    conf = Conf("PartitionName=low PreemptMode=OFF PriorityTier=3\nPreemptMode=REQUEUE\n")
    assert conf.get("PreemptMode") == "REQUEUE"
    assert conf.partition("low", "PreemptMode") == "OFF"
    conf.set_partition("low", "GraceTime", "60")
    assert str(conf).splitlines()[0].endswith("PriorityTier=3 GraceTime=60")


def test_what_the_scheduler_shows_as_unset_is_no_line_and_units_are_left_out():
    shown = {
        "SchedulerType": "sched/backfill",
        "TopologyPlugin": "(null)",
        "SLURM_VERSION": "22.05.8",
        "DefMemPerNode": "UNLIMITED",
        "PriorityCalcPeriod": "300 sec",
        "PreemptMode": "OFF",
        "JobDefaults": "DefCpuPerGPU=8,DefMemPerGPU=59000",
        "partition.low.PreemptMode": "OFF",
        "partition.low.JobDefaults": "(null)",
        "partition.low.MaxTime": "7-00:00:00",
    }
    assert str(Conf.stored(shown)).splitlines() == [
        "SchedulerType=sched/backfill", "PriorityCalcPeriod=300", "PreemptMode=OFF",
        "DefCpuPerGPU=8", "DefMemPerGPU=59000", "PartitionName=low MaxTime=7-00:00:00",
    ]  # fmt: skip


def test_a_memory_default_of_any_scope_gives_way_to_the_one_per_gpu(hand):
    conf = ("DefMemPerCPU=1000\nPartitionName=DEFAULT DefMemPerNode=5\n"
            "PartitionName=low Nodes=gpu[1-4] DefMemPerCPU=9 DefMemPerGPU=8\n")  # fmt: skip
    [edit] = hand("slurm", {}, {}, files={"slurm.conf": conf}, mem_mib_per_gpu=60_000).edits
    assert edit.after == (
        "DefMemPerGPU=60000\nPartitionName=DEFAULT\nPartitionName=low Nodes=gpu[1-4]\n"
    )


def test_preemption_follows_the_priorities_of_the_qos_that_are_there(hand):
    qos = {"qos.low.Priority": "0", "qos.mid.Priority": "5", "qos.high.Priority": "9"}
    handover = hand("slurm", {}, {"preemption": "priority", "preemption.grace_s": 60,
                                  "preemption.min_run_s": 1800}, settings=qos)  # fmt: skip
    commands = [run.command for run in handover.runs]
    assert "sacctmgr -i modify qos high set Preempt=low,mid" in commands
    assert "sacctmgr -i modify qos low set GraceTime=60" in commands
    assert "sacctmgr -i modify qos mid set Preempt=low GraceTime=60" in commands
    assert "sacctmgr -i modify qos high set GraceTime=60" not in commands
    [edit] = handover.edits
    assert "PreemptExemptTime=00:30:00" in edit.after


def test_headroom_is_a_cap_on_every_partition_but_the_most_urgent(hand):
    conf = ("PartitionName=low Nodes=gpu[1-4] PriorityTier=1\n"
            "PartitionName=high Nodes=gpu[1-4] PriorityTier=10\n")  # fmt: skip
    handover = hand("slurm", {}, {}, files={"slurm.conf": conf}, headroom_gpus=8)
    commands = [run.command for run in handover.runs]
    assert "sacctmgr -i add qos headroom GrpTRES=gres/gpu=24" in commands
    [edit] = handover.edits
    assert "PriorityTier=1 QoS=headroom\n" in edit.after
    assert "PriorityTier=10\n" in edit.after


def test_topology_without_a_known_network_says_what_to_import(policy, site):
    from scheduler_advisor.handover.errors import HandoverError
    from scheduler_advisor.handover.make import for_change
    from scheduler_advisor.handover.site import Node, Site
    from scheduler_advisor.handover.steps import Scheduler

    with pytest.raises(HandoverError, match="import slurm --topology"):
        for_change(Scheduler.SLURM, policy({}), policy({"placement": "topology"}),
                   Site((Node("n1", 8),)))  # fmt: skip


def test_the_memory_advice_carries_the_change_of_the_settings_as_stored(store):
    with store.work() as work:
        for key, value in (("DefMemPerCPU", "4000"), ("SchedulerType", "sched/backfill")):
            work.append("scheduler_setting", {
                "cluster": ["c"], "scheduler": ["slurm"], "key": [key], "value": [value],
                "valid_from": [T0], "valid_to": [None], "source": ["slurm"],
            })  # fmt: skip
        said = memory_default(work, "c", T0, 60_000)
    assert "-DefMemPerCPU=4000" in said["apply"]
    assert "+DefMemPerGPU=60000" in said["apply"]
    assert "scontrol reconfigure" in said["rollback"]


def test_every_change_of_the_search_is_handed_over_whole_or_not_at_all():
    cluster = Cluster.build(
        gpus=[8] * 4, cpu_milli=[64_000] * 4, mem_mib=[512_000] * 4,
        gpu_model=["A100-80GB"] * 4, leaf=["a", "a", "b", "b"], spine=["s"] * 4,
    )  # fmt: skip
    target = target_of(
        cluster, {"SchedulerType": "sched/backfill", "PriorityType": "priority/basic"}
    )
    found = {change.name: snippets([change], target) for change in CHANGES}
    assert "slurm" in found["backfill_deep"]
    assert "slurm" not in found["backfill_greedy"]
    assert {"kueue", "volcano"} <= set(found["backfill_greedy"])
    assert {"slurm", "kai"} <= set(found["preempt_priority"])
    assert found["fgd"] == {}
    [memory] = found["cap_memory"]["slurm"]
    # 95% of 512,000 MiB over 8 GPUs.
    assert "+DefMemPerGPU=60800" in memory.files["slurm.conf"]
    assert "with - become" in memory.apply
    for made in found.values():
        json.dumps({name: [each.as_json() for each in rows] for name, rows in made.items()})
    known = {change.name: change for change in CHANGES}
    both = snippets([known["backfill_deep"], known["cap_memory"]], target)["slurm"]
    assert "DefMemPerGPU" in both[0].files["slurm.conf"]
    assert "bf_max_job_test" in both[0].files["slurm.conf"]


def test_a_users_own_limit_in_an_account_goes_there_and_back(hand):
    today = {"quota.by": "account/user", "quota.queues.ml.maximum": 12,
             "quota.queues.ml/u0.maximum": 8, "quota.queues.ml.parent": "science"}  # fmt: skip
    stored = {
        "SchedulerType": "sched/backfill",
        "AccountingStorageEnforce": "associations,limits,qos",
        "AccountingStorageTRES": "gres/gpu",
    }
    after = {"quota.queues.ml/u0.maximum": 12, "quota.queues.ml.maximum": "none"}
    handover = hand("slurm", today, after, settings=stored)
    assert handover.complete
    assert [run.command for run in handover.runs] == [
        "sacctmgr -i modify account ml set GrpTRES=gres/gpu=-1",
        "sacctmgr -i modify user where name=u0 account=ml set GrpTRES=gres/gpu=12",
    ]
    assert [run.undo for run in handover.runs] == [
        "sacctmgr -i modify account ml set GrpTRES=gres/gpu=12",
        "sacctmgr -i modify user where name=u0 account=ml set GrpTRES=gres/gpu=8",
    ]
