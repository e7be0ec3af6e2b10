"""Whatever changes: the diffs lead where the hand-over says, and the rollback leads back."""

from __future__ import annotations

import shlex

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.handover.change import MODELLED, Change
from scheduler_advisor.handover.make import for_change
from scheduler_advisor.handover.site import Beside, Node, Site
from scheduler_advisor.handover.steps import Run, Scheduler, applied

SLURM_CONF = """\
# our cluster
ClusterName=lab
SchedulerType=sched/backfill   # since 2019
SchedulerParameters=bf_interval=2,bf_max_job_test=77
schedulertype=sched/backfill
PreemptType=preempt/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_LLN
DefMemPerCPU=1000
PriorityType=priority/multifactor
PriorityWeightAge=500
NodeName=gpu[1-4] CPUs=64 RealMemory=512000 \\
  Gres=gpu:a100:8 State=UNKNOWN
PartitionName=DEFAULT MaxTime=3-0
PartitionName=low Nodes=gpu[1-4] Default=YES PriorityTier=1 LLN=YES DefMemPerCPU=2000
PartitionName=high Nodes=gpu[1-4] PriorityTier=10 PreemptMode=OFF # urgent
"""
GRES_CONF = "NodeName=gpu[1-4] Name=gpu File=/dev/nvidia[0-7]\n"
KUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: nlp, uid: 0b1c}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: a100
      resources: [{name: cpu, nominalQuota: 256}, {name: nvidia.com/gpu, nominalQuota: 16}]
status: {pendingWorkloads: 3}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: a100}
spec: {nodeLabels: {gpu: a100}}
"""
CAPACITY = """\
<?xml version="1.0"?>
<!-- <property><name>yarn.scheduler.capacity.root.queues</name><value>old</value></property> -->
<configuration>
  <property>
    <name>yarn.scheduler.capacity.root.queues</name>
    <value>nlp,vision</value>
    <description>a &lt; b</description>
  </property>
  <property><name>yarn.scheduler.capacity.root.nlp.capacity</name><value>50</value></property>
