"""From parsed output to rows in the store: the rules first, then one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from collector.ingest.runs import retag
from collector.model import NodeState
from collector.slurm import cluster_writer, inventory, node_states, run_rules, run_writer
from collector.slurm.accounting import check_gpu_accounting
from collector.slurm.allocations import Spread, spread
from collector.slurm.inventory import Statement
from collector.slurm.node import SlurmNode
from collector.slurm.node_event import NodeEvent
from collector.slurm.node_states import StateStatement
from collector.slurm.partition import SlurmPartition
from collector.slurm.run_rules import Window
from collector.slurm.sacct import RunBatch
from collector.slurm.settings import write_settings
from collector.slurm.split import Share
from collector.slurm.summary import ImportSummary
from collector.slurm.topology import Place
from collector.store import Store, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFacts:
    """Everything that one import parsed; ``events`` None = there is no list of events.

    ``exact``: by run id, the controller's own split of a run over its nodes. ``seen_since``: nodes
    that take no work now and carry no stamp do so since then, and those that do take work ended
    their open states; None = the list is of no known instant and holds for the whole window.
    ``states``: node states that are known besides. ``settings``: of the scheduler, by the family
    (`settings.FAMILIES`) that they are whole of.
    """

    cluster: str
    source: str
    digest: str
    runs: RunBatch
    nodes: tuple[SlurmNode, ...]
    events: tuple[NodeEvent, ...] | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    partitions: tuple[SlurmPartition, ...] = ()
    exact: Mapping[str, Sequence[Share]] = field(default_factory=dict)
    seen_since: datetime | None = None
    states: tuple[NodeState, ...] = ()
    remarks: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def take_in(store: Store, facts: SlurmFacts, window: Window, now: datetime) -> ImportSummary:
    """Apply the rules, write everything in one transaction, and say what became of it."""
    with store.work() as work, work.transaction():
        return write(work, facts, window, now)


def write(work: Work, facts: SlurmFacts, window: Window, now: datetime) -> ImportSummary:
    """`take_in` inside the caller's transaction."""
    runs, remarks = run_rules.settled(_with_partition_limits(facts))
    runs, since_s, until_s = run_rules.within(runs, window, int(now.timestamp()))
    remarks = [
        *facts.remarks,
        *runs.remarks,
        *remarks,
        *_ends_later(runs, now),
        *check_gpu_accounting(runs, facts.nodes),
    ]
    held = spread(runs, inventory.gpus_of(facts.nodes), facts.exact)
    since, until = datetime.fromtimestamp(since_s, UTC), datetime.fromtimestamp(until_s, UTC)
    allocations = run_writer.allocation_table(runs.table, held)
    written = run_writer.write(work, facts.cluster, _run_table(runs), allocations)
    kept, gone = _write_cluster(work, facts, since, until)
    if facts.settings:
        told = {key: value for family in facts.settings.values() for key, value in family.items()}
        write_settings(work, facts.cluster, told, now, facts.settings)
        kept["scheduler_setting"] = len(told)
    dropped = runs.dropped | _if_any("older than what is stored", written.older)
    summary = ImportSummary(
        cluster=facts.cluster,
        source=facts.source,
        since=since,
        until=until,
        kept=written.kept | kept,
        dropped=dropped | _if_any("allocation on nodes without GPUs", held.without_gpus),
        remarks=(*remarks, *held.remarks, *gone, *_future(until, now)),
        gpu_seconds=_gpu_seconds(runs, held),
    )
    # Samples that an agent took before this import carry the job's own name until now.
    retag(work, facts.cluster, since)
    cluster_writer.write_log(work, summary, facts.digest, now)
    return summary


def _write_cluster(
    work: Work, facts: SlurmFacts, since: datetime, until: datetime
) -> tuple[dict[str, int], list[str]]:
    rows = inventory.stated(facts.cluster, facts.nodes, facts.partitions, facts.places, since)
    nodes, gone = cluster_writer.write_nodes(work, facts.cluster, Statement(rows, since, until))
    states = _states(facts, since, until)
    later = cluster_writer.known_until(work, facts.cluster)
    if later is not None and later > until:
        states = states.closed()
    count = cluster_writer.write_states(work, facts.cluster, states)
    cluster_writer.write_window(work, facts.cluster, since, until)
    return {"node": nodes, "node_state": count}, gone


def _states(facts: SlurmFacts, since: datetime, until: datetime) -> StateStatement:
    begin = since if facts.seen_since is None else facts.seen_since
    booked = node_states.from_events(facts.cluster, facts.events or (), since, until)
    if facts.seen_since is not None:
        booked = node_states.over_where_usable(booked, facts.nodes, until)
    known = [*booked, *facts.states]
    shown = node_states.from_nodes(facts.cluster, facts.nodes, begin, until, known)
    return StateStatement(tuple(booked), (*facts.states, *shown), since, begin, until)


def _with_partition_limits(facts: SlurmFacts) -> RunBatch:
    """Time limits of ``Partition_Limit`` filled in from the partitions, where they are known."""
    limits = {each.name: each.max_time_s for each in facts.partitions}
    table = facts.runs.table
    if not limits or not pc.any(table["partition_limit"]).as_py():
        return facts.runs
    names = table["partition"].combine_chunks().dictionary_encode()
    known = [limits.get(name) for name in names.dictionary.to_pylist()]
    of_partition = pa.array(known, pa.int64()).take(names.indices)
    filled = pc.if_else(table["partition_limit"], of_partition, table["limit_s"])
    index = table.schema.get_field_index("limit_s")
    return facts.runs.with_table(table.set_column(index, "limit_s", filled), {})


def _run_table(runs: RunBatch) -> pa.Table:
    code = runs.table["alloc_code"]

    def of(values: list[int | None]) -> pa.ChunkedArray:
        return pa.array(values, pa.int64()).take(code)

    gpus = of([None if held is None else held.gpus for held in runs.alloc])
    cpus = of([None if held is None else held.cpus for held in runs.alloc])
    mem = of([None if held is None else held.mem_mib for held in runs.alloc])
    placed = pa.array([len(names) or None for names in runs.nodelists], pa.int64())
    nodes = pc.coalesce(runs.table["nnodes"], placed.take(runs.table["node_code"]))
    return run_writer.run_table(runs.table, gpus, cpus, mem, nodes)


def _gpu_seconds(runs: RunBatch, held: Spread) -> int:
    at = pa.array(held.run)
    start, end, known = (runs.table[name].take(at) for name in ("start", "end", "known"))
    seconds = pc.subtract(pc.coalesce(end, known, start), start)
    total = pc.sum(pc.multiply(pc.cast(held.columns["gpus"], pa.int64()), seconds))
    return int(total.as_py() or 0)


def _future(until: datetime, now: datetime) -> list[str]:
    if until <= now:
        return []
    return [f"the window ends after now ({now:%Y-%m-%d %H:%M} UTC): is the time zone right?"]


def _ends_later(runs: RunBatch, now: datetime) -> list[str]:
    later = pc.sum(pc.greater(runs.table["end"], int(now.timestamp()))).as_py()
    return [f"{later} runs end after now: counted as far as the window reaches"] if later else []


def _if_any(why: str, count: int) -> dict[str, int]:
    return {why: count} if count else {}
