"""Limits of users and accounts that hang on a QoS, or on the QoS of a partition."""

from __future__ import annotations

from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.handover.slurm.draft import SlurmDraft

_COLUMNS = {Scope.USER: "MaxTRESPU", Scope.ACCOUNT: "MaxTRESPA", Scope.ALL: "GrpTRES"}


def limits(draft: SlurmDraft) -> None:
    """One setting of a QoS for each limit that changes."""
    for limit, gpus in draft.beside.limits:
        name = _qos(draft, limit)
        if name is None or limit.scope not in _COLUMNS:
            draft.refuse_beside("limits", "no QoS is known that has this limit")
            continue
        amount = f"gres/gpu={-1 if gpus is None else gpus}"
        draft.accounting.set_qos(name, _COLUMNS[limit.scope], amount)
        draft.say_verify("sacctmgr show qos format=name,grptres,maxtrespu,maxtrespa")


def _qos(draft: SlurmDraft, limit: Limit) -> str | None:
    if limit.qos is not None:
        return limit.qos
    return draft.site.settings.get(f"partition.{limit.partition}.QoS") if limit.partition else None
