"""Who may be stopped for whom: PreemptType, PreemptMode and the QoS or partitions behind them."""

from __future__ import annotations

from scheduler_advisor.handover.slurm.conf import duration
from scheduler_advisor.handover.slurm.draft import SlurmDraft

URGENT, PREEMPTIBLE = "urgent", "preemptible"
_SUSPENDED = "a suspended job keeps its GPUs in Slurm, so nothing becomes free; use requeue"
_COUNTS = "Slurm does not count preemptions"


def preemption(draft: SlurmDraft) -> None:
    """Preemption by QoS (``by`` priority) or by partition (``by`` tier)."""
    if not draft.take("preemption"):
        return
    draft.say_verify("scontrol show config | grep -E '^Preempt'")
    if draft.text("preemption", "none") == "none":
        draft.conf.set("PreemptType", "preempt/none")
        draft.conf.set("PreemptMode", "OFF")
        draft.conf.set("PreemptExemptTime", None)
        draft.parameter("preempt_youngest_first", None)
        for name in draft.conf.partitions():
            draft.conf.set_partition(name, "PreemptMode", None)
        return
    mode = draft.text("preemption.mode", "requeue")
    if mode == "suspend":
        draft.refuse("preemption", _SUSPENDED)
        return
    if draft.text("preemption.by", "priority") == "tier":
        _by_partition(draft)
    else:
        _by_qos(draft)
    _guards(draft, mode)


def _by_partition(draft: SlurmDraft) -> None:
    conf = draft.conf
    conf.set("PreemptType", "preempt/partition_prio")
    conf.set("PreemptMode", "REQUEUE")
    names = conf.partitions()
    tiers = {name: int(conf.partition(name, "PriorityTier") or 1) for name in names}
    if len(set(tiers.values())) < 2:
        nodes = next((text for name in names if (text := conf.partition(name, "Nodes"))), "ALL")
        top = max(tiers.values(), default=1) + 10
        conf.add_partition(
            URGENT, {"Nodes": nodes, "PriorityTier": str(top), "PreemptMode": "OFF", "State": "UP"}
        )
        draft.remark(
            "preemption.by",
            f"a partition {URGENT} on the same nodes comes before the"
            " others; say who may use it (AllowAccounts)",
        )
    else:
        for name, tier in tiers.items():
            conf.set_partition(name, "PreemptMode", "OFF" if tier == max(tiers.values()) else None)
    draft.say_verify("scontrol show partition | grep -E 'PartitionName|PreemptMode|PriorityTier'")
    draft.always(
        "preemption.eligible",
        "all",
        "a partition of a lower tier can be preempted whole; jobs without --requeue are cancelled",
    )


def _by_qos(draft: SlurmDraft) -> None:
    draft.conf.set("PreemptType", "preempt/qos")
    draft.conf.set("PreemptMode", "REQUEUE")
    accounting = draft.accounting
    ranks = {name: int(accounting.qos[name].get("Priority", "0")) for name in accounting.qos}
    if len(set(ranks.values())) < 2:
        for name, priority in ((PREEMPTIBLE, "0"), (URGENT, "1000")):
            accounting.add_qos(name)
            accounting.set_qos(name, "Priority", priority)
        accounting.set_qos(URGENT, "Preempt", PREEMPTIBLE)
        draft.remark(
            "preemption",
            f"jobs of QoS {URGENT} stop jobs of QoS {PREEMPTIBLE}, and no"
            " others; let users have them (sacctmgr modify user ... set"
            " qos+=...)",
        )
    else:
        for name in accounting.by_priority():
            lower = [other for other in accounting.by_priority() if ranks[other] < ranks[name]]
            accounting.set_qos(name, "Preempt", ",".join(lower))
    draft.say_verify("sacctmgr show qos format=name,priority,preempt,gracetime,preemptexempttime")
    draft.remark("preemption.by", "a job has the priority of its QoS")


def _guards(draft: SlurmDraft, mode: str) -> None:
    least = draft.number("preemption.min_run_s")
    draft.conf.set("PreemptExemptTime", duration(least) if least else None)
    victims = draft.text("preemption.victims", "lowest-priority")
    draft.parameter("preempt_youngest_first", "" if victims == "youngest" else None, flag=True)
    if victims == "least-lost":
        draft.refuse("preemption.victims", "Slurm does not know what a job would lose")
    _grace(draft, draft.number("preemption.grace_s"))
    if mode == "checkpoint":
        draft.remark(
            "preemption.mode",
            "the job is sent SIGTERM and has the grace time to write a"
            " checkpoint; it must do so by itself",
        )
    for key in ("max_per_job", "max_per_hour", "max_team_gpus_per_hour"):
        draft.always(f"preemption.{key}", 0, _COUNTS)
    draft.always(
        "preemption.reach",
        "cluster",
        "Slurm's rules go by QoS or partition, not by account; give each team QoS of its own",
    )
    draft.remark("preemption.mode", "jobs submitted with --no-requeue are cancelled instead")


def _grace(draft: SlurmDraft, seconds: int) -> None:
    if not {"preemption", "preemption.grace_s"} & set(draft.change.changed):
        return
    if draft.text("preemption.by", "priority") == "tier":
        for name in draft.conf.partitions():
            draft.conf.set_partition(name, "GraceTime", str(seconds) if seconds else None)
        return
    victims = {
        one
        for row in draft.accounting.qos.values()
        for one in row.get("Preempt", "").split(",")
        if one
    }
    for name in sorted(victims):
        draft.accounting.set_qos(name, "GraceTime", str(seconds))
