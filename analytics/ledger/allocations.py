"""What runs hold of nodes, as columns; a row becomes an object where somebody looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.ledger.kernel.state import Array
from analytics.ledger.names import places


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a run holds on a node over ``[t0, t1)``; ``gpus`` whole ones, or num/den of a named
    one."""

    run_id: str
    node: str
    model: str | None
    gpu_uuid: str | None
    mig_uuid: str | None
    gpus: int
    num: int
    den: int
    cpus: int
    mem_mib: int
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Allocations:
    """Rows in the order of their start; ``run``, ``node``, ``model`` and ``gpu`` are places in the
    lists of names, -1 = not named; ``run_codes`` = the store's hash of each run's name."""

    runs: list[str]
    run_codes: Array
    nodes: list[str]
    models: list[str]
    gpus_named: list[str]
    run: Array
    node: Array
    model: Array
    gpu: Array
    mig: list[str | None]
    gpus: Array
    num: Array
    den: Array
    cpus: Array
    mem_mib: Array
    t0: Array
    t1: Array

    @classmethod
    def of(cls, table: Any) -> Allocations:
        """From the rows of `factqueries.ALLOCATIONS`."""
        runs, run = places(table.column("run_id"))
        nodes, node = places(table.column("node"))
        models, model = places(table.column("gpu_model"))
        named, gpu = places(table.column("gpu_uuid"))
        codes = np.zeros(len(runs), np.int64)
        codes[run] = table.column("run_code").to_numpy().view(np.int64)
        mig = table.column("mig_uuid")
        nothing: list[str | None] = [None] * table.num_rows
        numbers = ("gpus", "num", "den", "cpus", "mem_mib", "t0", "t1")
        gpus, num, den, cpus, mem_mib, t0, t1 = (
            table.column(name).to_numpy().astype(np.int64) for name in numbers
        )
        return cls(
            runs, codes, nodes, models, named, run, node, model, gpu,
            nothing if mig.null_count == table.num_rows else mig.to_pylist(),
            gpus, num, den, cpus, mem_mib, t0, t1,
        )  # fmt: skip

    @classmethod
    def none(cls) -> Allocations:
        """No allocation at all."""
        no = np.zeros(0, np.int64)
        return cls([], no, [], [], [], no, no, no, no, [], no, no, no, no, no, no, no)

    def __len__(self) -> int:
        return int(self.t0.shape[0])

    def __iter__(self) -> Iterator[Allocation]:
        return self.at(np.arange(len(self)))

    def at(self, rows: Array) -> Iterator[Allocation]:
        """The rows at these places."""
        runs, nodes = self.runs, self.nodes
        models: list[str | None] = [*self.models, None]
        named: list[str | None] = [*self.gpus_named, None]
        columns = (
            self.run, self.node, self.model, self.gpu, self.gpus, self.num, self.den, self.cpus,
            self.mem_mib, self.t0, self.t1,
        )  # fmt: skip
        picked = [column[rows].tolist() for column in columns]
        for place, run, node, model, gpu, *rest in zip(rows.tolist(), *picked, strict=True):
            yield Allocation(
                runs[run], nodes[node], models[model], named[gpu], self.mig[place], *rest
            )
