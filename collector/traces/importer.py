"""A trace file into the store: jobs, runs, what they held, nodes, and what is known when."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collector.errors import ImportRefusedError
from collector.model import FactWindow, ImportLog
from collector.store import Store
from collector.traces import facts
from collector.traces.formats import Format, read_trace
from collector.traces.inventory import NodeSpec, read_nodes
from collector.traces.named_nodes import named_nodes
from collector.traces.placement import RULE, Placements, place
from collector.traces.trace import Trace

DEFAULT_ORIGIN = datetime(2020, 1, 1, tzinfo=UTC)
"""Second 0 of a trace that gives no calendar."""

_TOLD = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What an import took in. ``held_gpu_milli_s``: thousandths of GPU-seconds held, exact."""

    import_id: str
    cluster: str
    format: str
    since: datetime
    until: datetime
    kept: int
    dropped: Mapping[str, int]
    remarks: tuple[str, ...]
    nodes: int
    gpus: int
    allocations: int
    held_gpu_milli_s: int

    @property
    def held_gpu_hours(self) -> float:
        """GPU-hours held by what was taken in."""
        return self.held_gpu_milli_s / 3_600_000

    def lines(self) -> list[str]:
        """The summary for people, rows kept and dropped by reason."""
        dropped = [f"  dropped {count:,}: {reason}" for reason, count in self.dropped.items()]
        return [
            f"cluster {self.cluster}: {self.kept:,} jobs in format {self.format}, "
            f"{self.nodes:,} nodes with {self.gpus:,} GPUs",
            f"  facts known from {self.since:{_TOLD}} to {self.until:{_TOLD}} UTC",
            f"  held {self.held_gpu_hours:,.2f} GPU-hours in {self.allocations:,} allocations",
            *dropped,
            *[f"  {remark}" for remark in self.remarks],
        ]


def import_trace(  # noqa: PLR0913 - each is an option of the command
    store: Store,
    path: Path,
    format: Format | str,
    cluster: str,
    *,
    now: datetime,
    nodes: Path | Sequence[NodeSpec] | None = None,
    origin: datetime | None = None,
    simulated: Mapping[str, facts.SimulatedRun] | None = None,
) -> TraceSummary:
    """Take in one trace file, all of it or nothing.

    ``nodes``: a file of nodes or the nodes themselves; may be left out where the trace names them.
    ``origin``: the instant of second 0, for a trace without a calendar. ``simulated``: runs of a
    replay by job id, for a trace without starts; its rows are tagged ``simulated``.
    Raises ImportRefusedError for a broken file, a trace without starts, or one taken in before.
    """
    trace = read_trace(path, format)
    trace = _with_starts(path, trace, simulated)
    specs = _specs(path, trace, nodes)
    trace = _on_other_nodes(trace, specs)
    placements = place(trace, specs)
    begin = trace.origin or origin or DEFAULT_ORIGIN
    batch = facts.Batch(
        cluster=cluster,
        source=f"trace:{trace.format}" + ("" if simulated is None else ":simulated"),
        origin=begin,
        trace=trace,
        nodes=tuple(sorted(specs, key=lambda node: node.name)),
        placements=placements,
    )
    summary = _summary(path, batch, placements)
    _write(store, batch, summary, now)
    return summary


def _with_starts(
    path: Path, trace: Trace, simulated: Mapping[str, facts.SimulatedRun] | None
) -> Trace:
    if simulated is not None:
        return facts.with_starts(trace, simulated)
    if trace.jobs.column("start_s").null_count == trace.kept:
        raise ImportRefusedError(
            f"{path.name}: a trace ({trace.format}) without a single start time does not say who "
            "held what; have it replayed first under a policy that you name (--policy)"
        )
    return trace


def _specs(path: Path, trace: Trace, nodes: Path | Sequence[NodeSpec] | None) -> Sequence[NodeSpec]:
    if isinstance(nodes, Path):
        return read_nodes(nodes)
    specs = named_nodes(trace) if nodes is None else tuple(nodes)
    if not specs:
        raise ImportRefusedError(
            f"{path.name}: the trace does not say on which nodes it ran; "
            "give them with --nodes FILE or --shape NxG"
        )
    return specs


