"""Limits of accounts and QoS on GPUs, as Slurm enforces them, as quotas of a policy.

Slurm's GrpTRES caps what all jobs of an account and the accounts below it hold at once; a user's
own association caps that user in that account. A job that would exceed it waits and holds back
nobody. They become queues with a maximum. Where no account has one and QoS have, the QoS are the
queues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from scheduler_advisor.calibration.hierarchy import GPUS, GROUP_GPUS, Hierarchy, gpu_limit
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, Scope

TYPED = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
OWNED = re.compile(r"^(account|user|qos)\.(.+)\.(GrpTRES)$")
QUOTA = re.compile(r"^quota\.(.+)\.(gpus|guarantee)$")


@dataclass(frozen=True, slots=True)
class Quotas:
    """``keys`` of a policy; ``remarks`` on limits that they leave out; ``limits`` of accounts and
    users that are no queues. ``by_qos``: the queues are QoS, whose limits together are then not
    counted again."""

    keys: dict[str, object]
    remarks: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()

    @property
    def by_qos(self) -> bool:
        """Whether the QoS are the queues."""
        return self.keys.get("quota.by") == "qos"


def quotas_of(settings: Mapping[str, str], jobs: Jobs, *, shares: bool = False) -> Quotas:
    """The queues that the settings' limits mean for these jobs. ``shares``: the order in force
    weighs accounts by their shares, so that the tree of accounts counts in any case."""
    tree = _Tree(settings, jobs)
    remarks = list(tree.remarks())
    keys = tree.keys(shares=shares)
    if not keys and not shares:
        keys = _by_qos(settings, jobs) or _stated(settings)
    if any(key.endswith(".maximum") for key in keys):
        remarks.append("limits of accounts or QoS are replayed as quotas of GPUs")
    return Quotas(keys, tuple(remarks), tree.limits)


def _by_qos(settings: Mapping[str, str], jobs: Jobs) -> dict[str, object]:
    keys: dict[str, object] = {}
    for name in jobs.qos.names:
        gpus = gpu_limit(settings.get(f"qos.{name}.GrpTRES", "")) if name else None
        if gpus is not None:
            keys[f"quota.queues.{name}.maximum"] = gpus
    return {"quota.by": "qos", **keys} if keys else {}


def _stated(settings: Mapping[str, str]) -> dict[str, object]:
    """Quotas of a scheduler that has them: each account's own, and no more, or what it is
    guaranteed where accounts were seen above theirs."""
    keys: dict[str, object] = {}
    for key, value in settings.items():
        if match := QUOTA.match(key):
            keys[f"quota.queues.{match[1]}.guarantee"] = int(value)
            if match[2] == "gpus":
                keys[f"quota.queues.{match[1]}.maximum"] = int(value)
    return {"quota.by": "account", **keys} if keys else {}


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
        self._before = Hierarchy(settings).before_accounts(GROUP_GPUS)
        self._spares = bool(set(self._before.qos) & set(jobs.qos.names)) or bool(
            set(self._before.partitions) & {n.partition("|")[0] for n in jobs.partitions.names}
        )

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Of accounts and users, where the QoS of some jobs goes before them."""
        if not self._spares:
            return ()
        chains = {account: [account, *self._above(account)] for account in self._used}
        found = []
        for name in sorted({each for chain in chains.values() for each in chain}):
            below = tuple(own for own, chain in chains.items() if name in chain[1:])
            if (gpus := self._limit("account", name)) is not None:
                found.append(Limit(Scope.ALL, max_gpus=gpus, account=name, below=below))
        for name in self._users:
            account, _, user = name.partition("/")
            if (gpus := self._limit("user", name)) is not None:
                found.append(Limit(Scope.ALL, max_gpus=gpus, account=account, user=user))
        return tuple(self._before.spares(limit) for limit in found)

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

    def _maximum(self, kind: str, name: str) -> int | None:
        """Of the queue; the limit is none where it does not bind all of the queue's jobs."""
        return None if self._spares else self._limit(kind, name)

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
            if shares or any(self._maximum("account", name) is not None for name in chain[1:]):
                keys |= {f"quota.queues.{one}.parent": above for one, above in pairwise(chain)}
        for user in self._users:
            keys |= self._own("user", user, shares=shares)
        if not keys:
            return {}
        return {"quota.by": "account/user" if shares or self._deep(keys) else "account", **keys}

    def _own(self, kind: str, name: str, *, shares: bool) -> dict[str, object]:
        values = {"maximum": self._maximum(kind, name)}
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
        if self.limits:
            first = [f"QoS {name}" for name in self._before.qos]
            first += [f"the QoS of partition {name}" for name in self._before.partitions]
            yield (
                f"{', '.join(first[:3])}: a limit of its own goes before those of accounts and "
                "users, against which its jobs count all the same"
            )
        typed = sorted(
            key
            for key, value in self._settings.items()
            if OWNED.match(key) and TYPED.search(value) and not GPUS.search(value)
        )
        if typed:
            yield f"limits on one GPU model are not replayed: {', '.join(typed[:3])}"
        parts = [key for key in self._settings if re.match(r"^user\.[^.]*@", key)]
        if parts:
            yield f"{len(parts)} limits of users in one partition are not replayed"
