"""What is packed where: pods and nodes as the caller knows them, and as the kernels want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.packing.errors import PackingError

MILLI = 1000
"""Thousandths of a GPU in a whole one."""

_MOST_MODELS = 62
_MOST_GPUS = 62

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Pods:
    """Pods in the order of arrival; ``gpu_milli`` is per GPU, 1000 = a whole one.

    ``gpu_models``: the models a pod accepts, separated by ``|``; empty = any.
    """

    name: Sequence[str]
    cpu_milli: Ints
    mem_mib: Ints
    gpus: Ints
    gpu_milli: Ints
    gpu_models: Sequence[str]

    def __post_init__(self) -> None:
        shared = (self.gpus > 1) & (self.gpu_milli < MILLI)
        broken = (self.gpus < 0) | (self.cpu_milli < 0) | (self.mem_mib < 0) | shared
        broken |= (self.gpus > 0) & ((self.gpu_milli <= 0) | (self.gpu_milli > MILLI))
        if broken.any():
            at = int(np.flatnonzero(broken)[0])
            raise PackingError(
                f"pod {self.name[at]!r} asks for {self.gpus[at]} GPUs of {self.gpu_milli[at]} "
                "thousandths: give 0 GPUs, one GPU of 1 to 1000, or several whole ones"
            )

    def __len__(self) -> int:
        return len(self.name)

    @property
    def total_gpu_milli(self) -> Ints:
        """Thousandths of a GPU that each pod asks for in all."""
        return np.where(self.gpus > 0, self.gpus * self.gpu_milli, 0)

    def take(self, order: Ints) -> Pods:
        """The pods at these positions, repeats allowed."""
        return Pods(
            name=[self.name[i] for i in order],
            cpu_milli=self.cpu_milli[order],
            mem_mib=self.mem_mib[order],
            gpus=self.gpus[order],
            gpu_milli=self.gpu_milli[order],
            gpu_models=[self.gpu_models[i] for i in order],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Empty nodes; ``gpu_model`` is empty on a node without GPUs."""

    name: Sequence[str]
    cpu_milli: Ints
    mem_mib: Ints
    gpus: Ints
    gpu_model: Sequence[str]

    def __post_init__(self) -> None:
        if len(self.name) == 0:
            raise PackingError("there are no nodes to pack on: check the node file")
        if len(set(self.name)) < len(self.name):
            twice = sorted(n for n in set(self.name) if list(self.name).count(n) > 1)[0]
            raise PackingError(f"node {twice!r} appears twice: keep one row for each node")
        if int(self.gpus.max()) > _MOST_GPUS or int(self.gpus.min()) < 0:
            raise PackingError(f"a node can have 0 to {_MOST_GPUS} GPUs: check the column of GPUs")

    def __len__(self) -> int:
        return len(self.name)

    @property
    def capacity_milli(self) -> int:
        """Thousandths of a GPU installed on all nodes."""
        return int(self.gpus.sum()) * MILLI

    def take(self, order: Ints) -> Nodes:
        """The nodes at these positions."""
        return Nodes(
            name=[self.name[i] for i in order],
            cpu_milli=self.cpu_milli[order],
            mem_mib=self.mem_mib[order],
            gpus=self.gpus[order],
            gpu_model=[self.gpu_model[i] for i in order],
        )


class Kinds(NamedTuple):
    """The distinct shapes among the pods; models as a bit set, 0 = any."""

    cpu: Ints
    mem: Ints
    gpus: Ints
    milli: Ints
    models: Ints


class State(NamedTuple):
    """What is free on each node; changed in place by the kernels."""

    cpu: Ints
    mem: Ints
    gpus: Ints
    """GPUs installed."""
    model: Ints
    """The node's model as one bit, 0 = none."""
    free: Ints
    """Idle thousandths by node and GPU index; 0 beyond the installed ones."""
    tags: Ints
    """Which GPU shapes run on the node: bit 0 shared, bit g whole GPUs of a g-GPU pod."""


class ModelBits:
    """One bit for each GPU model that nodes have or pods ask for."""

    def __init__(self, pods: Pods, nodes: Nodes) -> None:
        asked = {model for models in set(pods.gpu_models) for model in _split(models)}
        names = sorted(asked | {model for model in nodes.gpu_model if model})
        if len(names) > _MOST_MODELS:
            raise PackingError(
                f"{len(names)} GPU models are more than the {_MOST_MODELS} that can be told apart: "
                "map spellings of one model to one name"
            )
        self._bit = {name: 1 << i for i, name in enumerate(names)}

    def of(self, models: str) -> int:
        """The bit set of models separated by ``|``."""
        return sum(self._bit[model] for model in set(_split(models)))


def _split(models: str) -> list[str]:
    return [model for model in models.split("|") if model]


def kinds_of(pods: Pods, bits: ModelBits) -> tuple[Kinds, Ints]:
    """The distinct shapes, and for each pod the row of its shape."""
    sets = {models: bits.of(models) for models in set(pods.gpu_models)}
    masks = np.array([sets[models] for models in pods.gpu_models], dtype=np.int64)
    milli = np.where(pods.gpus > 0, pods.gpu_milli, 0)
    rows = np.stack([pods.cpu_milli, pods.mem_mib, pods.gpus, milli, masks], axis=1)
    distinct, kind = np.unique(rows, axis=0, return_inverse=True)
    columns = [np.ascontiguousarray(distinct[:, i]) for i in range(5)]
    return Kinds(*columns), kind.reshape(-1).astype(np.int64)


def empty_state(nodes: Nodes, bits: ModelBits) -> State:
    """Every node with nothing on it."""
    width = max(1, int(nodes.gpus.max()))
    free = np.where(np.arange(width)[None, :] < nodes.gpus[:, None], MILLI, 0)
    return State(
        cpu=nodes.cpu_milli.astype(np.int64).copy(),
        mem=nodes.mem_mib.astype(np.int64).copy(),
        gpus=nodes.gpus.astype(np.int64).copy(),
        model=np.array([bits.of(model) for model in nodes.gpu_model], dtype=np.int64),
        free=np.ascontiguousarray(free.astype(np.int64)),
        tags=np.zeros(len(nodes), dtype=np.int64),
    )


def node_classes(state: State) -> Ints:
    """For each node the first node that is exactly like it, so that one answer serves all."""
    rows = np.stack([state.cpu, state.mem, state.gpus, state.model], axis=1)
    _, first, of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[of.reshape(-1)].astype(np.int64)