def _on_other_nodes(trace: Trace, specs: Sequence[NodeSpec]) -> Trace:
    """Where none of the nodes that the trace names was given, as with a shape, the rule places all
    of its jobs. A list that only misses some is left alone: elsewhere is not where they ran."""
    known = {spec.name for spec in specs}
    names = [name for named in trace.column("node_names") for name in named or ()]
    if not names or not known.isdisjoint(names):
        return trace
    remark = (
        f"the trace names {len(set(names)):,} nodes of its own, none of them among those given: "
        "its jobs are placed on yours by the rule"
    )
    return replace(facts.without_nodes(trace), remarks=(*trace.remarks, remark))


def _summary(path: Path, batch: facts.Batch, placements: Placements) -> TraceSummary:
    trace = batch.trace
    since, until = facts.span(trace)
    digest = hashlib.sha256(f"{batch.cluster}\0{batch.source}\0".encode() + path.read_bytes())
    return TraceSummary(
        import_id=digest.hexdigest(),
        cluster=batch.cluster,
        format=trace.format,
        since=batch.origin + timedelta(seconds=since),
        until=batch.origin + timedelta(seconds=until),
        kept=trace.kept,
        dropped=trace.dropped,
        remarks=_remarks(batch, placements),
        nodes=len(batch.nodes),
        gpus=sum(node.gpus for node in batch.nodes),
        allocations=len(placements.held),
        held_gpu_milli_s=facts.held_gpu_milli_s(trace, placements.held, until),
    )


def _remarks(batch: facts.Batch, placements: Placements) -> tuple[str, ...]:
    remarks = list(batch.trace.remarks)
    if batch.trace.origin is None:
        remarks.append(f"the trace has no calendar: second 0 is {batch.origin:{_TOLD}} UTC")
    if batch.source.endswith(":simulated"):
        remarks.append("starts and nodes are those of a replay and no facts: fidelity not gradable")
    if any(
        start is not None and names is None
        for start, names in zip(
            batch.trace.column("start_s"), batch.trace.column("node_names"), strict=True
        )
    ):
        remarks.append(f"placement is modelled: {RULE}")
    if placements.without_room:
        remarks.append(
            f"{len(placements.without_room)} jobs held GPUs for which the nodes given had no room: "
            "they are kept as runs that hold nothing"
        )
    if placements.over_cpu_or_memory:
        remarks.append(
            f"{placements.over_cpu_or_memory} jobs were put on a node without enough CPU or memory "
            "left, because no node had it"
        )
    return tuple(remarks)


def _write(store: Store, batch: facts.Batch, summary: TraceSummary, now: datetime) -> None:
    with store.work() as work:
        known = work.value("SELECT ts FROM import_log WHERE import_id = ?", [summary.import_id])
        if known is not None:
            raise ImportRefusedError(
                f"this file is in cluster {batch.cluster} already, since {known:{_TOLD}} UTC; "
                "nothing was taken in again (use another --cluster to hold it twice)"
            )
        if work.value("SELECT count(*) FROM job_run WHERE cluster = ?", [batch.cluster]):
            raise ImportRefusedError(
                f"cluster {batch.cluster} holds other facts already: a trace is a cluster of its "
                "own, give it another --cluster name"
            )
        with work.transaction():
            for table, columns in batch.tables().items():
                work.append(table, columns)
            work.append_facts([_window(batch, summary), _log(batch, summary, now)])


def _window(batch: facts.Batch, summary: TraceSummary) -> FactWindow:
    return FactWindow(
        cluster=batch.cluster,
        kind="scheduler",
        since=summary.since,
        until=summary.until,
        source=batch.source,
    )


def _log(batch: facts.Batch, summary: TraceSummary, now: datetime) -> ImportLog:
    reasons = [f"dropped {count}: {reason}" for reason, count in summary.dropped.items()]
    return ImportLog(
        import_id=summary.import_id,
        cluster=batch.cluster,
        source=batch.source,
        ts=now,
        since=summary.since,
        until=summary.until,
        kept=summary.kept,
        dropped=sum(summary.dropped.values()),
        remarks="; ".join([*reasons, *summary.remarks]) or None,
    )
