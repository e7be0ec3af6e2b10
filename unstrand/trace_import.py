"""A trace into the store, from the command line or over the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from collector.errors import ImportRefusedError
from collector.store import Store
from collector.traces.facts import SimulatedRun
from collector.traces.importer import TraceSummary, import_trace
from collector.traces.inventory import NodeSpec, read_nodes, shaped


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuestion:
    """The options of one import, as given."""

    file: Path
    kind: str
    cluster: str
    nodes: Path | None
    shape: str | None
    origin: datetime | None
    policy: str | None


def take_in(store: Store, question: TraceQuestion, now: datetime) -> TraceSummary:
    """Import the trace; one without starts is replayed first, if a policy is named."""
    specs = _nodes(question)
    return import_trace(
        store,
        question.file,
        question.kind,
        question.cluster,
        now=now,
        nodes=specs,
        origin=question.origin,
        simulated=None if question.policy is None else _replayed(question, specs),
    )


def _nodes(question: TraceQuestion) -> Sequence[NodeSpec] | None:
    if question.shape is not None:
        return shaped(question.shape)
    return None if question.nodes is None else read_nodes(question.nodes)


def _replayed(
    question: TraceQuestion, specs: Sequence[NodeSpec] | None
) -> Mapping[str, SimulatedRun]:
    if specs is None:
        raise ImportRefusedError("a replay needs nodes: give --nodes FILE or --shape NxG")
    from scheduler_advisor.engine.simulate import simulate
    from scheduler_advisor.readers.fleet import cluster_of
    from scheduler_advisor.readers.jobs import read_jobs
    from unstrand.commands.simulate_run import read_policy

    read = read_jobs(question.file, question.kind)
    policy = read_policy(question.policy or "", {})
    outcome = simulate(read.jobs, cluster_of(specs), policy)
    jobs, names = outcome.jobs, outcome.cluster.names
    runs = {}
    for job in outcome.started.nonzero()[0].tolist():
        tasks, each = int(jobs.tasks[job]), max(1, int(jobs.gpus_per_task[job]))
        nodes = [names[node] for node in outcome.nodes(job).tolist()]
        held = [node for node in nodes[:tasks] for _ in range(each)]
        held += [node for node in nodes[tasks:] for _ in range(int(jobs.rest_gpus[job]))]
        held = held if jobs.gpus[job] else []
        runs[str(jobs.job_id[job])] = SimulatedRun(
            int(outcome.start[job]), int(outcome.end[job]), tuple(held)
        )
    return runs
