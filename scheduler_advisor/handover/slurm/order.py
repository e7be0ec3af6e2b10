"""Who is first in the queue: PriorityType and its weights."""

from __future__ import annotations

from scheduler_advisor.handover.queues import queues_of
from scheduler_advisor.handover.slurm.conf import duration
from scheduler_advisor.handover.slurm.draft import SlurmDraft

FULL = 1_000_000
WEIGHTS = {
    "age": "PriorityWeightAge",
    "association": "PriorityWeightAssoc",
    "fairshare": "PriorityWeightFairshare",
    "size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition",
    "qos": "PriorityWeightQOS",
}
TRES = {"tres_cpu": "CPU", "tres_mem": "Mem", "tres_gpu": "GRES/gpu"}
_PLUGIN = "Slurm has no such order; it takes a priority or site-factor plugin of one's own"


def order(draft: SlurmDraft) -> None:
    """PriorityType for the order, and the weights that make it."""
    changed = draft.take("order", "multifactor", "fairshare", "ordering")
    if not changed:
        return
    kind = draft.text("order", "fifo")
    if kind in _KINDS:
        _KINDS[kind](draft)
        draft.say_verify(
            "scontrol show config | grep -E '^Priority(Type|Weight|Decay|Max)'", "sprio -l"
        )
    else:
        draft.refuse("order", _PLUGIN)
    draft.refuse("ordering", _PLUGIN)
    draft.refuse("fairshare.entitlement", "Slurm measures usage against shares alone")
    if kind != "multifactor":
        _without_effect(draft, "multifactor", kind)
    if kind not in ("multifactor", "fair-share"):
        _without_effect(draft, "fairshare", kind)


def _without_effect(draft: SlurmDraft, head: str, kind: str) -> None:
    if draft.changes(head) and not draft.changes("order"):
        draft.remark(head, f"without effect while the order is {kind}; nothing is set")


def _fifo(draft: SlurmDraft) -> None:
    draft.conf.set("PriorityType", "priority/basic")
    _weights(draft, {}, "")


def _priority(draft: SlurmDraft) -> None:
    if draft.conf.get("PriorityType") == "priority/multifactor":
        draft.remark(
            "order",
            "multifactor priority is on and its weights stay: they are the"
            " priorities that accounting keeps of each job",
        )
        return
    _multi(draft, {"qos": FULL}, "")
    draft.remark(
        "order",
        "a job has the priority of its QoS: give each QoS its Priority, and users"
        " the QoS that they may take",
    )


def _largest_first(draft: SlurmDraft) -> None:
    _multi(draft, {}, f"GRES/gpu={FULL}")
    draft.conf.set("PriorityFavorSmall", "NO")
    draft.remark("order", "size is the job's GPUs over those of the partition")


def _fair_share(draft: SlurmDraft) -> None:
    _multi(draft, {"fairshare": FULL}, "")
    _usage(draft)
    for name, queue in queues_of(draft.change.after).items():
        before = queues_of(draft.change.before).get(name)
        old = str(before.weight) if before is not None else None
        draft.accounting.set_account(name, "Fairshare", str(queue.weight), old)


def _multifactor(draft: SlurmDraft) -> None:
    weights = {name: draft.number(f"multifactor.{name}") for name in WEIGHTS}
    tres = ",".join(
        f"{name}={weight}"
        for key, name in TRES.items()
        if (weight := draft.number(f"multifactor.{key}"))
    )
    _multi(draft, weights, tres)
    draft.conf.set("PriorityMaxAge", duration(draft.number("multifactor.max_age_s", 604_800)))
    favour = draft.text("multifactor.favor_small") == "True"
    draft.conf.set("PriorityFavorSmall", "YES" if favour else "NO")
    if weights["fairshare"]:
        _usage(draft)
    _named_priorities(draft)
    draft.refuse("multifactor.nice", "a job's nice value always counts once in Slurm")
    draft.refuse("multifactor.site", "Slurm takes a site's factor from a plugin, without a weight")


def _named_priorities(draft: SlurmDraft) -> None:
    for key, value in draft.change.after.items():
        if key not in draft.change.changed:
            continue
        table, _, name = key.removeprefix("multifactor.").partition(".")
        before = draft.change.before.get(key)
        if table == "qos_priority":
            draft.accounting.add_qos(name)
            draft.accounting.set_qos(name, "Priority", str(value))
        elif table == "account_priority":
            old = None if before is None else str(before)
            draft.accounting.set_account(name, "Priority", str(value), old or "0")
        elif table == "partition_priority":
            draft.conf.set_partition(name, "PriorityJobFactor", str(value))


def _multi(draft: SlurmDraft, weights: dict[str, int], tres: str) -> None:
    draft.conf.set("PriorityType", "priority/multifactor")
    _weights(draft, weights, tres)
    if "GRES/gpu" in tres:
        draft.needs("AccountingStorageTRES", "gres/gpu")


def _weights(draft: SlurmDraft, weights: dict[str, int], tres: str) -> None:
    for name, key in WEIGHTS.items():
        draft.conf.set(key, str(weights[name]) if weights.get(name) else None)
    draft.conf.set("PriorityWeightTRES", tres or None)


def _usage(draft: SlurmDraft) -> None:
    half_life = draft.number("fairshare.half_life_s")
    if half_life:
        draft.conf.set("PriorityDecayHalfLife", duration(half_life))
    else:
        draft.remark(
            "fairshare.half_life_s",
            "Slurm counts past usage, not what runs now: the half"
            " life stays as it is; the shorter, the nearer",
        )
    minutes = max(1, draft.number("fairshare.period_s", 300) // 60)
    draft.conf.set("PriorityCalcPeriod", str(minutes))


_KINDS = {
    "fifo": _fifo,
    "priority": _priority,
    "largest-first": _largest_first,
    "fair-share": _fair_share,
    "multifactor": _multifactor,
}
