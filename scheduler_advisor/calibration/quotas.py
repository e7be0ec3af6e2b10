"""Limits of accounts and QoS on GPUs, as Slurm enforces them, as quotas of a policy.

Slurm's GrpTRES caps what all jobs of an account and the accounts below it hold at once; a user's
own association caps that user in that account. A job that would exceed it waits and holds back
nobody. They become queues with a maximum. Where no account has one and QoS have, the QoS are the
queues.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.past import Past

GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
TYPED = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
ENFORCING = {"limits", "safe", "all", "1"}
EXCEEDED = 0.02  # of starts above the limit: until then a limit that came or went on the way
_OWNED = re.compile(r"^(account|user|qos)\.(.+)\.(GrpTRES)$")


@dataclass(frozen=True, slots=True)
class Quotas:
    """``keys`` of a policy; ``remarks`` on limits that they leave out. ``by_qos``: the queues are
    QoS, whose limits together are then not counted again."""

    keys: dict[str, object]
    remarks: tuple[str, ...] = ()

    @property
    def by_qos(self) -> bool:
        """Whether the QoS are the queues."""
        return self.keys.get("quota.by") == "qos"


def gpu_limit(text: str) -> int | None:
    """GPUs in a list of limits such as ``cpu=64,gres/gpu=8``; None: not limited."""
    found = GPUS.search(text)
    return int(found[1]) if found else None


def quotas_of(settings: Mapping[str, str], jobs: Jobs, *, shares: bool = False) -> Quotas:
    """The queues that the settings' limits mean for these jobs. ``shares``: the order in force
    weighs accounts by their shares, so that the tree of accounts counts in any case."""
    tree = _Tree(settings, jobs)
    remarks = list(tree.remarks())
    keys = tree.keys(shares=shares)
    if not keys and not shares:
        keys = _by_qos(settings, jobs)
    if any(key.endswith(".maximum") for key in keys):
        remarks.append("limits of accounts or QoS are replayed as quotas of GPUs")
    return Quotas(keys, tuple(remarks))


def _by_qos(settings: Mapping[str, str], jobs: Jobs) -> dict[str, object]:
    keys: dict[str, object] = {}
    for name in jobs.qos.names:
        gpus = gpu_limit(settings.get(f"qos.{name}.GrpTRES", "")) if name else None
        if gpus is not None:
            keys[f"quota.queues.{name}.maximum"] = gpus
    return {"quota.by": "qos", **keys} if keys else {}


class _Tree:
    """Accounts that jobs use, with those above them, and users that have a limit of their own."""

    def __init__(self, settings: Mapping[str, str], jobs: Jobs) -> None:
        self._settings, self._jobs = settings, jobs
        self._used = sorted({name for name in jobs.account.names if name})
        pairs = np.unique(np.stack([jobs.account.codes, jobs.user.codes], axis=1), axis=0)
        self._users = [
            f"{jobs.account.names[account]}/{jobs.user.names[user]}"
            for account, user in pairs.tolist()
            if jobs.account.names[account] and jobs.user.names[user]
        ]

    def _above(self, account: str) -> list[str]:
        """Accounts above it, the nearest first, without the root unless it has a limit."""
        found: list[str] = []
        while above := self._settings.get(f"account.{account}.Parent", ""):
            if above in found or above == account:
                break
            if above == "root" and self._limit("account", "root") is None:
                break
            found.append(above)
            account = above
        return found

    def _limit(self, kind: str, name: str) -> int | None:
        return gpu_limit(self._settings.get(f"{kind}.{name}.GrpTRES", ""))

    def _share(self, kind: str, name: str) -> int | None:
        text = self._settings.get(f"{kind}.{name}.Share", "")
        return int(text) if text.isdigit() else None

    def keys(self, *, shares: bool) -> dict[str, object]:
        """Keys of the policy; empty where no account or user has anything to say."""
        keys: dict[str, object] = {}
        for account in self._used:
            chain = [account, *self._above(account)]
            for name in chain:
                keys |= self._own("account", name, shares=shares)
            if shares or any(self._limit("account", name) is not None for name in chain[1:]):
                keys |= {f"quota.queues.{one}.parent": above for one, above in pairwise(chain)}
        for user in self._users:
            keys |= self._own("user", user, shares=shares)
        if not keys:
            return {}
        return {"quota.by": "account/user" if shares or self._deep(keys) else "account", **keys}

    def _own(self, kind: str, name: str, *, shares: bool) -> dict[str, object]:
        values = {"maximum": self._limit(kind, name)}
        if shares:
            values["weight"] = self._share(kind, name)
        return {f"quota.queues.{name}.{key}": value for key, value in values.items()
                if value is not None}  # fmt: skip

    def _deep(self, keys: Mapping[str, object]) -> bool:
        """Whether users are queues: one has a limit, or an account with jobs has others below."""
        parents = {value for key, value in keys.items() if key.endswith(".parent")}
        named = any("/" in key for key in keys)
        return named or bool(parents & set(self._used))

    def remarks(self) -> Iterator[str]:
        typed = sorted(
            key
            for key, value in self._settings.items()
            if _OWNED.match(key) and TYPED.search(value) and not GPUS.search(value)
        )
        if typed:
            yield f"limits on one GPU model are not replayed: {', '.join(typed[:3])}"
        parts = [key for key in self._settings if re.match(r"^user\.[^.]*@", key)]
        if parts:
            yield f"{len(parts)} limits of users in one partition are not replayed"


def enforced(settings: Mapping[str, str], past: Past) -> tuple[dict[str, str], tuple[str, ...]]:
    """The settings without limits that were not in force, and which ones those are.

    None is where Slurm does not enforce limits (AccountingStorageEnforce); one is not that the
    real starts exceeded, or that a job exceeded alone.
    """
    told = settings.get("AccountingStorageEnforce")
    limits = [key for key in settings if _OWNED.match(key)]
    if told is not None and not {each.strip() for each in told.lower().split(",")} & ENFORCING:
        said = f"limits are set and not enforced (AccountingStorageEnforce={told})"
        gone = [key for key in settings if key.split(".")[0] in ("account", "user", "qos")
                and key.rpartition(".")[2] in _COUNTED]  # fmt: skip
        return _without(settings, gone), (said,) if gone else ()
    if past.wait_s is None:
        return dict(settings), ()
    used = _Use(settings, past)
    over = {key: most for key in limits if (most := used.exceeding(key)) is not None}
    remarks = tuple(
        f"{key} = {settings[key]} was not in force: {most:,} GPUs were held at once"
        for key, most in over.items()
    )
    return _without(settings, over), remarks


_COUNTED = ("GrpTRES", "GrpJobs", "MaxJobs", "MaxTRES", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU",
            "MaxJobsPA")  # fmt: skip


def _without(settings: Mapping[str, str], gone: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in gone}


class _Use:
    """What the owners of limits really held."""

    def __init__(self, settings: Mapping[str, str], past: Past) -> None:
        self._settings, self._past = settings, past

    def exceeding(self, key: str) -> int | None:
        """The most GPUs held at once where they exceed the limit too often; None: it was kept."""
        match = _OWNED.match(key)
        limit = gpu_limit(self._settings[key])
        own = self._jobs_of(match[1], match[2]) if match and limit is not None else None
        if own is None or limit is None or not own.any():
            return None
        past = self._past
        gpus = past.gpus_held[own]
        held = held_at_starts(past.real_start[own], past.real_end[own], gpus)
        judged = past.judged[own] & (gpus > 0)
        if not judged.any():
            return None
        above = held[judged] > limit + 1e-9
        alone = gpus[judged].max() > limit
        return round(float(held[judged].max())) if alone or above.mean() > EXCEEDED else None

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
