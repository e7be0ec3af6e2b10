"""Why a job of some shape cannot start at an instant, and the smallest release that lets it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

from analytics.errors import ReportError
from analytics.gpu_models import ModelNames
from analytics.reports.cost import asked_clusters
from analytics.state_at import Holding, NodeNow, state_at
from analytics.window import to_us
from collector.store import Store

_MOST_RUNS = 12
LEVELS = ("leaf", "rack", "spine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a job asks for on each of its ``nodes``; ``topology``: all under one leaf|rack|spine."""

    gpus: int
    nodes: int = 1
    cpus: int = 0
    mem_mib: int = 0
    gpu_model: str | None = None
    partition: str | None = None
    topology: str | None = None

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.nodes < 1 or self.cpus < 0 or self.mem_mib < 0:
            raise ReportError("a shape needs at least 1 node with at least 1 GPU each")
        if self.topology not in (None, *LEVELS):
            raise ReportError(f"topology {self.topology!r}: use {', '.join(LEVELS)}")


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """Why one node cannot take its part; ``reason`` None = it can. Amounts are what is missing."""

    node: str
    gpu_model: str
    free_gpus: int
    reason: str | None
    missing_gpus: int
    missing_cpus: float
    missing_mem_mib: int
    release: tuple[str, ...]
    """Runs of this node whose end would make room, fewest GPUs first; empty = none would."""


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """The verdict, node by node, and the smallest set of runs whose end would let the job start."""

    at: datetime
    shape: Shape
    verdict: str
    nodes: list[NodeAnswer]
    release: list[str] | None
    release_gpus: int | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat().replace("+00:00", "Z"),
            "shape": asdict(self.shape),
            "verdict": self.verdict,
            "nodes": [{**asdict(row), "release": list(row.release)} for row in self.nodes],
            "release": self.release,
            "release_gpus": self.release_gpus,
        }


def stranding_at(
    store: Store, at: datetime, shape: Shape, *, cluster: str | None = None
) -> StartAnswer:
    """Whether a job of ``shape`` could start at ``at``, judged by its own request alone.

    ``verdict``: fits, gang_wait (not enough GPUs in all), stranded_topology, stranded_cpu,
    stranded_mem, stranded_shape, or impossible (the empty cluster could not take it).
    """
    names = asked_clusters(store, cluster)
    if len(names) != 1:
        raise ReportError(f"say which cluster (--cluster): there is {', '.join(names) or 'none'}")
    with store.work() as work:
        models = ModelNames.load(work)
        ends = work.value("SELECT max(until) FROM fact_window WHERE cluster = ?", [names[0]])
        # Facts are known up to their end, not at it: asked for that instant, people mean the last.
        moment = to_us(at) - (1 if at == ends else 0)
        nodes = [n for n in state_at(work, names[0], moment) if _may(n, shape, models)]
    verdict = _verdict(nodes, shape)
    answers = {node.node: _answer(node, shape) for node in nodes}
    release = None if verdict in ("fits", "impossible") else _smallest(nodes, answers, shape)
    gpus = None
    if release is not None:
        held = {h.run_id: h.gpus for node in nodes for h in node.holdings}
        gpus = sum(held[run] for run in release)
    return StartAnswer(at, shape, verdict, list(answers.values()), release, gpus)


def _may(node: NodeNow, shape: Shape, models: ModelNames) -> bool:
    wanted = set(models.candidates(shape.gpu_model)) if shape.gpu_model else set()
    fits_model = not wanted or bool(wanted & set(models.candidates(node.model)))
    return fits_model and (
        shape.partition is None or not node.partitions or shape.partition in node.partitions
    )


def _room(node: NodeNow, shape: Shape, *, cpu: bool = True, mem: bool = True) -> bool:
    return (
        node.open_gpus >= shape.gpus
        and (not cpu or node.cpu_milli is None or node.cpu_milli >= shape.cpus * 1000)
        and (not mem or node.mem_mib is None or node.mem_mib >= shape.mem_mib)
    )


