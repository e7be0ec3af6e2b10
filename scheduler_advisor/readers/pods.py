"""Pods and nodes for place-only packing, and the orders that people give for them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from collector.traces.columns import opened
from collector.traces.formats import Format, read_trace
from collector.traces.inventory import read_nodes
from scheduler_advisor.engine.packing import MILLI, Nodes, Pods
from scheduler_advisor.readers.errors import ReaderError

_ORDER_COLUMNS = ("base_pod", "pod", "name", "job_id")
_TIE_COLUMNS = ("node", "sn", "name")


def read_pods(path: Path, kind: str | None = Format.OPENB) -> Pods:
    """Pods in the order of the file: openb's pod list, or any trace that ``kind`` names.

    A job of several tasks is no pod and is refused.
    """
    table = read_trace(path, kind).jobs
    gpus = pc.fill_null(table.column("gpus"), 0).to_numpy()
    tasks = pc.fill_null(table.column("tasks"), 1).to_numpy()
    if (tasks > 1).any():
        job = table.column("job_id")[int(np.argmax(tasks > 1))]
        raise ReaderError(f"{path.name}: job {job} has several tasks; packing places single pods")
    return Pods(
        name=table.column("job_id").to_pylist(),
        cpu_milli=pc.fill_null(table.column("cpu_milli"), 0).to_numpy(),
        mem_mib=pc.fill_null(table.column("mem_mib"), 0).to_numpy(),
        gpus=gpus,
        gpu_milli=np.where(gpus > 0, pc.fill_null(table.column("gpu_milli"), MILLI).to_numpy(), 0),
        gpu_models=pc.fill_null(table.column("gpu_models"), "").to_pylist(),
    )


def read_pack_nodes(path: Path) -> Nodes:
    """Nodes in the order of the file; each must say its CPUs and memory."""
    nodes = read_nodes(path)
    for node in nodes:
        if node.cpu_milli is None or node.mem_mib is None:
            raise ReaderError(
                f"{path.name}: node {node.name} has no cpus or no mem_mib; packing needs both"
            )
    return Nodes(
        name=[node.name for node in nodes],
        cpu_milli=np.array([node.cpu_milli for node in nodes], dtype=np.int64),
        mem_mib=np.array([node.mem_mib for node in nodes], dtype=np.int64),
        gpus=np.array([node.gpus for node in nodes], dtype=np.int64),
        gpu_model=[node.gpu_model or "" for node in nodes],
    )


def read_pod_order(path: Path) -> list[str]:
    """Pod names in order of arrival: a CSV with base_pod, pod or name, or one name per line."""
    return _names(path, _ORDER_COLUMNS)


def read_tie_order(path: Path) -> list[str]:
    """Node names, the winner of ties first: a CSV with a column node (by tie_rank, if it has one),
    or one name per line."""
    return _names(path, _TIE_COLUMNS, rank="tie_rank")


def _names(path: Path, columns: tuple[str, ...], rank: str | None = None) -> list[str]:
    with opened(path) as text:
        rows = [row for row in csv.reader(text) if row and row[0].strip()]
    if not rows:
        raise ReaderError(f"{path.name}: no names; write one per line, or a CSV with {columns[0]}")
    header = [name.strip() for name in rows[0]]
    column = next((name for name in columns if name in header), None)
    if column is None:
        if len(header) > 1:
            raise ReaderError(f"{path.name}: no column {' or '.join(columns)} in {header}")
        return [row[0].strip() for row in rows]
    found = [dict(zip(header, row, strict=False)) for row in rows[1:]]
    if rank is not None and rank in header:
        found.sort(key=lambda row: int(row[rank]))
    return [row[column].strip() for row in found]
