"""The policy that the scheduler's own settings describe, and what of them is only approximated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from scheduler_advisor.calibration.multifactor import multifactor_of
from scheduler_advisor.calibration.quotas import quotas_of
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Backfill, Policy

# One row = a setting of the cluster as it was at the instant, or else as first seen after it: the
# settings of today are the best guess for weeks in which nobody looked.
_SETTINGS = """
SELECT key, arg_min(value, CASE WHEN valid_from <= $2 THEN epoch($2 - valid_from)
  ELSE 1e12 + epoch(valid_from - $2) END) AS value
FROM scheduler_setting WHERE cluster = $1 AND (valid_to IS NULL OR valid_to > $2) GROUP BY key
"""
# One row = the GPUs that an account may use at the instant, of all models.
_QUOTAS = """
SELECT coalesce(account, name) AS account, sum(gpus)::BIGINT AS gpus FROM quota
WHERE cluster = $1 AND partition IS NULL AND valid_from <= $2
  AND (valid_to IS NULL OR valid_to > $2) GROUP BY ALL ORDER BY 1
"""


class Rows(Protocol):
    """What is needed of a store."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]:
        """Rows of one query."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A policy with the settings that it was read from, and remarks on what the replay cannot do.

    ``source``: settings | search | assumed.
    """

    policy: Policy
    source: str
    read: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


def stored_settings(store: Rows, cluster: str, at: datetime) -> dict[str, str]:
    """The scheduler's settings at ``at`` by key, with quotas of accounts (``quota.ACCOUNT.gpus``)
    that a scheduler with quotas has; empty where none were ever imported."""
    found = {row["key"]: row["value"] for row in store.rows(_SETTINGS, [cluster, at])}
    quotas = store.rows(_QUOTAS, [cluster, at])
    return found | {f"quota.{row['account']}.gpus": str(row["gpus"]) for row in quotas}


def policy_of(settings: Mapping[str, str], jobs: Jobs, *, weighed: bool = True) -> InForce | None:
    """The policy that Slurm's settings mean; None where they do not say how jobs are scheduled.

    ``weighed``: a multifactor priority is worked out from the stored weights; else the priority
    that accounting keeps of each job stands for it.
    """
    if "SchedulerType" not in settings:
        return None
    values: dict[str, object] = {}
    remarks: list[str] = []
    _backfill(settings, values)
    _order(settings, jobs, values, remarks, weighed=weighed)
    _placement(settings, values)
    _preemption(settings, values)
    by_shares = bool(multifactor_of(settings).get("multifactor.fairshare"))
    quotas = quotas_of(settings, jobs, shares=by_shares)
    values |= quotas.keys
    remarks += quotas.remarks
    return InForce(_policy(values, remarks), "settings", _read(settings), tuple(remarks))


def other_readings(read: InForce, settings: Mapping[str, str], jobs: Jobs) -> list[InForce]:
    """What else the same settings can mean, for where the first reading repeats reality badly."""
    found = []
    plain = policy_of(settings, jobs, weighed=False)
    if plain is not None and plain.policy != read.policy:
        found.append(plain)
    if read.policy.backfill is Backfill.EASY:
        wait = re.search(r"bf_interval=(\d+)", settings.get("SchedulerParameters", ""))
        keys = {"backfill.whole_nodes": "true", "backfill.interval_s": wait[1] if wait else "30"}
        for each in (read, *found[:1]):
            remarks: list[str] = []
            policy = _policy(keys, remarks, each.policy)
            if not remarks:
                said = "backfill keeps whole nodes for each blocked job that it looks at"
                found.append(replace(each, policy=policy, remarks=(*each.remarks, said)))
    return found


def _policy(
    values: Mapping[str, object], remarks: list[str], start: Policy | None = None
) -> Policy:
    policy = start or Policy()
    try:
        return policy.with_values(values)
    except PolicyError:
        pass  # one by one, to name what is not replayed
    for key, value in values.items():
        try:
            policy = policy.with_values({key: value})
        except PolicyError:
            remarks.append(f"{key} = {value} is not replayed")
    return policy


_READ = ("SchedulerType", "SchedulerParameters", "PriorityType", "SelectType",
         "SelectTypeParameters", "PreemptType", "PreemptMode", "TopologyPlugin")  # fmt: skip


def _read(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, settings[key]) for key in _READ if key in settings)


def _backfill(settings: Mapping[str, str], values: dict[str, object]) -> None:
    kind = settings["SchedulerType"].removeprefix("sched/")
    values["backfill"] = "easy" if kind == "backfill" else "none"
    if kind == "backfill":
        depth = re.search(r"bf_max_job_test=(\d+)", settings.get("SchedulerParameters", ""))
        values["backfill.depth"] = int(depth[1]) if depth else 500  # Slurm's default since 21.08


def _order(
    settings: Mapping[str, str],
    jobs: Jobs,
    values: dict[str, object],
    remarks: list[str],
    *,
    weighed: bool,
) -> None:
    multifactor = settings.get("PriorityType", "").endswith("multifactor")
    tiers = {v for k, v in settings.items() if k.endswith(".PriorityTier")}
    varied = len(jobs) > 0 and int(np.ptp(jobs.priority)) > 0
    values["order"] = "priority" if multifactor and varied else "fifo"
    weights = multifactor_of(settings) if multifactor and weighed else {}
    if weights:
        values |= weights
        known = any(key.endswith(".Share") for key in settings)
        shares = "the accounts' shares" if known else "accounts' shares are alike"
        remarks.append(f"multifactor priority from the stored weights; {shares}")
    elif multifactor:
        remarks.append(
            "multifactor priority: the priority that accounting keeps of each job stands for it"
            if varied
            else "multifactor priority: no job's priority is known, the order of submit is replayed"
        )
    if len(tiers) > 1:
        remarks.append("partitions have priority tiers: they come first")


def _placement(settings: Mapping[str, str], values: dict[str, object]) -> None:
    spread = "CR_LLN" in settings.get("SelectTypeParameters", "") or any(
        key.endswith(".LLN") and value == "YES" for key, value in settings.items()
    )
    values["placement"] = "worst-fit" if spread else "best-fit"
    if settings.get("TopologyPlugin", "").removeprefix("topology/") in ("tree", "block"):
        values["placement"] = "topology"
    # First fit in the order of nodes is what Slurm does within a switch; best fit is nearer to
    # cons_tres, which takes the fewest and fullest nodes that hold the job.


def preempts(settings: Mapping[str, str]) -> bool:
    """Whether the scheduler stops jobs for others."""
    kind = settings.get("PreemptType", "preempt/none").removeprefix("preempt/")
    return kind not in ("none", "(null)")


def _preemption(settings: Mapping[str, str], values: dict[str, object]) -> None:
    values["preemption"] = "priority" if preempts(settings) else "none"
