"""Slurm's multifactor weights as keys of a policy, from what the controller said of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collector.slurm.duration import limit_seconds

_WEIGHTS = {
    "PriorityWeightAge": "age",
    "PriorityWeightAssoc": "association",
    "PriorityWeightFairShare": "fairshare",
    "PriorityWeightFairshare": "fairshare",
    "PriorityWeightJobSize": "size",
    "PriorityWeightPartition": "partition",
    "PriorityWeightQOS": "qos",
}
_TRES = {"gres/gpu": "tres_gpu", "cpu": "tres_cpu", "mem": "tres_mem"}
_NAMED = re.compile(r"^(qos|partition)\.(.+)\.(Priority|PriorityJobFactor)$")
_TIMES = {
    "PriorityMaxAge": "multifactor.max_age_s",
    "PriorityDecayHalfLife": "fairshare.half_life_s",
    "PriorityCalcPeriod": "fairshare.period_s",
}


def multifactor_of(settings: Mapping[str, str]) -> dict[str, object]:
    """Keys of the policy; empty where no weight is above 0: then Slurm serves in order of submit.

    Priorities of QoS and partitions come with them; shares of accounts are not stored, so that
    every account counts alike. The site factor stays out: what accounting keeps as a job's
    priority is the sum of all factors.
    """
    weights = {
        f"multifactor.{name}": int(settings[key])
        for key, name in _WEIGHTS.items()
        if settings.get(key, "").isdigit()
    }
    weights |= _tres(settings.get("PriorityWeightTRES", ""))
    if not any(weights.values()):
        return {}
    values: dict[str, object] = {"order": "multifactor", **weights, "multifactor.site": 0}
    for key, name in _TIMES.items():
        seconds = limit_seconds(settings[key]) if settings.get(key) else None
        if seconds:
            values[name] = seconds
    if settings.get("PriorityFavorSmall", "").lower() in ("yes", "true", "1"):
        values["multifactor.favor_small"] = "true"
    if weights.get("multifactor.fairshare"):
        values["quota.by"] = "account/user"
    return values | _named(settings)


def _tres(text: str) -> dict[str, int]:
    found = {}
    for part in text.split(","):
        name, _, weight = part.partition("=")
        known = _TRES.get(name.strip().lower())
        if known and weight.strip().isdigit():
            found[f"multifactor.{known}"] = int(weight)
    return found


def _named(settings: Mapping[str, str]) -> dict[str, object]:
    """What each QoS and each partition gives."""
    found: dict[str, object] = {}
    for key, value in settings.items():
        match = _NAMED.match(key)
        if match and value.isdigit() and (match[1] == "qos") == (match[3] == "Priority"):
            found[f"multifactor.{match[1]}_priority.{match[2]}"] = int(value)
    return found
