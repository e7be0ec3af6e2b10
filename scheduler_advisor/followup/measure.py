"""What each kind of advice from facts is judged by: GPU time of the ledger, day by day.

A replayed change of policy is judged by capacity that stood free while jobs waited. Advice from
facts promised other hours: those of its own class, of the people or on the nodes that it named. The
same hours are counted before and after, without the least amounts from which a rule speaks: a fault
that has become too small to be advised on is not a fault that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from analytics.ledger import HELD, LedgerClass


class Of(Enum):
    """Whose GPU time counts."""

    PEOPLE = "people"  # the owners of the runs that the advice was about
    ACCOUNTS = "accounts"  # all of their accounts, on the models that the advice was about
    NODES = "nodes"
    CLUSTER = "cluster"


class Load(Enum):
    """By what the days are made comparable."""

    ASKED = "asked"  # GPU-hours of the jobs submitted that day, of the cluster
    USED = "used"  # GPU-hours that the same people used
    RUN = "run"  # hours of their runs, whatever these held
    BEGUN = "begun"  # runs that they began, however long these took


@dataclass(frozen=True, slots=True)
class Measure:
    """``micro``: micro-GPU-seconds of a row `c` of cells whose run is `r`. ``cause``: a class of
    `ledger_cause` instead, of runs of these people. ``above``: what is held above the target that
    the advice named, in hours in which something ran."""

    micro: str
    of: Of
    load: Load = Load.ASKED
    activity: bool = False  # days of which less than half was measured are left out
    cause: tuple[str, ...] = ()
    above: bool = False
    writing: bool = False  # the time that checkpoints took is added, from their marks
    apart: bool = False  # what parts of a job held until its last part started, from allocations
    now: bool = False  # promised for what was so at that time: the week before is the comparison


_IDLE = Measure("c.allocated_idle", Of.PEOPLE, activity=True)
_HELD = " + ".join(f"c.{each}" for each in HELD)
_ALL = " + ".join(f"c.{each}" for each in LedgerClass)
_ABOVE = Measure("c.allocated_idle", Of.ACCOUNTS, Load.USED, activity=True, above=True)
_QUEUED = "c.gang_wait + c.stranded_shape + c.stranded_topology + c.policy_blocked"

MEASURES: dict[str, Measure] = {
    "held_idle": replace(_IDLE, now=True),
    "idle_after_use": _IDLE,
    "gang_half": _IDLE,
    "gang_hang": Measure("c.suspect_hang", Of.PEOPLE, activity=True),
    "low_efficiency": _ABOVE,
    "input_bound": _ABOVE,
    "over_request": Measure("0", Of.PEOPLE, cause=("stranded_cpu", "stranded_mem")),
    "whole_node_memory": Measure("c.stranded_mem", Of.CLUSTER),
    "share_gpu": Measure(_HELD, Of.PEOPLE, Load.RUN),
    "complementary_hours": _IDLE,
    "fragmentation": Measure("c.stranded_shape", Of.CLUSTER),
    "gang_wait": Measure(_QUEUED, Of.NODES),
    "gang_off": Measure("0", Of.CLUSTER, apart=True),
    "uneven_runs": Measure(_HELD, Of.PEOPLE, Load.BEGUN),
    "drained_nodes": Measure("c.drained + c.failed", Of.NODES, now=True),
    "requeue_loops": Measure(f"CASE WHEN r.attempt > 1 THEN {_HELD} ELSE 0 END", Of.PEOPLE),
    "reserved_unused": Measure("c.reserved", Of.NODES),
    "quota_unused": Measure("c.policy_blocked", Of.CLUSTER),
    "night_idle": Measure("c.free", Of.NODES),
    "lost_work": Measure("c.lost", Of.PEOPLE, Load.USED),
    "checkpoint_interval": Measure("c.lost", Of.PEOPLE, Load.USED, writing=True),
    "fewer_nodes": Measure(_ALL, Of.CLUSTER),
}
# Of a replayed change of how checkpoints are written: work lost to stops, and the time to write.
LOST_TO_STOPS = Measure("c.lost", Of.CLUSTER, Load.USED, writing=True)
WIDE = (Of.NODES, Of.CLUSTER)  # what other changes of the cluster move too
