"""Slurm takes the hand-over's files and commands, and then does what was predicted."""

from __future__ import annotations

import subprocess

import pytest

from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.handover.make import for_change
from scheduler_advisor.handover.site import Beside, Node, Site
from scheduler_advisor.handover.steps import Edit, Scheduler

pytestmark = [pytest.mark.real, pytest.mark.slow]
TODAY = {
    "DefMemPerCPU": None,  # nobody has set a memory default
    "TopologyPlugin": None,
    "PreemptType": None,
    "PreemptMode": None,
}
NODES = tuple(
    Node(f"gpu{n}", 4 if n == 4 else 8, "T4" if n == 4 else "A100", 64, 512_000,
         f"leaf{(n + 1) // 2}", "spine")
    for n in range(1, 5)
)  # fmt: skip


@pytest.fixture(scope="module")
def lab(make_slurm_lab):
    """A Slurm as it is installed: no default for memory, no preemption, no topology."""
    lab = make_slurm_lab(**TODAY)
    (lab.folder / "topology.conf").unlink()
    return lab


@pytest.fixture(scope="module")
def hand(lab):
    return Hand(lab)


class Hand:
    """Does what a hand-over says, with the programs that it names."""

    def __init__(self, lab):
        self.lab = lab

    def site(self):
        files = {name: path.read_text() for name in ("slurm.conf", "topology.conf", "gres.conf")
                 if (path := self.lab.folder / name).exists()}  # fmt: skip
        rows = self.lab.run("sacctmgr", "-P", "show", "qos").splitlines()
        names = rows[0].split("|")
        settings = {
            f"qos.{row.split('|')[0]}.{key}": value
            for row in rows[1:]
            for key, value in zip(names, row.split("|"), strict=False)
            if value and key in ("Priority", "Preempt", "GraceTime", "GrpTRES")
        }
        return Site(NODES, settings, files)

    def change(self, before, after, **beside):
        return for_change(Scheduler.SLURM, before, after, self.site(), Beside(**beside))

    def do(self, steps):
        for step in steps:
            if isinstance(step, Edit):
                self.patch(step.diff())
            elif step.command == "systemctl restart slurmctld":
                self.lab.restart_controller()
            else:
                self.lab.run("sh", "-c", step.command)

    def patch(self, diff):
        subprocess.run(["patch", "-p0"], input=diff, text=True, cwd=self.lab.folder, check=True,
                       capture_output=True)  # fmt: skip

    def shown(self, key):
        for line in self.lab.run("scontrol", "show", "config").splitlines():
            if line.split("=")[0].strip() == key:
                return line.split("=", 1)[1].strip()
        return None

    def clear(self, *jobs):
        self.lab.run("scancel", *jobs)
        left = ("squeue", "-h", "-j", ",".join(jobs))
        self.lab.until(lambda: not self.lab.run(*left).strip(), f"the end of {jobs}")

    def state(self, job):
        return self.lab.run("squeue", "-h", "-o", "%T", "-j", job).strip()

    def waits(self, job, reason):
        ask = ("squeue", "-h", "-o", "%r", "-j", job)
        self.lab.until(lambda: self.lab.run(*ask).strip() == reason, f"{job} waiting: {reason}")


def two_half_node_jobs(lab):
    """Two jobs of four GPUs for the same node of eight."""
    asked = ("-w", "gpu1", "--gpus=4", "-c2")
    first = lab.submit("nlp", *asked, script="sleep 100")
    lab.wait_for(first, "RUNNING")
    return first, lab.submit("vision", *asked, script="sleep 100")


def test_with_memory_per_gpu_two_half_node_jobs_share_a_node_and_the_rollback_undoes_it(hand, lab):
    first, second = two_half_node_jobs(lab)
    hand.waits(second, "Resources")
    hand.clear(first, second)
    before = hand.site().files
    made = hand.change(Policy(), Policy(), mem_mib_per_gpu=59_000)
    hand.do(made.apply)
    first, second = two_half_node_jobs(lab)
    lab.wait_for(second, "RUNNING")
    tres = lab.run("scontrol", "show", "job", "-o", second)
    assert "mem=236000M" in tres
    for command in made.verify:
        assert "DefMemPerGPU=59000" in lab.run("sh", "-c", command)
    hand.clear(first, second)
    hand.do(made.rollback)
    assert hand.site().files == before
    for command in made.verify:
        assert "DefMemPerGPU" not in lab.run("sh", "-c", command)
    hand.do(made.apply)  # the tests that follow need nodes that can be shared


