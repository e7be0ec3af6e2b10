"""Queues with guarantees and maxima as limits of accounts and QoS."""

from __future__ import annotations

from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.slurm.draft import SlurmDraft

BORROW = "borrow"
_ENFORCE = ("associations", "limits", "qos")


def quota(draft: SlurmDraft) -> None:
    """A maximum is GrpTRES; a guarantee is a QoS of the queue's own that preempts borrowed jobs."""
    if not draft.take("quota"):
        return
    before, after = queues_of(draft.change.before), queues_of(draft.change.after)
    by = draft.text("quota.by", "team")
    draft.needs("AccountingStorageEnforce", *_ENFORCE)
    draft.needs("AccountingStorageTRES", "gres/gpu")
    if by not in ("team", "account", "account/user", "qos"):
        draft.refuse("quota.by", "a limit of Slurm hangs on an account or a QoS: use by = account")
    for name in sorted({*before, *after}):
        _limits(draft, by, name, before.get(name), after.get(name))
    if any(queue.guarantee for queue in after.values()):
        _guarantees(draft, after)
    draft.always(
        "quota.strict",
        False,
        "Slurm's main scheduler stops at the first waiting job of a partition, not of an account",
    )
    draft.always("quota.reclaim_to", "guarantee", "Slurm reclaims for QoS, not for shares")
    draft.say_verify(
        "sacctmgr show assoc tree format=account,user,grptres,fairshare",
        "scontrol show assoc_mgr flags=qos,assoc | grep -A4 GrpTRES",
    )


def _limits(
    draft: SlurmDraft, by: str, name: str, before: Queue | None, after: Queue | None
) -> None:
    old = before.maximum if before is not None else None
    new = after.maximum if after is not None else None
    if old != new:
        if by == "qos":
            draft.accounting.add_qos(name)
            draft.accounting.set_qos(name, "GrpTRES", _tres(new))
        else:
            draft.accounting.set_account(name, "GrpTRES", _tres(new), _tres(old))
    above = (before.parent if before is not None else "") or "root"
    wanted = (after.parent if after is not None else "") or "root"
    if above != wanted and by != "qos":
        draft.accounting.set_account(name, "Parent", wanted, above)
    draft.always(f"quota.queues.{name}.lend", None, "Slurm has no bound on what others may borrow")


def _guarantees(draft: SlurmDraft, queues: dict[str, Queue]) -> None:
    if draft.text("quota.reclaim", "none") == "none":
        for name in queues:
            draft.refuse(
                f"quota.queues.{name}.guarantee",
                "without reclaim Slurm keeps nothing free"
                " for an account; set quota.reclaim, or a reservation of nodes",
            )
        return
    accounting = draft.accounting
    draft.conf.set("PreemptType", "preempt/qos")
    draft.conf.set("PreemptMode", "REQUEUE")
    accounting.add_qos(BORROW)
    accounting.set_qos(BORROW, "Priority", "0")
    for name, queue in queues.items():
        if queue.guarantee:
            own = f"{name}-own"
            accounting.add_qos(own)
            accounting.set_qos(own, "Priority", "1000")
            accounting.set_qos(own, "GrpTRES", _tres(queue.guarantee))
            accounting.set_qos(own, "Preempt", BORROW)
    draft.remark(
        "quota.queues",
        f"a team's own GPUs are its QoS NAME-own; beyond them its jobs run"
        f" in QoS {BORROW}, which the others' own jobs preempt. Users say"
        " --qos, or a job_submit plugin does",
    )
    if draft.text("quota.reclaim") == "strict":
        draft.remark("quota.reclaim", "Slurm does not check that a victim's team stays at its own")


def _tres(gpus: int | None) -> str:
    return f"gres/gpu={-1 if gpus is None else gpus}"
