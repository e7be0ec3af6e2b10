"""Fleet specs: ``pool:N``, ``NxG``, or a file of nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from collector.traces.inventory import NodeSpec, read_nodes, shaped
from scheduler_advisor.engine.cluster import UNLIMITED, Cluster
from scheduler_advisor.readers.errors import ReaderError

_POOL = re.compile(r"^pool:(\d+)$")
_SHAPE = re.compile(r"^\d+[xX]\d+$")


def read_fleet(spec: str) -> Cluster:
    """The cluster that ``spec`` means.

    ``pool:N``: N interchangeable GPUs without nodes. ``NxG``: N nodes of G GPUs, CPU and memory
    unlimited. Otherwise a TOML or CSV file with node, gpu_model, gpus, cpus, mem_mib, rack, leaf,
    spine; what a column leaves blank is unlimited. Nodes are in the order of their names.
    """
    if found := _POOL.match(spec):
        if int(found[1]) == 0:
            raise ReaderError("the fleet pool:0 has no GPUs; write for example pool:128")
        return Cluster.pool(int(found[1]))
    if _SHAPE.match(spec):
        return cluster_of(shaped(spec))
    path = Path(spec)
    if not path.suffix and not path.exists():
        raise ReaderError(f"no fleet {spec!r}: write pool:N, NxG such as 17x8, or a file of nodes")
    return cluster_of(read_nodes(path))


def cluster_of(nodes: Sequence[NodeSpec]) -> Cluster:
    """A cluster of these nodes, in the order of their names."""
    ordered = sorted(nodes, key=lambda node: node.name)
    return Cluster.build(
        gpus=[node.gpus for node in ordered],
        names=[node.name for node in ordered],
        cpu_milli=[UNLIMITED if n.cpu_milli is None else n.cpu_milli for n in ordered],
        mem_mib=[UNLIMITED if n.mem_mib is None else n.mem_mib for n in ordered],
        gpu_model=[node.gpu_model or "" for node in ordered],
        leaf=[node.leaf or "" for node in ordered],
        spine=[node.spine or "" for node in ordered],
        rack=[node.rack or "" for node in ordered],
    )
