"""Limits beside the queues: of a QoS, of the QoS of a partition, of an account or a user in one."""

from __future__ import annotations

from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.handover.slurm.draft import SlurmDraft

_COLUMNS = {Scope.USER: "MaxTRESPU", Scope.ACCOUNT: "MaxTRESPA", Scope.ALL: "GrpTRES"}


def limits(draft: SlurmDraft) -> None:
    """One setting of a QoS for each limit that changes."""
    for limit, gpus in draft.beside.limits:
        if limit.account is not None and limit.scope is Scope.ALL:
            _of_account(draft, limit, gpus)
            continue
        name = _qos(draft, limit)
        if name is None or limit.scope not in _COLUMNS:
            draft.refuse_beside("limits", "no QoS is known that has this limit")
            continue
        amount = f"gres/gpu={-1 if gpus is None else gpus}"
        draft.accounting.set_qos(name, _COLUMNS[limit.scope], amount)
        draft.say_verify("sacctmgr show qos format=name,grptres,maxtrespu,maxtrespa")


def _of_account(draft: SlurmDraft, limit: Limit, gpus: int | None) -> None:
    owner = limit.account if limit.user is None else f"{limit.account}/{limit.user}"
    before = None if limit.max_gpus is None else f"gres/gpu={limit.max_gpus}"
    assert owner is not None
    draft.accounting.set_account(
        owner, "GrpTRES", f"gres/gpu={-1 if gpus is None else gpus}", before
    )
    draft.say_verify("sacctmgr show assoc tree format=account,user,grptres")


def _qos(draft: SlurmDraft, limit: Limit) -> str | None:
    if limit.qos is not None:
        return limit.qos
    return draft.site.settings.get(f"partition.{limit.partition}.QoS") if limit.partition else None
