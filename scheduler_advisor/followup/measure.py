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
    runs: str = "TRUE"  # which of their runs `r` count
    models: bool = False  # only on the models that the advice was about
    activity: bool = False  # days of which less than half was measured are left out
    cause: tuple[str, ...] = ()
    above: bool = False
    writing: bool = False  # the time that checkpoints took is added, from their marks
    apart: bool = False  # what parts of a job held until its last part started, from allocations
    now: bool = False  # promised for what was so at that time: the week before is the comparison


_IDLE = Measure("c.allocated_idle", Of.PEOPLE, activity=True)
_HELD = " + ".join(f"c.{each}" for each in HELD)
_ALL = " + ".join(f"c.{each}" for each in LedgerClass)
_ABOVE = Measure("c.allocated_idle", Of.ACCOUNTS, Load.USED, models=True, activity=True, above=True)
# GPUs that are kept empty for a gang are nobody's gain, and neither is another name for why they
# are free: with a reservation for it they are reserved, beside a job that took the CPUs stranded.
_KEPT = """c.gang_wait + c.stranded_shape + c.stranded_topology + c.stranded_cpu + c.stranded_mem
  + c.policy_blocked + c.reserved"""
# What small jobs leave free beside them is wanted by the next whole-node job, which gathers it, or
# by one after it: the ledger's names for the two.
_BROKEN = "c.gang_wait + c.stranded_shape"
# Jobs that could share hold one GPU or less. What else their owner runs is not theirs to save.
_SMALL = "coalesce(r.gpus, 0) <= 1"

MEASURES: dict[str, Measure] = {
    "held_idle": replace(_IDLE, now=True),
    "idle_after_use": _IDLE,
    "gang_half": _IDLE,
    "gang_hang": Measure("c.suspect_hang", Of.PEOPLE, activity=True),
    "low_efficiency": _ABOVE,
    "input_bound": _ABOVE,
    "over_request": Measure("0", Of.PEOPLE, cause=("stranded_cpu", "stranded_mem")),
    # Of jobs: a node that stands empty has no memory for the jobs of this site by its size.
    "whole_node_memory": Measure("0", Of.CLUSTER, cause=("stranded_mem",)),
    "share_gpu": Measure(_HELD, Of.PEOPLE, Load.RUN, runs=_SMALL, models=True),
    "complementary_hours": _IDLE,
    "fragmentation": Measure(_BROKEN, Of.CLUSTER),
    "gang_wait": Measure(_KEPT, Of.NODES),
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