def test_a_key_that_slurm_does_not_know_fails_the_check_and_the_handed_one_passes(
    hand, lab, tmp_path
):
    made = hand.change(Policy(), Policy().with_values({"backfill": "easy", "backfill.depth": 321}))
    [edit] = made.edits
    copy = tmp_path / "slurm.conf"
    ping = ("env", f"SLURM_CONF={copy}", "scontrol", "ping")
    copy.write_text(edit.after)
    assert "UP" in lab.run(*ping)
    copy.write_text(edit.after.replace("SchedulerParameters", "SchedulerParametres"))
    with pytest.raises(RuntimeError, match="SchedulerParametres"):
        lab.run(*ping)


def test_a_short_job_waits_behind_the_head_until_the_backfill_snippet_lets_it_fill_the_gap(
    hand, lab
):
    strict, easy = Policy(), Policy().with_values({"backfill": "easy", "backfill.depth": 321})
    hand.do(hand.change(easy, strict).apply)
    assert hand.shown("SchedulerType") == "sched/builtin"
    running = lab.submit("nlp", "-N2", "--gpus-per-node=a100:8", "-t2", script="sleep 100")
    lab.wait_for(running, "RUNNING")
    head = lab.submit("nlp", "-N3", "--gpus-per-node=a100:8", "-t5", script="sleep 100")
    filler = lab.submit("vision", "--gpus=a100:8", "-t1", script="sleep 1")
    hand.waits(filler, "Priority")
    hand.do(hand.change(strict, easy).apply)
    assert hand.shown("SchedulerType") == "sched/backfill"
    taken = hand.shown("SchedulerParameters").split(",")
    assert {"bf_max_job_test=321", "bf_job_part_count_reserve=1", "bf_continue"} <= set(taken)
    assert "bf_interval=2" in taken  # the site's own stays
    lab.wait_for(filler, "COMPLETED")
    assert hand.state(head) == "PENDING"
    assert "Invalid SchedulerParameters" not in (lab.folder / "slurmctld.log").read_text()
    hand.clear(running, head)


def test_urgent_jobs_stop_preemptible_ones_after_the_preemption_snippet(hand, lab):
    after = Policy().with_values({"preemption": "priority", "preemption.by": "priority"})
    made = hand.change(Policy(), after)
    hand.do(made.apply)
    assert hand.shown("PreemptType") == "preempt/qos"
    for user in lab.configuration.ACCOUNTS.values():
        lab.run("sacctmgr", "-i", "modify", "user", user, "set", "qos+=urgent,preemptible")
    whole = ("-N3", "--gpus-per-node=a100:8", "--requeue")
    victim = lab.submit("nlp", "--qos=preemptible", *whole, script="sleep 100")
    lab.wait_for(victim, "RUNNING")
    urgent = lab.submit("vision", "--qos=urgent", "--gpus=a100:8", script="sleep 2")
    lab.wait_for(victim, "PREEMPTED")
    lab.wait_until_done(urgent)
    hand.clear(victim)


def test_the_topology_snippet_makes_slurm_read_its_switches_and_keep_a_gang_under_one(hand, lab):
    after = Policy().with_values({"placement": "topology"})
    made = hand.change(Policy(), after)
    assert [edit.file for edit in made.edits] == ["slurm.conf", "topology.conf"]
    hand.do(made.apply)
    shown = lab.run("scontrol", "show", "topology")
    assert "SwitchName=leaf1" in shown
    assert "SwitchName=spine" in shown
    assert hand.shown("TopologyPlugin") == "topology/tree"
    # gpu1 is busy in part; a gang of two whole nodes under one switch has to wait for it.
    held = lab.submit("nlp", "-w", "gpu1", "--gpus=1", script="sleep 100")
    lab.wait_for(held, "RUNNING")
    gang = lab.submit(
        "vision", "-N2", "--gpus-per-node=a100:8", "--switches=1@60", script="sleep 1"
    )
    hand.waits(gang, "Resources")
    hand.clear(held)
    lab.wait_until_done(gang)
    # Accounting of this version names only the first of the two nodes.
    assert " NodeList=gpu[1-2] " in lab.run("scontrol", "show", "job", "-o", gang)


