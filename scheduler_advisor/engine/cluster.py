"""The machines that a replay runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.errors import ClusterError
from scheduler_advisor.engine.hashes import digest
from scheduler_advisor.engine.limits import Limit, Outage, Partition, Reservation

COLUMNS = (
    "gpus",
    "cpu_milli",
    "mem_mib",
    "gpu_model",
    "leaf",
    "features",
    "spine",
    "rack",
    "island_gpus",
)
UNLIMITED = 1 << 50  # CPUs and memory of nodes whose inventory does not say


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes in the order that "lowest node" means, and the rules that bind jobs to them."""

    names: tuple[str, ...]
    gpus: NDArray[np.int64]
    cpu_milli: NDArray[np.int64]
    mem_mib: NDArray[np.int64]
    gpu_model: tuple[str, ...]
    leaf: tuple[str, ...]
    features: tuple[frozenset[str], ...]
    partitions: tuple[Partition, ...] = ()
    limits: tuple[Limit, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    outages: tuple[Outage, ...] = ()
    headroom_gpus: int = 0
    spine: tuple[str, ...] = ()
    rack: tuple[str, ...] = ()  # the block: what a row of spines or an NVLink rack belongs to
    island_gpus: NDArray[np.int64] | None = None  # GPUs per NVLink island; 0: the whole node
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {name: at for at, name in enumerate(self.names)})
        if len(self.index) != len(self.names):
            raise ClusterError("cluster: two nodes have the same name")
        for column in ("spine", "rack"):
            if not getattr(self, column):
                object.__setattr__(self, column, ("",) * len(self.names))
        if self.island_gpus is None:
            object.__setattr__(self, "island_gpus", np.zeros(len(self.names), np.int64))
        for column in COLUMNS:
            if len(getattr(self, column)) != len(self.names):
                raise ClusterError(f"cluster: {column} has not one value per node")
        for part in self.partitions:
            self._known(part.name, part.nodes)
        for held in self.reservations:
            self._known(held.name, held.nodes)
        for outage in self.outages:
            self._known("outage", (outage.node,))

    @classmethod
    def build(
        cls,
        gpus: Sequence[int],
        names: Sequence[str] | None = None,
        cpu_milli: Sequence[int] | None = None,
        mem_mib: Sequence[int] | None = None,
        gpu_model: Sequence[str] | None = None,
        leaf: Sequence[str] | None = None,
        features: Sequence[frozenset[str]] | None = None,
        spine: Sequence[str] = (),
        rack: Sequence[str] = (),
        island_gpus: Sequence[int] | None = None,
        **rules: object,
    ) -> Cluster:
        """A cluster from columns; what is left out is unlimited or unnamed."""
        size = len(gpus)
        full = np.full(size, UNLIMITED, np.int64)
        return cls(
            names=tuple(names) if names is not None else tuple(f"n{i:05d}" for i in range(size)),
            gpus=np.asarray(gpus, np.int64),
            cpu_milli=full if cpu_milli is None else np.asarray(cpu_milli, np.int64),
            mem_mib=full if mem_mib is None else np.asarray(mem_mib, np.int64),
            gpu_model=("",) * size if gpu_model is None else tuple(gpu_model),
            leaf=("",) * size if leaf is None else tuple(leaf),
            features=(frozenset(),) * size if features is None else tuple(features),
            spine=tuple(spine),
            rack=tuple(rack),
            island_gpus=None if island_gpus is None else np.asarray(island_gpus, np.int64),
            **rules,  # type: ignore[arg-type]
        )

    @classmethod
    def pool(cls, gpus: int) -> Cluster:
        """Interchangeable GPUs without nodes: every job fits where enough of them are free."""
        return cls.build([gpus], names=["pool"])

    @classmethod
    def uniform(cls, nodes: int, gpus: int) -> Cluster:
        """`nodes` equal nodes of `gpus` GPUs."""
        return cls.build([gpus] * nodes)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def total_gpus(self) -> int:
        return int(self.gpus.sum())

    @property
    def islands(self) -> NDArray[np.int64]:
        """GPUs of one NVLink island, by node; 0 where all GPUs of the node are one."""
        assert self.island_gpus is not None  # filled when made
        return self.island_gpus

    def with_nodes(self, change: int, like: str | None = None) -> Cluster:
        """The same cluster with nodes added (copies of `like`, by default the last node), or with
        the last nodes that are alike `like` removed: would buying more fix it?"""
        model = self.index[like] if like is not None else len(self) - 1
        if change >= 0:
            keep = [*range(len(self)), *[model] * change]
            names = (*self.names, *_fresh_names(self, change))
        else:
            alike = [node for node in range(len(self)) if self._alike(node, model)]
            if len(alike) < -change:
                raise ClusterError(f"cluster: only {len(alike)} nodes are like {self.names[model]}")
            if len(self) == -change:
                raise ClusterError("cluster: no node would be left")
            gone = set(alike[change:])
            keep = [node for node in range(len(self)) if node not in gone]
            names = tuple(self.names[node] for node in keep)
        added = names[len(self) :] if change > 0 else ()
        return replace(
            self,
            names=names,
            gpus=self.gpus[keep],
            cpu_milli=self.cpu_milli[keep],
            mem_mib=self.mem_mib[keep],
            gpu_model=tuple(self.gpu_model[node] for node in keep),
            leaf=tuple(self.leaf[node] for node in keep),
            features=tuple(self.features[node] for node in keep),
            spine=tuple(self.spine[node] for node in keep),
            rack=tuple(self.rack[node] for node in keep),
            island_gpus=self.islands[keep],
            partitions=tuple(
                part.with_nodes(names, added if self.names[model] in part.nodes else ())
                for part in self.partitions
            ),
            reservations=tuple(held.with_nodes(names) for held in self.reservations),
            outages=tuple(outage for outage in self.outages if outage.node in set(names)),
        )

    @property
    def hash(self) -> str:
        """Equal for equal clusters."""
        return digest(
            self.names,
            self.gpus,
            self.cpu_milli,
            self.mem_mib,
            self.gpu_model,
            self.leaf,
            tuple(tuple(sorted(names)) for names in self.features),
            self.partitions,
            self.limits,
            self.reservations,
            self.outages,
            self.headroom_gpus,
            self.spine,
            self.rack,
            self.islands,
        )

    def _alike(self, one: int, other: int) -> bool:
        columns = (self.gpus, self.cpu_milli, self.mem_mib, self.gpu_model, self.features)
        return all(column[one] == column[other] for column in columns)

    def _known(self, rule: str, nodes: Sequence[str]) -> None:
        for node in nodes:
            if node not in self.index:
                raise ClusterError(f"cluster: {rule} names node {node}, which is not there")


def _fresh_names(cluster: Cluster, count: int) -> tuple[str, ...]:
    taken = set(cluster.names)
    names: list[str] = []
    number = 0
    while len(names) < count:
        if (name := f"added{number:05d}") not in taken:
            names.append(name)
        number += 1
    return tuple(names)
