"""The nodes that a trace ran on: files of nodes, and shapes in short."""

from __future__ import annotations

import csv
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.errors import ImportRefusedError
from collector.traces.columns import Columns, opened, refused
from collector.traces.swf import repeats

_SHAPE = re.compile(r"^(\d+)[xX](\d+)$")
_CLOS = ("ip", "DSW", "PSW", "ASW")
_CLOS_GPUS = 8
# Column of openb's node list -> ours.
_OPENB = {"sn": "node", "model": "gpu_model", "gpu": "gpus", "memory_mib": "mem_mib"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node; None = not said. ``cpu_milli``: thousandths of a CPU."""

    name: str
    gpus: int
    gpu_model: str | None = None
    cpu_milli: int | None = None
    mem_mib: int | None = None
    rack: str | None = None
    leaf: str | None = None
    spine: str | None = None


def shaped(text: str) -> tuple[NodeSpec, ...]:
    """``17x8``: 17 nodes of 8 GPUs, named so that their order by name is their number."""
    found = _SHAPE.match(text.strip())
    if found is None or not int(found[1]) or not int(found[2]):
        raise ImportRefusedError(f"no shape of nodes: {text!r}; write for example 17x8")
    nodes, gpus = int(found[1]), int(found[2])
    width = len(str(nodes - 1))
    return tuple(NodeSpec(name=f"n{i:0{width}d}", gpus=gpus) for i in range(nodes))


def read_nodes(path: Path) -> tuple[NodeSpec, ...]:
    """Nodes from TOML (``[[node]]`` tables), or CSV with our columns or those of openb.

    Columns: node, gpu_model, gpus, cpus, mem_mib, rack, leaf, spine; only node and gpus are needed.
    A list of hosts in a Clos network (ip, DSW, PSW, ASW) makes nodes of 8 GPUs; leaf switches of
    one name under two pods are two.
    """
    if path.suffix == ".toml":
        return _toml(path)
    columns = _columns(path)
    if set(_CLOS) <= set(columns.header):
        return _clos(columns)
    columns.require("node", "gpus")
    for name, line in repeats(columns.text("node"), columns.lines):
        raise refused(path, line, f"node {name} appears a second time", "keep one of the lines")
    gpus = columns.whole("gpus", least=0, needed=True).to_pylist()
    cpus, cpu_known = columns.numbers("cpus")
    milli = columns.whole("cpu_milli", least=0).to_pylist()
    memory = columns.whole("mem_mib", least=0).to_pylist()
    text = {name: columns.names(name) for name in ("gpu_model", "rack", "leaf", "spine")}
    return tuple(
        NodeSpec(
            name=name,
            gpus=gpus[i],
            cpu_milli=round(cpus[i] * 1000) if cpu_known[i] else milli[i],
            mem_mib=memory[i],
            **{key: values[i] for key, values in text.items()},
        )
        for i, name in enumerate(columns.text("node"))
    )


def _columns(path: Path) -> Columns:
    with opened(path) as text:
        header = [name.strip() for name in next(csv.reader(text), [])]
    columns = Columns.read(path)
    return columns.renamed(_OPENB) if header[:1] == ["sn"] else columns


def _clos(columns: Columns) -> tuple[NodeSpec, ...]:
    columns.require(*_CLOS)
    rows = zip(*(columns.text(name) for name in _CLOS), strict=True)
    return tuple(
        NodeSpec(name=ip, gpus=_CLOS_GPUS, leaf=f"{pod}/{leaf}", spine=pod, rack=core)
        for ip, core, pod, leaf in rows
    )


def _toml(path: Path) -> tuple[NodeSpec, ...]:
    with opened(path) as text:
        content = text.read()
    try:
        tables = tomllib.loads(content).get("node")
    except tomllib.TOMLDecodeError as error:
        raise refused(path, None, f"not TOML ({error})", "correct it") from None
    if not isinstance(tables, list) or not tables:
        raise refused(path, None, "no [[node]] table", "write one for each node or kind of node")
    nodes = tuple(node for i, table in enumerate(tables) for node in _table(path, i, table))
    if len({node.name for node in nodes}) < len(nodes):
        raise refused(path, None, "two nodes have the same name", "name them apart")
    return nodes


def _table(path: Path, index: int, table: dict[str, Any]) -> list[NodeSpec]:
    values = dict(table)
    try:
        name, count = str(values.pop("node")), int(values.pop("count", 0))
        if "cpus" in values:
            values["cpu_milli"] = round(float(values.pop("cpus")) * 1000)
        names = (
            [name] if not count else [f"{name}{i:0{len(str(count - 1))}d}" for i in range(count)]
        )
        return [NodeSpec(name=each, **values) for each in names]
    except (KeyError, TypeError, ValueError) as error:
        what = f"[[node]] table {index + 1} is not understood ({error})"
        raise refused(path, None, what, "see node, count, gpus, gpu_model, cpus, mem_mib") from None