WEIGHED = {
    "order": "multifactor",
    "multifactor.age": 1000,
    "multifactor.association": 10,
    "multifactor.qos": 3000,
    "multifactor.tres_gpu": 2000,
    "multifactor.fairshare": 500,
    "multifactor.qos_priority.gold": 70,
    "fairshare.half_life_s": 7200,
    "quota.by": "account",
    "quota.queues.nlp.guarantee": 8,
    "quota.queues.nlp.maximum": 16,
    "quota.queues.vision.guarantee": 8,
    "quota.reclaim": "strict",
}
TIERED = {
    "order": "fair-share",
    "fairshare.half_life_s": 3600,
    "preemption": "priority",
    "preemption.by": "tier",
    "preemption.mode": "checkpoint",
    "preemption.victims": "youngest",
    "preemption.min_run_s": 60,
    "preemption.grace_s": 5,
    "placement": "worst-fit",
}


def qos_of(lab):
    return lab.run("sacctmgr", "-n", "-P", "show", "qos", "format=name,priority,preempt,grptres")


def limits_of(lab):
    return lab.run("sacctmgr", "-n", "-P", "show", "assoc", "format=account,user,grptres,fairshare")


def test_weights_limits_guarantees_and_headroom_are_taken_and_leave_no_trace_after_rollback(
    hand, lab
):
    files, qos, limits = hand.site().files, qos_of(lab), limits_of(lab)
    made = hand.change(Policy(), Policy().with_values(WEIGHED), headroom_gpus=4, cpus_per_gpu=4)
    assert made.complete
    hand.do(made.apply)
    for key, value in (
        ("PriorityType", "priority/multifactor"),
        ("PriorityWeightAge", "1000"),
        ("PriorityWeightAssoc", "10"),
        ("PriorityWeightQOS", "3000"),
        ("PriorityWeightTRES", "GRES/gpu=2000"),
        ("PriorityDecayHalfLife", "02:00:00"),
        ("AccountingStorageEnforce", "associations,limits,qos"),
        ("PreemptType", "preempt/qos"),
    ):
        assert hand.shown(key) == value
    assert "nlp-own|1000|borrow|gres/gpu=8" in qos_of(lab)
    assert "headroom|0||gres/gpu=24" in qos_of(lab)
    assert "gold|70||" in qos_of(lab)
    assert "nlp||gres/gpu=16|" in limits_of(lab)
    shown = lab.run("scontrol", "show", "partition", "-o")
    assert [line.split("QoS=")[-1].split()[0] for line in shown.splitlines()] == ["headroom", "N/A"]
    hand.do(made.rollback)
    assert (hand.site().files, qos_of(lab), limits_of(lab)) == (files, qos, limits)
    assert hand.shown("PriorityType") == "priority/basic"


def test_tiers_grace_and_spreading_are_taken_as_handed_over(hand, lab):
    made = hand.change(Policy(), Policy().with_values(TIERED))
    hand.do(made.apply)
    for key, value in (
        ("PreemptType", "preempt/partition_prio"),
        ("PreemptExemptTime", "00:01:00"),
        ("PriorityDecayHalfLife", "01:00:00"),
        ("SelectTypeParameters", "CR_CORE_MEMORY,CR_LLN"),
    ):
        assert hand.shown(key) == value
    assert "preempt_youngest_first" in hand.shown("SchedulerParameters")
    low, high = lab.run("scontrol", "show", "partition", "-o").splitlines()
    assert "GraceTime=5" in low
    assert "PreemptMode=OFF" in high
    log = (lab.folder / "slurmctld.log").read_text()
    assert "error: Parsing" not in log
    assert "Ignoring" not in log
