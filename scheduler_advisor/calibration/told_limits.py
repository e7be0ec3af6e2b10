"""Limits that nobody wrote down for us, from what the scheduler said of jobs that it held back.

Accounting keeps the last reason why a job waited. Where most of an account's waiting is by jobs
that its limit held back, the account has a limit, and the most that it ever held is it: a queue
that waits at its limit fills it. So it is with QoS and, alike for all of them, with users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.calibration.enforced import held_at_starts
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.past import Past

ACCOUNT, USER, QOS = 1, 2, 3  # `Past.by_limit`
SHARE = 0.5  # of the hours that the owner's jobs waited
LEAST_JOBS = 5  # that were held back: fewer may be a limit that is long gone


@dataclass(frozen=True, slots=True)
class Told:
    """``settings``: as an import would have them. ``limits``: of users. ``remarks``: what they
    are."""

    settings: dict[str, str]
    limits: tuple[Limit, ...] = ()
    remarks: tuple[str, ...] = ()


def told_limits(settings: Mapping[str, str], past: Past) -> Told:
    """Limits of owners of which the settings know none; empty without reasons or real starts."""
    if past.wait_s is None or past.by_limit is None:
        return Told({})
    jobs, found = past.jobs, {}
    for scope, kind, column in ((ACCOUNT, "account", jobs.account), (QOS, "qos", jobs.qos)):
        for code, name in enumerate(column.names):
            own = column.codes == code
            key = f"{kind}.{name}.GrpTRES"
            if name and not _known(settings, kind, name) and _held_back(past, own, scope):
                found[key] = f"gres/gpu={_most(past, own)}"
    limits = _of_users(settings, past)
    said = [*(f"{key.removesuffix('.GrpTRES')}: {value.partition('=')[2]} GPUs"
              for key, value in found.items()),
            *(f"each user: {limit.max_gpus} GPUs" for limit in limits)]  # fmt: skip
    if not said:
        return Told({})
    remark = "limits by the reasons that the scheduler gave, at the most ever held: "
    return Told(found, limits, (remark + ", ".join(said),))


def _known(settings: Mapping[str, str], kind: str, name: str) -> bool:
    """Whether a setting tells a limit of the owner, of an account above it or a user in it."""
    if kind == "account" and any(key.startswith(f"user.{name}/") for key in settings):
        return True
    if kind == "account" and any(
        f"quota.{name}.{key}" in settings for key in ("gpus", "guarantee")
    ):
        return True
    seen: set[str] = set()
    while name and name not in seen:
        if f"{kind}.{name}.GrpTRES" in settings:
            return True
        seen.add(name)
        name = settings.get(f"{kind}.{name}.Parent", "")
    return False


def _of_users(settings: Mapping[str, str], past: Past) -> tuple[Limit, ...]:
    """One limit for all users, where some are held back by one and no setting tells it."""
    if any(key.endswith((".MaxTRESPU", ".MaxJobsPU")) for key in settings):
        return ()
    users = past.jobs.user
    held = [
        _most(past, users.codes == code)
        for code, name in enumerate(users.names)
        if name and _held_back(past, users.codes == code, USER)
    ]
    return (Limit(Scope.USER, max_gpus=max(held)),) if held else ()


def _held_back(past: Past, own: NDArray[np.bool_], scope: int) -> bool:
    assert past.by_limit is not None
    assert past.wait_s is not None
    waited = past.wait_s[own].astype(float)
    by_it = past.by_limit[own] == scope
    return bool(by_it.sum() >= LEAST_JOBS and waited[by_it].sum() >= SHARE * waited.sum())


def _most(past: Past, own: NDArray[np.bool_]) -> int:
    held = held_at_starts(past.real_start[own], past.real_end[own], past.gpus_held[own])
    return int(np.ceil(held.max(initial=1.0) - 1e-9))
