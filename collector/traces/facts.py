"""A placed trace as column batches of the store's raw tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from collector.traces.inventory import NodeSpec
from collector.traces.placement import Held, Placements
from collector.traces.trace import Trace

_MILLI = 1000
_STAMP = pa.timestamp("us")  # without a zone, as the store keeps UTC


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """When a job ran in a replay, and the node of each GPU that it held."""

    start_s: int
    end_s: int
    node_names: tuple[str, ...] = ()


def with_starts(trace: Trace, runs: Mapping[str, SimulatedRun]) -> Trace:
    """The trace with starts by job id; a job without one never started."""
    found = [runs.get(name) for name in trace.column("job_id")]
    start = pa.array([None if run is None else run.start_s for run in found], pa.int64())
    names = [list(run.node_names) if run is not None and run.node_names else None for run in found]
    jobs = _set(trace.jobs, "start_s", start)
    end = pa.array([None if run is None else run.end_s for run in found], pa.int64())
    jobs = _set(jobs, "end_s", end)
    jobs = _set(jobs, "node_names", pa.array(names, pa.list_(pa.string())))
    return replace(trace, jobs=jobs)


def without_nodes(trace: Trace) -> Trace:
    """The trace with no job's nodes named."""
    nowhere = pa.nulls(trace.jobs.num_rows, pa.list_(pa.string()))
    return replace(trace, jobs=_set(trace.jobs, "node_names", nowhere))


def span(trace: Trace) -> tuple[int, int]:
    """First submit and last end (or start, or submit) in seconds after the origin."""
    last = 0
    for name in ("submit_s", "start_s", "end_s"):
        last = max(last, pc.max(trace.jobs.column(name)).as_py() or 0)
    return int(pc.min(trace.jobs.column("submit_s")).as_py()), last