def _domains(nodes: list[NodeNow], shape: Shape) -> list[list[NodeNow]]:
    """Nodes that may be used together."""
    if shape.topology is None:
        return [nodes]
    groups: dict[str, list[NodeNow]] = defaultdict(list)
    for node in nodes:
        where = getattr(node, shape.topology)
        if where is not None:
            groups[where].append(node)
    return [groups[name] for name in sorted(groups)]


def _verdict(nodes: list[NodeNow], shape: Shape) -> str:
    def fits(groups: list[list[NodeNow]], **rules: bool) -> bool:
        return any(sum(_room(n, shape, **rules) for n in group) >= shape.nodes for group in groups)

    together = _domains(nodes, shape)
    if sum(_could(node, shape) for node in nodes) < shape.nodes:
        return "impossible"
    if fits(together):
        return "fits"
    if sum(node.open_gpus for node in nodes) < shape.gpus * shape.nodes:
        return "gang_wait"
    if shape.topology is not None and fits([nodes]):
        return "stranded_topology"
    rules = (("stranded_cpu", {"cpu": False}), ("stranded_mem", {"mem": False}),
             ("stranded_cpu", {"cpu": False, "mem": False}))  # fmt: skip
    return next((name for name, rule in rules if fits(together, **rule)), "stranded_shape")


def _could(node: NodeNow, shape: Shape) -> bool:
    """Whether the node could take its part if nothing ran there."""
    cpu = sum(h.cpu_milli for h in node.holdings)
    mem = sum(h.mem_mib for h in node.holdings)
    return (
        node.installed >= shape.gpus
        and (node.cpu_milli is None or node.cpu_milli + cpu >= shape.cpus * 1000)
        and (node.mem_mib is None or node.mem_mib + mem >= shape.mem_mib)
    )


def _answer(node: NodeNow, shape: Shape) -> NodeAnswer:
    cpu = 0 if node.cpu_milli is None else max(shape.cpus * 1000 - node.cpu_milli, 0)
    mem = 0 if node.mem_mib is None else max(shape.mem_mib - node.mem_mib, 0)
    gpus = max(shape.gpus - node.free, 0)
    reason = node.closed or ("gpus" if gpus else "cpu" if cpu else "mem" if mem else None)
    release = () if node.closed or reason is None else _ends(node, (gpus, cpu, mem))
    return NodeAnswer(
        node.node, node.model, node.open_gpus, reason, gpus, cpu / 1000, mem,
        tuple(h.run_id for h in release),
    )  # fmt: skip


def _ends(node: NodeNow, need: tuple[int, int, int]) -> tuple[Holding, ...]:
    """The runs of one node with the fewest GPUs whose end frees enough of everything."""
    runs = sorted(node.holdings, key=lambda h: (h.gpus, h.run_id))[:_MOST_RUNS]
    enough = [choice for choice in _choices(runs) if _frees(choice, need)]
    return min(enough, key=lambda c: (sum(h.gpus for h in c), len(c), c[0].run_id), default=())


def _choices(runs: list[Holding]) -> Iterator[tuple[Holding, ...]]:
    for size in range(1, len(runs) + 1):
        yield from combinations(runs, size)


def _frees(choice: tuple[Holding, ...], need: tuple[int, int, int]) -> bool:
    gpus, cpu, mem = need
    return (
        sum(h.gpus for h in choice) >= gpus
        and sum(h.cpu_milli for h in choice) >= cpu
        and sum(h.mem_mib for h in choice) >= mem
    )


def _smallest(
    nodes: list[NodeNow], answers: dict[str, NodeAnswer], shape: Shape
) -> list[str] | None:
    """The runs to end, by run id, where the fewest GPUs must be freed; None where nothing helps."""
    best: tuple[int, list[str]] | None = None
    for group in _domains(nodes, shape):
        ready = []
        for node in group:
            answer = answers[node.node]
            if answer.reason is not None and not answer.release:
                continue
            held = {h.run_id: h.gpus for h in node.holdings}
            ready.append((sum(held[run] for run in answer.release), node.node))
        ready.sort()
        if len(ready) < shape.nodes:
            continue
        chosen = ready[: shape.nodes]
        runs = sorted({run for _, name in chosen for run in answers[name].release})
        cost = sum(gpus for gpus, _ in chosen)
        if best is None or cost < best[0]:
            best = (cost, runs)
    return None if best is None else best[1]
