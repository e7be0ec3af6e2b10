"""What the arrays of a replay need to know of the network, where a policy asks for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.parts.levels import Level, tree_of
from scheduler_advisor.engine.parts.links import Links, links_of
from scheduler_advisor.engine.parts.settings import Binding, TopologyPart
from scheduler_advisor.engine.policy import Placement, Policy

Ints = NDArray[np.int64]
NEEDS = {Level.NODE: 1, Level.ISLAND: 1, Level.LEAF: 2, Level.SPINE: 3, Level.BLOCK: 4}


def by_network(policy: Policy) -> bool:
    """Whether the network decides where jobs go or how long they run."""
    return policy.placement is Placement.TOPOLOGY or policy.topology.slowdown


def network_model(policy: Policy) -> TopologyPart | None:
    """The keys that say how fast the network is; None where it does not matter to the policy."""
    if not by_network(policy):
        return None
    plain = TopologyPart()
    return replace(
        policy.topology,
        level=plain.level,
        binding=plain.binding,
        slowdown=plain.slowdown,
        comm_milli=plain.comm_milli,
    )


def islands_of(cluster: Cluster) -> Ints:
    """GPUs of an island by node: as the cluster says, else as the table says of the model; 0 where
    all GPUs of the node are one island."""
    by_model = {model: links_of(model).island_gpus for model in set(cluster.gpu_model)}
    table = np.array([by_model[model] for model in cluster.gpu_model], np.int64)
    size = np.where(cluster.islands > 0, cluster.islands, table)
    return np.where(size < cluster.gpus, size, 0)


def counts_islands(cluster: Cluster, policy: Policy) -> bool:
    """Whether single GPUs must be known: some node has several NVLink islands."""
    return by_network(policy) and bool(islands_of(cluster).any())


def places_of(cluster: Cluster, policy: Policy) -> Ints | None:
    """[node] -> leaf, spine, rack, island size, model; None where the network does not matter."""
    if not by_network(policy):
        return None
    tree = tree_of(cluster)
    # Above the spines the model knows one step: blocks divide spines, no more.
    models = np.unique(np.array(cluster.gpu_model, str), return_inverse=True)[1].reshape(-1)
    columns = (tree.leaf, tree.spine, tree.rack, islands_of(cluster), models)
    return np.stack(columns, axis=1).astype(np.int64)


def narrowed_links(gpu_model: str, policy: Policy) -> Links:
    """The table's row for a model as the policy changes it."""
    part = policy.topology
    changes = {
        "island": part.island_gb_s,
        "node": part.node_gb_s,
        "leaf": part.leaf_gb_s,
        "spine": part.spine_gb_s,
        "core": part.core_gb_s,
    }
    return links_of(gpu_model).narrowed(part.oversubscription, changes)


def need_of(text: str, cluster: Cluster, policy: Policy) -> int:
    """What a job's topology column and the policy bind it to: a number of NEEDS, 0 for nothing.

    The column is `required:LEVEL`, `preferred:LEVEL` or `LEVEL`, which is a preference."""
    binding, _, level = text.rpartition(":")
    if not text:
        if policy.topology.binding is not Binding.REQUIRED or not policy.topology.level:
            return 0
        binding, level = Binding.REQUIRED, policy.topology.level
    if level not in tuple(Level) or binding not in ("", *Binding):
        raise PolicyError(
            f"jobs: topology {text!r}; write LEVEL, preferred:LEVEL or required:LEVEL with a level"
            f" of {', '.join(Level)}"
        )
    if binding != Binding.REQUIRED:
        return 0
    if level == Level.ISLAND and islands_of(cluster).any():
        raise PolicyError(
            "topology: one island can be required only where every node is one island; use node"
        )
    tree_of(cluster).domains(Level(level))  # refuses a level that no node names
    return NEEDS[Level(level)]


def needs_of(jobs: Jobs, cluster: Cluster, policy: Policy) -> Ints:
    """`need_of` by job."""
    used = np.unique(jobs.topology.codes)
    table = np.zeros(len(jobs.topology.names), np.int64)
    for code in used.tolist():
        table[code] = need_of(jobs.topology.names[code], cluster, policy)
    needs: Ints = table[jobs.topology.codes]
    return needs
