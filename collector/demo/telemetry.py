"""What the agents of the demo's nodes would have measured, as column batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.demo.fleet import (
    CLUSTER,
    FLEET,
    SAMPLE_STEP_S,
    SINCE,
    UNTIL,
    DemoNode,
    GpuKind,
    seconds,
)
from collector.demo.jobs import DemoRun
from collector.demo.planted import PLANTED
from collector.demo.records import SOURCE

HOST_STEP_S = 900
_NVLINK_BYTES_PER_S = 90e9  # of one busy A100, each way; its twelve links carry 300 GB/s
_STORAGE_BYTES_PER_S = 0.12e9  # of a node that reads its data
_GRADIENT_BYTES_PER_S = 1.5e9  # of one busy GPU whose job is on several nodes
Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]
_FIRST, _LAST = seconds(SINCE), seconds(UNTIL)


def ticks(step_s: int) -> Indexes:
    """The instants at which a node is read; each speaks for the step before it."""
    return np.arange(_FIRST + step_s, _LAST + 1, step_s, dtype=np.int64)


def timestamps(at: Indexes) -> pa.Array:
    """Seconds since the simulated beginning as the store's TIMESTAMP."""
    epoch = np.datetime64(SINCE.replace(tzinfo=None), "us") - np.timedelta64(_FIRST, "s")
    return pa.array(epoch + at.astype("timedelta64[s]").astype("timedelta64[us]"))


def samples(rng: np.random.Generator, runs: Sequence[DemoRun], *, faults: bool) -> dict[str, Any]:
    """One row per GPU and tick; where nothing was measured there is no row."""
    at = ticks(SAMPLE_STEP_S)
    slots = [(node, gpu) for node in range(len(FLEET)) for gpu in range(FLEET[node].gpus)]
    holder = _holders(runs, at, {slot: row for row, slot in enumerate(slots)})
    util = _activity(rng, runs, holder, at)
    kinds = [FLEET[node].kind for node, _ in slots]
    idle_w, busy_w, mem_mib = (
        np.array([getattr(kind, name) for kind in kinds], dtype=float)[:, None]
        for name in ("idle_w", "busy_w", "mem_mib")
    )
    vram = _per_run([run.job.vram_ratio for run in runs], holder, 0.0)
    power_w = idle_w + (busy_w - idle_w) * util**0.8 + rng.normal(0, 1.5, util.shape)
    energy_mj = np.cumsum(np.rint(power_w * 1000 * SAMPLE_STEP_S), axis=1)
    measured = _measured(at, [FLEET[node] for node, _ in slots], faults=faults)
    nvlink = pa.array(_nvlink(kinds, runs, holder, util)[measured], from_pandas=True)
    rows, columns = np.nonzero(measured)
    held = holder[measured]
    node_of = np.array([node for node, _ in slots], dtype=np.int32)[rows]
    return {
        **_keys(node_of, at[columns], SAMPLE_STEP_S),
        "gpu_uuid": _named([FLEET[n].uuid(gpu) for n, gpu in slots], rows),
        "gpu_index": np.array([gpu for _, gpu in slots], dtype=np.int32)[rows],
        "run_id": _named([run.run_id for run in runs], held),
        "util_ratio": np.round(util[measured], 2),
        "mem_util_ratio": np.round(util[measured] * 0.6, 2),
        "mem_used_mib": np.rint((mem_mib * (0.01 + 0.98 * vram))[measured]),
        "mem_total_mib": np.broadcast_to(mem_mib, util.shape)[measured],
        "power_mw": np.rint(power_w[measured] * 1000),
        "energy_mj": energy_mj[measured],
        "nvlink_tx_bytes": nvlink,
        "nvlink_rx_bytes": nvlink,
        "temperature_c": np.rint(31 + 40 * util[measured]),
        "sm_clock_mhz": np.where(held >= 0, 1410.0, 210.0),
        "ecc_uncorrected": np.zeros(len(rows), dtype=np.int64),
        "processes": (held >= 0).astype(np.int32),
    }


def _nvlink(
    kinds: Sequence[GpuKind], runs: Sequence[DemoRun], holder: Indexes, util: Floats
) -> Floats:
    """Bytes so far: GPUs of a job that has several on a node talk while they work."""
    several = _per_run([float(run.job.gpus > 1) for run in runs], holder, 0.0)
    sent = np.cumsum(np.rint(util * several * _NVLINK_BYTES_PER_S * SAMPLE_STEP_S), axis=1)
    return np.where(np.array([kind.nvlinks > 0 for kind in kinds])[:, None], sent, np.nan)


def host_samples(runs: Sequence[DemoRun], *, faults: bool) -> dict[str, Any]:
    """One row per node and tick, and one per run, node and tick."""
    at = ticks(HOST_STEP_S)
    parts = [_run_host(index, run, at) for index, run in enumerate(runs) if run.start is not None]
    run_of, node_of, column, cpu, mem = (np.concatenate(part) for part in zip(*parts, strict=True))
    shape = (len(FLEET), len(at))
    node_cpu, node_mem = np.full(shape, 1.5), np.full(shape, 6.0 * 1024)
    np.add.at(node_cpu, (node_of, column), cpu)
    np.add.at(node_mem, (node_of, column), mem)
    nodes, columns = (part.ravel() for part in np.indices(shape))
    network = _network(runs, at).ravel()
    everything = {
        "net": np.concatenate([network, np.full(run_of.size, np.nan)]),
        "node": np.concatenate([nodes, node_of]).astype(np.int32),
        "column": np.concatenate([columns, column]),
        "run": np.concatenate([np.full(nodes.size, -1), run_of]),
        "cpu": np.concatenate([node_cpu.ravel(), cpu]),
        "mem": np.concatenate([node_mem.ravel(), mem]),
    }
    measured = _measured(at, FLEET, faults=faults)[everything["node"], everything["column"]]
    return _host_columns({name: values[measured] for name, values in everything.items()}, runs, at)


