"""Place-only packing: how full a placement rule gets a cluster before it is in its own way."""

from scheduler_advisor.engine.packing.errors import PackingError
from scheduler_advisor.engine.packing.outcome import CurvePoint, Packing
from scheduler_advisor.engine.packing.policy import PackPolicy, Score, Ties
from scheduler_advisor.engine.packing.run import Prepared, fragmentation_milli, pack
from scheduler_advisor.engine.packing.shapes import MILLI, Nodes, Pods
from scheduler_advisor.engine.packing.workload import in_order, inflated

__all__ = [
    "MILLI",
    "CurvePoint",
    "Nodes",
    "PackPolicy",
    "Packing",
    "PackingError",
    "Pods",
    "Prepared",
    "Score",
    "Ties",
    "fragmentation_milli",
    "in_order",
    "inflated",
    "pack",
]
