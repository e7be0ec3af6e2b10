"""Every change that the search tries, one line each: a name, keys of the policy, what it touches.

A key or value that this version of the simulator does not know is skipped and named as not tried,
so a line may be written here before the simulator has the part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import numpy as np

from scheduler_advisor.checkpoints import Writing
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate


class Part(StrEnum):
    """What a change touches; two changes of the same part exclude each other."""

    ORDER = "order"
    BACKFILL = "backfill"
    GANG = "gang"
    PLACEMENT = "placement"
    PREEMPTION = "preemption"
    REQUESTS = "requests"
    NODES = "nodes"
    QUOTA = "quota"
    DEFRAGMENTATION = "defrag"
    SHARING = "sharing"
    ELASTIC = "elastic"
    CHECKPOINT = "checkpoint"


class Alter(StrEnum):
    """A change of the jobs themselves, see `alter`."""

    NOTHING = ""
    CAP_CPU = "cap_cpu"
    CAP_MEMORY = "cap_memory"


@dataclass(frozen=True, slots=True)
class Change:
    """One named change. ``risk`` 0 to 4, ``effort`` low | medium | high, as in the report.

    ``name``: key of the sentences, with what fills them behind colons (`said`). ``limits``: those
    of the cluster instead of today's. ``owners``: queues that lend; the change leans on how often
    they come back.
    """

    name: str
    part: Part
    keys: Mapping[str, object] = field(default_factory=dict, hash=False)
    alter: Alter = Alter.NOTHING
    nodes: int = 0
    writing: Writing = Writing.AS_IT_IS
    risk: int = 1
    effort: str = "low"
    disrupts: bool = False  # it may stop running work
    prompted_by: tuple[str, ...] = ()  # causes (`aims`) that it answers; empty: always tried
    limits: tuple[Limit, ...] | None = field(default=None, hash=False)
    owners: tuple[str, ...] = ()


# The names of `diagnosis.Bottleneck`; fairness is one that only orders and quotas answer.
PACKING, URGENCY, GANG, IDLE, TOPOLOGY = "packing", "urgency", "gang", "idle", "topology"
FAIRNESS, LIMITS, LOST = "fairness", "quota", "lost"

# What stands behind the colons of a name.
SAID: Mapping[str, tuple[str, ...]] = {
    "limit_move": ("gpus", "giver", "taker"),
    "cap_team": ("gpus", "team"),
    "user_limits_share": ("gpus",),
    "defrag_nightly": ("hour",),
    "defrag_twice": ("hour", "other"),
    "fill_upto": ("minutes",),
    "backfill_planned": ("jobs",),
}


def said(name: str) -> tuple[str, dict[str, str]]:
    """The key of a change's sentences, and what fills them."""
    key, *values = name.split(":")
    return key, dict(zip(SAID.get(key, ()), values, strict=False))