def held_gpu_milli_s(trace: Trace, held: Sequence[Held], until: int) -> int:
    """Thousandths of GPU-seconds held; an open run holds until ``until``."""
    start, end = trace.column("start_s"), trace.column("end_s")
    total = 0
    for each in held:
        stop = end[each.job]
        seconds = (until if stop is None else stop) - start[each.job]
        total += seconds * len(each.gpus) * each.milli
    return total


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes into the store. ``nodes`` are in the order that placements count."""

    cluster: str
    source: str
    origin: datetime
    trace: Trace
    nodes: tuple[NodeSpec, ...]
    placements: Placements

    def tables(self) -> dict[str, pa.Table]:
        """Column batches by table. Devices are named only where jobs share GPUs."""
        tables = {
            "node": self._node(),
            "job": self._job(),
            "job_run": self._run(),
            "allocation": self._allocation(),
        }
        if self._shares:
            tables |= {"device": self._device(), "device_seen": self._device_seen()}
        return tables

    @property
    def _shares(self) -> bool:
        return any(0 < held.milli < _MILLI for held in self.placements.held)

    def _table(self, columns: Mapping[str, Any]) -> pa.Table:
        rows = len(next(iter(columns.values())))
        same = {"cluster": [self.cluster] * rows, "source": [self.source] * rows}
        return pa.table({**same, **columns})

    def _at(self, seconds: pa.ChunkedArray | pa.Array) -> pa.Array:
        start = int(self.origin.astimezone(UTC).timestamp())
        return pc.cast(pc.multiply(pc.add(seconds, start), 1_000_000), _STAMP)

    def _node(self) -> pa.Table:
        count = len(self.nodes)
        since, until = span(self.trace)
        cpus = [None if n.cpu_milli is None else n.cpu_milli // _MILLI for n in self.nodes]
        columns: dict[str, Any] = {
            name: pa.array([getattr(node, name) for node in self.nodes], pa.string())
            for name in ("gpu_model", "rack", "leaf", "spine")
        }
        return self._table(
            {
                "node": [node.name for node in self.nodes],
                "gpus": pa.array([node.gpus for node in self.nodes], pa.int32()),
                "cpus": pa.array(cpus, pa.int32()),
                "mem_mib": pa.array([node.mem_mib for node in self.nodes], pa.int64()),
                "owned": [True] * count,
                "valid_from": self._at(pa.array([since] * count)),
                "valid_to": self._at(pa.array([until] * count)),
                **columns,
            }
        )

    def _job(self) -> pa.Table:
        jobs = self.trace.jobs
        tasks = pc.fill_null(jobs.column("tasks"), 1)
        queue = jobs.column("queue").to_pylist()
        return self._table(
            {
                "job_id": jobs.column("job_id"),
                "account": jobs.column("team"),
                "user_name": jobs.column("user"),
                "partitions": pa.array(
                    [None if name is None else [name] for name in queue], pa.list_(pa.string())
                ),
                "submit_at": self._at(jobs.column("submit_s")),
                "req_gpus": jobs.column("gpus"),
                "req_gpu_model": jobs.column("gpu_models"),
                "req_cpus": _cpus(pc.multiply(jobs.column("cpu_milli"), tasks)),
                "req_mem_mib": pc.multiply(jobs.column("mem_mib"), tasks),
                "limit_s": jobs.column("limit_s"),
                "topology": jobs.column("topology"),
            }
        )

    def _run(self) -> pa.Table:
        jobs = self.trace.jobs
        names = jobs.column("job_id")
        tasks = pc.fill_null(jobs.column("tasks"), 1)
        spread: dict[int, set[int]] = {}
        for held in self.placements.held:
            spread.setdefault(held.job, set()).add(held.node)
        nodes = [len(spread[i]) if i in spread else None for i in range(len(names))]
        state = pc.fill_null(jobs.column("state"), "UNKNOWN")
        return self._table(
            {
                "run_id": _run_ids(names),
                "job_id": names,
                "attempt": pa.array([1] * len(names), pa.int32()),
                "account": jobs.column("team"),
                "user_name": jobs.column("user"),
                "partition": jobs.column("queue"),
                "submit_at": self._at(jobs.column("submit_s")),
                "eligible_at": self._at(jobs.column("submit_s")),
                "start_at": self._at(jobs.column("start_s")),
                "end_at": self._at(jobs.column("end_s")),
                "state": state,
                "state_raw": jobs.column("state_raw"),
                "priority": jobs.column("priority"),
                "gpus": jobs.column("gpus"),
                "cpus": _cpus(pc.multiply(jobs.column("cpu_milli"), tasks)),
                "mem_mib": pc.multiply(jobs.column("mem_mib"), tasks),
                "nodes": pa.array(nodes, pa.int32()),
                "limit_s": jobs.column("limit_s"),
            }
        )

    def _allocation(self) -> pa.Table:
        named = self._shares
        rows = _rows(self.placements.held, named)
        job = pa.array([row.job for row in rows], pa.int64())
        jobs = self.trace.jobs.take(job)
        specs = [self.nodes[row.node] for row in rows]
        uuids = [
            _uuid(spec, row.gpus[0]) if row.gpus and named else None
            for spec, row in zip(specs, rows, strict=True)
        ]
        shared = [0 < row.milli < _MILLI for row in rows]
        cpus = pa.array([row.cpu_milli for row in rows], pa.int64())
        return self._table(
            {
                "run_id": _run_ids(jobs.column("job_id")),
                "node": [spec.name for spec in specs],
                "gpu_model": pa.array([spec.gpu_model for spec in specs], pa.string()),
                "gpu_uuid": pa.array(uuids, pa.string()),
                "gpus": pa.array([len(row.gpus) for row in rows], pa.int32()),
                "share_num": pa.array(
                    [row.milli if part else 1 for row, part in zip(rows, shared, strict=True)],
                    pa.int32(),
                ),
                "share_den": pa.array([_MILLI if part else 1 for part in shared], pa.int32()),
                "cpus": _cpus(cpus),
                "mem_mib": pa.array([row.mem_mib for row in rows], pa.int64()),
                "start_at": self._at(jobs.column("start_s")),
                "end_at": self._at(jobs.column("end_s")),
            }
        )

    def _device(self) -> pa.Table:
        gpus = [(node, i) for node in self.nodes for i in range(node.gpus)]
        since, _ = span(self.trace)
        return self._table(
            {
                "gpu_uuid": [_uuid(node, i) for node, i in gpus],
                "gpu_model": pa.array([node.gpu_model for node, _ in gpus], pa.string()),
                "first_seen_at": self._at(pa.array([since] * len(gpus))),
            }
        )

    def _device_seen(self) -> pa.Table:
        gpus = [(node, i) for node in self.nodes for i in range(node.gpus)]
        since, until = span(self.trace)
        return self._table(
            {
                "node": [node.name for node, _ in gpus],
                "gpu_uuid": [_uuid(node, i) for node, i in gpus],
                "gpu_index": pa.array([i for _, i in gpus], pa.int32()),
                "valid_from": self._at(pa.array([since] * len(gpus))),
                "valid_to": self._at(pa.array([until] * len(gpus))),
            }
        )


def _rows(held: Sequence[Held], named: bool) -> list[Held]:
    """Holdings as rows: where devices are named, one row for each GPU, CPU and memory on each."""
    if not named:
        return list(held)
    return [
        each if len(each.gpus) < 2 else replace(each, gpus=(gpu,))
        for each in held
        for gpu in (each.gpus or (0,))
    ]


def _cpus(milli: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Whole CPUs, rounded half up: the store counts no fractions."""
    return pc.cast(pc.floor(pc.divide(pc.add(pc.cast(milli, pa.float64()), 500), 1000)), pa.int32())


def _run_ids(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(pc.cast(names, pa.string()), "1", ".")


def _uuid(node: NodeSpec, gpu: int) -> str:
    return f"{node.name}/gpu{gpu}"


def _set(jobs: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return jobs.set_column(jobs.schema.get_field_index(name), jobs.schema.field(name), values)
