"""Which of the limits that are set were really in force, from what was really held."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.calibration.hierarchy import GROUP_GPUS, Hierarchy, gpu_limit
from scheduler_advisor.calibration.quotas import OWNED, QUOTA
from scheduler_advisor.engine.counters import bound_by
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.past import Past

ENFORCING = {"limits", "safe", "all", "1"}
EXCEEDED = 0.02  # of starts above the limit: until then a limit that came or went on the way


def enforced(settings: Mapping[str, str], past: Past) -> tuple[dict[str, str], tuple[str, ...]]:
    """The settings without limits that were not in force, and which ones those are.

    None is where Slurm does not enforce limits (AccountingStorageEnforce); one is not that the
    real starts exceeded, or that a job exceeded alone; starts that another limit goes before
    say nothing of it, but what they held counts.
    """
    told = settings.get("AccountingStorageEnforce")
    limits = [key for key in settings if OWNED.match(key)]
    if told is not None and not {each.strip() for each in told.lower().split(",")} & ENFORCING:
        said = f"limits are set and not enforced (AccountingStorageEnforce={told})"
        gone = [key for key in settings if key.split(".")[0] in ("account", "user", "qos")
                and key.rpartition(".")[2] in _COUNTED]  # fmt: skip
        return _without(settings, gone), (said,) if gone else ()
    if past.wait_s is None:
        return dict(settings), ()
    settings = _borrowed(settings, past)
    used = _Use(settings, past)
    over = {key: most for key in limits if (most := used.exceeding(key)) is not None}
    remarks = tuple(
        f"{key} = {settings[key]} was not in force: {most:,} GPUs were held at once"
        for key, most in over.items()
    )
    return _without(settings, over), remarks


def _borrowed(settings: Mapping[str, str], past: Past) -> dict[str, str]:
    """Quotas that accounts were seen above are guarantees: others lend."""
    found = dict(settings)
    for key in [key for key in settings if QUOTA.match(key) and key.endswith(".gpus")]:
        account = key[len("quota.") : -len(".gpus")]
        as_limit = {f"account.{account}.GrpTRES": f"gres/gpu={settings[key]}"}
        if _Use(as_limit, past).exceeding(f"account.{account}.GrpTRES") is not None:
            found[f"quota.{account}.guarantee"] = found.pop(key)
    return found


_COUNTED = ("GrpTRES", "GrpJobs", "MaxJobs", "MaxTRES", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU",
            "MaxJobsPA")  # fmt: skip


def _without(settings: Mapping[str, str], gone: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in gone}


class _Use:
    """What the owners of limits really held."""

    def __init__(self, settings: Mapping[str, str], past: Past) -> None:
        self._settings, self._past = settings, past
        self._hierarchy = Hierarchy(settings)

    def exceeding(self, key: str) -> int | None:
        """The most GPUs held at once where they exceed the limit too often; None: it was kept."""
        match = OWNED.match(key)
        limit = gpu_limit(self._settings[key])
        if match is None or limit is None:
            return None
        own = self._jobs_of(match[1], match[2])
        if not own.any():
            return None
        past = self._past
        gpus = past.gpus_held[own]
        held = held_at_starts(past.real_start[own], past.real_end[own], gpus)
        judged = (past.judged & self._bound(match[1], match[2]))[own] & (gpus > 0)
        if not judged.any():
            return None
        above = held[judged] > limit + 1e-9
        alone = gpus[judged].max() > limit
        return round(float(held[judged].max())) if alone or above.mean() > EXCEEDED else None

    def _bound(self, kind: str, name: str) -> NDArray[np.bool_]:
        """The jobs that no limit before this one binds instead."""
        before = (
            self._hierarchy.before_job_qos(name, "GrpTRES") if kind == "qos"
            else self._hierarchy.before_accounts(GROUP_GPUS)
        )  # fmt: skip
        return bound_by(self._past.jobs, before.spares(Limit(Scope.ALL)))

    def _jobs_of(self, kind: str, name: str) -> NDArray[np.bool_]:
        jobs = self._past.jobs
        if kind == "qos":
            of_qos: NDArray[np.bool_] = jobs.qos.codes == _code(jobs.qos.names, name)
            return of_qos
        account, _, user = name.partition("/")
        if kind == "user":
            both = jobs.account.codes == _code(jobs.account.names, account)
            mask: NDArray[np.bool_] = both & (jobs.user.codes == _code(jobs.user.names, user))
            return mask
        below = {account}
        while (
            more := {
                key[len("account.") : -len(".Parent")]
                for key, value in self._settings.items()
                if key.startswith("account.") and key.endswith(".Parent") and value in below
            }
            - below
        ):
            below |= more
        codes = [at for at, each in enumerate(jobs.account.names) if each in below]
        return np.isin(jobs.account.codes, codes)


def held_at_starts(
    start: NDArray[np.int64], end: NDArray[np.int64], gpus: NDArray[np.float64]
) -> NDArray[np.float64]:
    """GPUs that these jobs held when each of them had started, itself included."""
    by_start, by_end = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    up = np.concatenate([[0.0], np.cumsum(gpus[by_start])])
    down = np.concatenate([[0.0], np.cumsum(gpus[by_end])])
    begun = np.searchsorted(start[by_start], start, "right")
    ended = np.searchsorted(end[by_end], start, "right")
    held: NDArray[np.float64] = up[begun] - down[ended]
    return held


def _code(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1
