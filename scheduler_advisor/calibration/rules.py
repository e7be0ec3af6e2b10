"""The rules that bind jobs beside the order: which limits are in force, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scheduler_advisor.calibration.cluster_rules import with_rules
from scheduler_advisor.calibration.enforced import enforced
from scheduler_advisor.calibration.in_force import policy_of
from scheduler_advisor.calibration.quotas import quotas_of
from scheduler_advisor.calibration.told_limits import told_limits
from scheduler_advisor.caps import Caps
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.live.settings import QuotaPart
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.past import Past


@dataclass(frozen=True, slots=True)
class Ruled:
    """``settings`` without limits that were not in force and with those that only the scheduler's
    reasons tell; the cluster that they bind; quotas of the policy; what was left out or told."""

    settings: dict[str, str]
    cluster: Cluster
    quota: QuotaPart
    remarks: tuple[str, ...]


def rules_of(settings: Mapping[str, str], past: Past) -> Ruled:
    """What is in force on ``past``, from the settings that are known."""
    kept, gone = enforced(settings, past)
    told = told_limits(kept, past)
    kept |= told.settings
    read = policy_of(kept, past.jobs)
    quotas = quotas_of(kept, past.jobs)
    quota = Policy().with_values(quotas.keys).quota if read is None else read.policy.quota
    cluster = with_rules(past.cluster, kept, queues_are_qos=quota.by == "qos")
    cluster = replace(cluster, limits=(*cluster.limits, *quotas.limits, *told.limits))
    own = quotas.remarks if read is None else ()  # else they are the policy's own
    return Ruled(kept, cluster, quota, (*own, *gone, *told.remarks))


def caps_of(settings: Mapping[str, str], past: Past) -> Caps:
    """The limits in force that hold jobs back."""
    ruled = rules_of(settings, past)
    return Caps(past.jobs, ruled.cluster, ruled.quota)