</configuration>
"""
FILES = {
    "slurm.conf": SLURM_CONF,
    "gres.conf": GRES_CONF,
    "kueue.yaml": KUEUE,
    "capacity-scheduler.xml": CAPACITY,
}
QOS = {"qos.low.Priority": "0", "qos.high.Priority": "100", "qos.high.GraceTime": "00:00:00"}
SHOWN = {
    "SchedulerType": "sched/builtin",
    "PreemptMode": "OFF",
    "PriorityMaxAge": "7-00:00:00",
    "partition.low.PriorityTier": "1",
    "partition.low.Nodes": "gpu[1-4]",
}
VALUES = {
    "order": ["fifo", "priority", "largest-first", "sjf-limit", "multifactor", "fair-share",
              "drf", "las"],
    "backfill": ["none", "greedy", "easy"],
    "backfill.depth": ["0", "100", "2000000"],
    "backfill.max_limit_s": ["0", "3600"],
    "backfill.interval_s": ["0", "30"],
    "placement": ["first-fit", "best-fit", "worst-fit", "consolidate", "fgd", "topology"],
    "placement.ties": ["name", "random"],
    "topology.level": ["", "leaf"],
    "topology.binding": ["preferred", "required"],
    "topology.comm_milli": ["50", "70"],
    "preemption": ["none", "priority"],
    "preemption.by": ["priority", "tier"],
    "preemption.mode": ["requeue", "suspend", "checkpoint", "scratch"],
    "preemption.victims": ["lowest-priority", "youngest", "least-lost"],
    "preemption.min_run_s": ["0", "1800"],
    "preemption.grace_s": ["0", "60"],
    "preemption.max_per_job": ["0", "3"],
    "preemption.reach": ["cluster", "queue"],
    "quota.queues.nlp.guarantee": ["8", "16"],
    "quota.queues.nlp.maximum": ["16", "32"],
    "quota.queues.vision.guarantee": ["0", "8"],
    "quota.queues.vision.weight": ["1", "3"],
    "quota.reclaim": ["none", "loose", "strict"],
    "quota.strict": ["true", "false"],
    "fairshare.half_life_s": ["0", "604800"],
    "multifactor.age": ["0", "1000"],
    "multifactor.tres_gpu": ["0", "2000"],
    "multifactor.qos_priority.high": ["10", "20"],
    "gang.timeout_s": ["0", "600"],
    "defrag": ["none", "hours", "threshold"],
    "sharing": ["asked", "none", "mig"],
    "elastic": ["fixed", "resize"],
    "seed": ["0", "1"],
}  # fmt: skip
CHOICES = st.dictionaries(st.sampled_from(sorted(VALUES)), st.integers(0, 9), max_size=9)
BESIDE = st.builds(
    Beside,
    mem_mib_per_gpu=st.none() | st.just(60_000),
    cpus_per_gpu=st.none() | st.just(7),
    headroom_gpus=st.none() | st.sampled_from([0, 8]),
    mig=st.just({}) | st.just({"A100-80GB": ("3g.40gb", "3g.40gb")}),
)
NODES = tuple(
    Node(f"gpu{n}", 8, "A100-80GB", 64, 512_000, f"leaf{n % 2}", "top") for n in (1, 2, 3, 4)
)


def made(choices):
    policy = Policy()
    for key, at in choices.items():
        try:
            policy = policy.with_values({key: VALUES[key][at % len(VALUES[key])]})
        except PolicyError:
            continue  # a contradiction, which no policy can hold
    return policy


def names_of(handover):
    return {edit.file for edit in handover.edits}


class Cluster:
    """sacctmgr and kubectl as far as they are used: what is there after the commands."""

    def __init__(self):
        self.accounting = {}
        self.labels = {}

    def state(self):
        return {name: dict(row) for name, row in self.accounting.items()}, dict(self.labels)

    def run(self, command):
        words = shlex.split(command, comments=True)
        if words[:2] == ["sacctmgr", "-i"]:
            self._account(*words[2:])
        if words[:3] == ["kubectl", "label", "node"]:
            for word in words[4:]:
                name, _, value = word.partition("=")
                if word.endswith("-"):
                    self.labels.pop((words[3], word[:-1]), None)
                elif not word.startswith("--"):
                    self.labels[words[3], name] = value

    def _account(self, act, kind, name, *settings):
        pairs = dict(one.split("=", 1) for one in settings if one != "set")
        if act == "add":
            assert (kind, name) not in self.accounting, f"{name} is there already"
            self.accounting[kind, name] = pairs
        elif act == "delete":
            self.accounting.pop((kind, name), None)
        else:
            assert act == "modify"
            assert pairs
            self.accounting.setdefault((kind, name), {}).update(pairs)


@pytest.mark.parametrize("known", ["files", "settings", "nothing"])
@pytest.mark.parametrize("scheduler", list(Scheduler))
@given(before=CHOICES, after=CHOICES, beside=BESIDE)
@settings(max_examples=25, deadline=None)
def test_the_diffs_lead_there_and_the_rollback_leads_back(known, scheduler, before, after, beside):
    files = FILES if known == "files" else {}
    stored = QOS if known == "files" else {}
    if known == "settings":
        stored = QOS | SHOWN
    site = Site(NODES, stored, files)
    handover = for_change(scheduler, made(before), made(after), site, beside)
    today = {edit.file: edit.before for edit in handover.edits if edit.before is not None}
    there = applied(today, handover.apply)
    assert {name: there.get(name) for name in names_of(handover)} == {
        edit.file: edit.after for edit in handover.edits
    }
    assert applied(there, handover.rollback) == today
    if known == "files":
        # What is given as a file is patched as it lies there, never rewritten.
        for edit in handover.edits:
            if edit.file in FILES:
                assert edit.before == FILES[edit.file]


@pytest.mark.parametrize("scheduler", list(Scheduler))
@given(before=CHOICES, after=CHOICES, beside=BESIDE)
@settings(max_examples=25, deadline=None)
def test_patch_reads_the_diffs_and_the_commands_undo_themselves(
    scheduler, before, after, beside, patched_once
):
    handover = for_change(scheduler, made(before), made(after), Site(NODES, QOS, FILES), beside)
    today = {edit.file: edit.before for edit in handover.edits if edit.before is not None}
    there = patched_once(today, handover.apply)
    assert there == applied(today, handover.apply)
    assert patched_once(there, handover.rollback) == today
    cluster = Cluster()
    runs = [step for step in handover.apply if isinstance(step, Run)]
    for run in reversed(runs):
        cluster.run(run.undo)  # as it is today, where today is what the undoing says
    began = cluster.state()
    for step in (*runs, *(step for step in handover.rollback if isinstance(step, Run))):
        cluster.run(step.command)
    assert cluster.state() == began


@pytest.mark.parametrize("scheduler", list(Scheduler))
@given(before=CHOICES, after=CHOICES)
@settings(max_examples=40, deadline=None)
def test_every_changed_key_is_done_remarked_refused_or_only_simulated(scheduler, before, after):
    old, new = made(before), made(after)
    handover = for_change(scheduler, old, new, Site(NODES, QOS, FILES), Beside())
    changed = set(Change.between(old, new).changed)
    parts = {key.partition(".")[0] for key in changed}
    assert {one.key.partition(".")[0] for one in handover.cannot} <= parts
    assert set(handover.modelled) == changed & set(MODELLED)
    assert all(one.reason for one in handover.cannot)
    if changed - set(MODELLED):
        assert handover.edits or handover.runs or handover.cannot or handover.remarks
    else:
        assert handover.empty


def test_a_site_without_any_change_has_nothing_to_do(hand):
    for scheduler in Scheduler:
        handover = hand(scheduler, {"backfill": "easy"}, {})
        assert handover.empty
        assert handover.complete
        assert handover.verify == handover.check == ()


def test_the_yaml_that_is_handed_back_is_that_of_today_without_what_the_server_writes(hand):
    handover = hand("kueue", {}, {"quota.strict": "true"}, files={"kueue.yaml": KUEUE})
    [edit] = handover.edits
    body = yaml.safe_load(edit.before)
    assert "status" not in body
    assert "uid" not in body["metadata"]
    assert yaml.safe_load(edit.after)["spec"]["queueingStrategy"] == "StrictFIFO"