def _host_columns(
    rows: Mapping[str, NDArray[Any]], runs: Sequence[DemoRun], at: Indexes
) -> dict[str, Any]:
    node, run = rows["node"], rows["run"]
    node_cpus = np.array([n.cpus for n in FLEET])[node]
    node_mem = np.array([n.mem_mib for n in FLEET], dtype=float)[node]
    run_cpus, run_mem = (
        np.array([getattr(r.job, name) for r in runs])[run] for name in ("cpus", "mem_mib")
    )
    cpus = np.where(run < 0, node_cpus, run_cpus)
    busy = rows["cpu"] / cpus
    return {
        **_keys(node, at[rows["column"]], HOST_STEP_S),
        "run_id": _named([r.run_id for r in runs], run),
        "net_rx_bytes": pa.array(rows["net"], from_pandas=True),
        "net_tx_bytes": pa.array(rows["net"], from_pandas=True),
        "cpu_used": np.round(rows["cpu"], 2),
        "cpus": cpus.astype(np.int32),
        "mem_used_mib": np.rint(rows["mem"]),
        "mem_total_mib": np.where(run < 0, node_mem, run_mem.astype(float)),
        # Tasks start to wait for a CPU once nine in ten are busy.
        "cpu_pressure_ratio": np.round(np.clip((busy - 0.9) * 4, 0, 1), 3),
    }


def _network(runs: Sequence[DemoRun], at: Indexes) -> Floats:
    """Bytes so far through each node's network: storage always, gradients of jobs over nodes."""
    rates = np.full((len(FLEET), len(at)), _STORAGE_BYTES_PER_S)
    for run in runs:
        if run.start is None or len(run.placement) == 1:
            continue
        first, after = np.searchsorted(at, [run.start, _end(run)], side="right")
        for node, gpus in run.placement:
            each = _GRADIENT_BYTES_PER_S * run.job.activity
            rates[node, first:after] += each * len(gpus)
    return np.cumsum(np.rint(rates * HOST_STEP_S), axis=1)


def _run_host(index: int, run: DemoRun, at: Indexes) -> tuple[NDArray[Any], ...]:
    assert run.start is not None
    first, after = np.searchsorted(at, [run.start, _end(run)], side="right")
    columns = np.arange(first, after)
    nodes = np.array([node for node, _ in run.placement])
    size = columns.size * nodes.size
    return (
        np.full(size, index),
        np.repeat(nodes, columns.size),
        np.tile(columns, nodes.size),
        np.full(size, run.job.cpus * run.job.host_cpu_ratio),
        np.full(size, run.job.mem_mib * run.job.host_mem_ratio),
    )


def _keys(node: NDArray[Any], at: Indexes, step_s: int) -> dict[str, Any]:
    return {
        "cluster": _named([CLUSTER], np.zeros(node.size, dtype=np.int32)),
        "node": _named([n.name for n in FLEET], node),
        "ts": timestamps(at),
        "step_s": np.full(node.size, float(step_s)),
        "source": _named([SOURCE], np.zeros(node.size, dtype=np.int32)),
    }


def _named(names: Sequence[str], index: NDArray[Any]) -> pa.Array:
    """``names[index]`` without a Python string per row; a negative index is NULL."""
    numbers = pa.array(index.astype(np.int32), mask=index < 0)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string()))


def _holders(
    runs: Sequence[DemoRun], at: Indexes, row_of: Mapping[tuple[int, int], int]
) -> Indexes:
    """Index of the run that held each GPU in the instant before each tick, -1 for none."""
    holder = np.full((len(row_of), at.size), -1, dtype=np.int64)
    for index, run in enumerate(runs):
        if run.start is None:
            continue
        first, after = np.searchsorted(at, [run.start, _end(run)], side="right")
        for node, gpus in run.placement:
            for gpu in gpus:
                holder[row_of[node, gpu], first:after] = index
    return holder


def _end(run: DemoRun) -> int:
    return _LAST if run.end is None else run.end


def _activity(
    rng: np.random.Generator, runs: Sequence[DemoRun], holder: Indexes, at: Indexes
) -> Floats:
    """Each run's mean with noise that stays within 0 and 1 and does not move the mean."""
    mean = _per_run([run.job.activity for run in runs], holder, 0.0)
    sleeps = _per_run(
        [np.inf if r.job.active_s is None else (r.start or 0) + r.job.active_s for r in runs],
        holder,
        np.inf,
    )
    mean = np.where(at[None, :] > sleeps, 0.0, mean)
    return mean + np.minimum(mean, 1 - mean) * rng.uniform(-0.7, 0.7, mean.shape)


def _per_run(values: Sequence[float], holder: Indexes, free: float) -> Floats:
    return np.array([*values, free])[holder]


def _measured(at: Indexes, nodes: Sequence[DemoNode], *, faults: bool) -> NDArray[np.bool_]:
    """False while the node's agent, or the node, was down."""
    measured = np.ones((len(nodes), at.size), dtype=bool)
    if not faults:
        return measured
    gap, failed = PLANTED["telemetry_gap"], PLANTED["failed_node"]
    for fault in (gap, failed):
        silent = (at > seconds(fault.begin)) & (at <= seconds(fault.end))
        there = np.array([node.name == fault.place for node in nodes])
        measured &= ~(there[:, None] & silent[None, :])
    return measured