CHANGES: tuple[Change, ...] = (
    Change("backfill_easy", Part.BACKFILL, {"backfill": "easy"}),
    Change("backfill_deep", Part.BACKFILL, {"backfill": "easy", "backfill.depth": 0}),
    Change("backfill_greedy", Part.BACKFILL, {"backfill": "greedy"}, risk=3),
    Change("backfill_conservative", Part.BACKFILL, {"backfill": "conservative"}, risk=2),
    Change("backfill_planned:100", Part.BACKFILL, {"backfill": "conservative",
           "backfill.depth": 100}, risk=2),
    Change("fill_1h", Part.BACKFILL, {"backfill": "greedy", "backfill.max_limit_s": 3600}, risk=2),
    Change("fill_15m", Part.BACKFILL, {"backfill": "greedy", "backfill.max_limit_s": 900}, risk=2,
           prompted_by=(GANG,)),
    Change("fill_4h", Part.BACKFILL, {"backfill": "greedy", "backfill.max_limit_s": 14_400}, risk=2,
           prompted_by=(GANG,)),
    Change("order_fifo", Part.ORDER, {"order": "fifo"}),
    Change("order_priority", Part.ORDER, {"order": "priority"}),
    Change("order_shortest", Part.ORDER, {"order": "sjf-limit"}, risk=3),
    Change("order_largest", Part.ORDER, {"order": "largest-first"}, risk=2),
    Change("order_multifactor", Part.ORDER, {"order": "multifactor", "multifactor.age": 1000,
           "multifactor.qos": 10000, "multifactor.fairshare": 5000}, risk=2, effort="medium",
           prompted_by=(URGENCY, FAIRNESS)),
    Change("order_fair_share", Part.ORDER, {"order": "fair-share",
           "fairshare.half_life_s": 604800}, risk=2, effort="medium", prompted_by=(FAIRNESS,)),
    Change("gang_on", Part.GANG, {"gang": "true"}, risk=2, effort="medium"),
    Change("pack", Part.PLACEMENT, {"placement": "best-fit"}),
    Change("consolidate", Part.PLACEMENT, {"placement": "consolidate"}),
    Change("spread", Part.PLACEMENT, {"placement": "worst-fit"}, risk=2),
    Change("fgd", Part.PLACEMENT, {"placement": "fgd"}, risk=2, effort="high"),
    Change("topology", Part.PLACEMENT, {"placement": "topology", "topology.level": "leaf"},
           effort="medium", prompted_by=(TOPOLOGY,)),
    Change("topology_required", Part.PLACEMENT, {"placement": "topology", "topology.level": "leaf",
           "topology.binding": "required"}, risk=3, effort="medium", prompted_by=(TOPOLOGY,)),
    Change("preempt_priority", Part.PREEMPTION, {"preemption": "priority"}, risk=3,
           effort="medium", disrupts=True),
    Change("preempt_guarded", Part.PREEMPTION, {"preemption": "priority",
           "preemption.min_run_s": 1800, "preemption.max_per_job": 2}, risk=3, effort="medium",
           disrupts=True, prompted_by=(URGENCY,)),
    Change("defrag_pressure", Part.DEFRAGMENTATION, {"defrag": "threshold", "defrag.moves": 8},
           risk=3, effort="high", disrupts=True, prompted_by=(PACKING, GANG)),
    Change("defrag_waiting", Part.DEFRAGMENTATION, {"defrag": "pending", "defrag.moves": 8},
           risk=3, effort="high", disrupts=True, prompted_by=(PACKING, GANG)),
    Change("share_mig", Part.SHARING, {"sharing": "mig"}, risk=3, effort="high",
           prompted_by=(PACKING, IDLE)),
    Change("share_mps", Part.SHARING, {"sharing": "mps"}, risk=3, effort="medium",
           prompted_by=(PACKING, IDLE)),
    Change("share_timeslice", Part.SHARING, {"sharing": "time-slice"}, risk=3, effort="medium",
           prompted_by=(PACKING, IDLE)),
    Change("elastic", Part.ELASTIC, {"elastic": "resize"}, risk=3, effort="high",
           prompted_by=(PACKING, GANG)),
    Change("cap_cpu", Part.REQUESTS, alter=Alter.CAP_CPU, risk=2),
    Change("cap_memory", Part.REQUESTS, alter=Alter.CAP_MEMORY, risk=2),
)  # fmt: skip
"""Nodes more and fewer come from the size of the fleet, see `nodes_changes`; limits of teams from
those in force and how they are used, see `quota_changes`; intervals between checkpoints from what
the jobs show, see `writing`; quiet hours and limits that fill gaps, see `of_site`."""

NODE_SHARES = (-0.10, -0.05, 0.05, 0.10, 0.20)
"""Of the fleet: what 'N more' and 'N fewer' mean."""


def nodes_changes(nodes: int) -> list[Change]:
    """N more and N fewer nodes, at least one."""
    counts = sorted({round(nodes * share) or (1 if share > 0 else -1) for share in NODE_SHARES})
    return [
        more_nodes(count) if count > 0 else fewer_nodes(-count)
        for count in counts
        if nodes + count > 0
    ]


def more_nodes(count: int) -> Change:
    """That many more, like the last of the fleet."""
    return Change(f"more_nodes_{count}", Part.NODES, nodes=count, risk=1, effort="high")


def fewer_nodes(count: int) -> Change:
    """That many fewer, from the end of the fleet."""
    return Change(f"fewer_nodes_{count}", Part.NODES, nodes=-count, risk=2, effort="high")


def applied(policy: Policy, change: Change) -> Policy | None:
    """The policy with the change, or None where the keys are not known or do not go together."""
    try:
        return policy.with_values({key: str(value) for key, value in change.keys.items()})
    except PolicyError:
        return None


@cache
def replayable(policy: Policy, *, shares: bool = False) -> bool:
    """Whether the simulator has every part of the policy: one small job, to which all of them could
    do something, is replayed to see; with ``shares`` one that takes parts of GPUs."""
    one = np.ones(1, np.int64)
    job = Jobs.build(
        submit=one, run=one, gpus=2 * one, tasks=2 * one, gpus_per_task=one * (not shares),
        min_tasks=one, preemptible=one, gpu_milli=500 * one * shares,
    )  # fmt: skip
    try:
        simulate(job, Cluster.uniform(1, 2), policy)
    except PolicyError:
        return False
    return True
