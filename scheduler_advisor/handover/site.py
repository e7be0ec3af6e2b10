"""What a hand-over has to know of the site: nodes, settings in force, configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from scheduler_advisor.engine.limits import Limit
from scheduler_advisor.handover.errors import HandoverError

_SETTINGS = """
SELECT key, value FROM scheduler_setting
WHERE cluster = ? AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) ORDER BY key
"""
_NODES = """
SELECT node, gpu_model, gpus, cpus, mem_mib, leaf, spine, rack FROM node
WHERE cluster = ? AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) ORDER BY node
"""
# One row = one GPU that is cut now, with the profiles of its instances.
_MIG = """
SELECT d.gpu_model, list(m.profile ORDER BY m.placement_start, m.profile) AS profiles
FROM mig_instance m JOIN device d ON d.cluster = m.cluster AND d.gpu_uuid = m.gpu_uuid
WHERE m.cluster = ? AND m.valid_from <= ? AND (m.valid_to IS NULL OR m.valid_to > ?)
  AND m.profile IS NOT NULL AND d.gpu_model IS NOT NULL
GROUP BY d.gpu_model, m.gpu_uuid ORDER BY d.gpu_model, m.gpu_uuid
"""


class Rows(Protocol):
    """What is needed of a store."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]:
        """Rows of one query."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine; empty texts and None: not known."""

    name: str
    gpus: int
    gpu_model: str = ""
    cpus: int | None = None
    mem_mib: int | None = None
    leaf: str = ""
    spine: str = ""
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """``settings`` as `import slurm --live` stores them; ``files``: configuration files by name,
    such as slurm.conf, topology.conf, kueue.yaml or capacity-scheduler.xml, as they are today.
    ``mig``: the profiles that a GPU is cut into today, by model."""

    nodes: tuple[Node, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    mig: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return sum(node.gpus for node in self.nodes)

    @property
    def gpu_nodes(self) -> tuple[Node, ...]:
        """Nodes with a GPU."""
        return tuple(node for node in self.nodes if node.gpus > 0)


@dataclass(frozen=True, slots=True)
class Beside:
    """What changes beside the policy; None: stays as it is. ``mem_mib_per_gpu``, ``cpus_per_gpu``:
    what a job gets per GPU that does not say. ``headroom_gpus``: kept empty for urgent work.
    ``mig``: profiles that every GPU of a model is cut into, by model; no profile: whole again.
    ``limits``: of users, accounts and QoS with the GPUs that each admits afterwards (None: all)."""

    mem_mib_per_gpu: int | None = None
    cpus_per_gpu: int | None = None
    headroom_gpus: int | None = None
    mig: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: tuple[tuple[Limit, int | None], ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("mem_mib_per_gpu", 1), ("cpus_per_gpu", 1), ("headroom_gpus", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise HandoverError(f"hand-over: {name} is {value}; must be {least} or more")


NOTHING = Beside()


def site_of(store: Rows, cluster: str, at: datetime, files: Mapping[str, str]) -> Site:
    """The site as the store knows it at ``at``, with the configuration files given."""
    nodes = [
        Node(
            row["node"],
            row["gpus"],
            row["gpu_model"] or "",
            row["cpus"],
            row["mem_mib"],
            row["leaf"] or "",
            row["spine"] or "",
            row["rack"] or "",
        )
        for row in store.rows(_NODES, [cluster, at, at])
    ]
    settings = {row["key"]: row["value"] for row in store.rows(_SETTINGS, [cluster, at, at])}
    # A model whose boards are cut in several ways counts as its first board.
    mig: dict[str, tuple[str, ...]] = {}
    for row in store.rows(_MIG, [cluster, at, at]):
        mig.setdefault(row["gpu_model"], tuple(row["profiles"]))
    return Site(tuple(nodes), settings, dict(files), mig)
