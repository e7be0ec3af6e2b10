"""What `unstrand sweep` does, apart from its options: only it loads the compiler."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scheduler_advisor.engine import policy_text
from scheduler_advisor.engine.hashes import VERSION
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.parts.places import network_model
from scheduler_advisor.engine.parts.settings import TopologyPart
from scheduler_advisor.sweep.cache import Cache
from scheduler_advisor.sweep.cells import Cell, read_cells
from scheduler_advisor.sweep.replay import Replayed
from scheduler_advisor.sweep.run import sweep
from scheduler_advisor.sweep.runners import runner_named
from unstrand.clock import utc_now
from unstrand.commands.replay_source import ReplayInput, ReplaySource, replay_input
from unstrand.commands.result_file import write_result
from unstrand.commands.simulate_run import warm_up
from unstrand.commands.source import opened
from unstrand.errors import SettingsError


def sweep_to_file(
    source: ReplaySource, policies: Path, executor: str | None, out: Path
) -> Iterator[str]:
    """Run the sweep, write its table, and yield lines for people."""
    cells = read_cells(_text(policies))
    parts = _by_network(source, cells)
    yield from dict.fromkeys(line for part in parts for line in part.found.read.lines())
    runner = runner_named(executor, len(cells), parts[0].found.read.kept)
    yield from _warmed(parts)
    progress, done = _progress(), 0
    total = sum(len(set(part.cells)) for part in parts)
    keeps = source.window is not None or source.db is not None
    with opened(source.db, create=True) if keeps else nullcontext() as store:
        for part in parts:
            jobs, cluster = part.found.read.jobs, part.found.cluster
            cache = None if store is None else Cache(store, jobs.hash, cluster.hash)
            tell = partial(_told_of_all, progress, done, total)
            part.results = sweep(
                jobs, cluster, part.cells, runner, cache=cache, clock=utc_now, progress=tell
            )
            done += len(set(part.cells))
    write_result(out, _parquet(parts, cells))
    results = [pair for part in parts for pair in part.results]
    known = sum(result.cached for _, result in results)
    yield f"{len(results)} replays, {known} of them known already: {out}"
    for cell, result in sorted(results, key=lambda pair: pair[1].summary["wait_s"]["mean"] or 0):
        wait = result.summary["wait_s"]
        told = ["-" if wait[key] is None else f"{wait[key]:,.0f} s" for key in ("mean", "p95")]
        yield f"  {cell.name} (seed {cell.seed}): wait mean {told[0]}, p95 {told[1]}"


@dataclass
class _Part:
    """Cells that read the history with the same network, and what became of them."""

    cells: list[Cell]
    found: ReplayInput
    results: list[tuple[Cell, Replayed]] = field(default_factory=list)


def _by_network(source: ReplaySource, cells: Sequence[Cell]) -> list[_Part]:
    """How much of a run time was communication depends on how fast the network is: cells that say
    so differently read the store's history each with their own, as `simulate` does."""
    groups: dict[TopologyPart | None, list[Cell]] = {}
    for cell in cells:
        model = network_model(cell.policy) if source.window is not None else None
        groups.setdefault(model, []).append(cell)
    return [
        _Part(group, replay_input(source, group[0].policy if model is not None else None))
        for model, group in groups.items()
    ]


def _warmed(parts: Sequence[_Part]) -> Iterator[str]:
    """Compiles once here, and not in every worker at the same time; yields what is replayed how."""
    drivers = {
        cell.name: (cell.policy, driver_of(part.found.read.jobs, cell.policy))
        for part in parts
        for cell in part.cells
    }
    for name, (_, driver) in drivers.items():
        yield from (f"{name}: {line}" for line in driver.lines())
    compiled = [policy for policy, driver in drivers.values() if not driver.plain]
    for policy in {policy.placement: policy for policy in compiled}.values():
        warm_up(policy)


def _told_of_all(
    progress: Callable[[int, int], None], before: int, total: int, done: int, _: int
) -> None:
    progress(before + done, total)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the policies {path} ({error}): check the path") from error


def _progress() -> Callable[[int, int], None]:
    """Counts on stderr, where somebody is looking."""
    if not sys.stderr.isatty():
        return lambda done, total: None

    def tell(done: int, total: int) -> None:
        sys.stderr.write(f"\r{done} of {total} replays" + ("\n" if done == total else ""))
        sys.stderr.flush()

    return tell


def _parquet(parts: Sequence[_Part], order: Sequence[Cell]) -> bytes:
    place = {cell: at for at, cell in reversed(list(enumerate(order)))}
    found = [
        (place[cell], cell, result, part.found) for part in parts for cell, result in part.results
    ]
    rows = [
        {
            "policy": cell.name,
            "seed": cell.seed,
            **_flat(result.summary),
            "policy_toml": policy_text.to_toml(cell.policy),
            "policy_hash": cell.policy.hash,
            "workload_hash": history.read.jobs.hash,
            "cluster_hash": history.cluster.hash,
            "engine_version": VERSION,
            "outcome_hash": result.outcome_hash,
            "engine_s": result.engine_s,
            "cached": result.cached,
        }
        for _, cell, result, history in sorted(found, key=lambda one: one[0])
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _flat(summary: Mapping[str, Any]) -> dict[str, Any]:
    """``wait_s: {mean}`` as ``wait_s_mean``; a part that is not there is left out."""
    columns: dict[str, Any] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            columns |= {f"{name}_{key}": each for key, each in value.items()}
        elif value is not None:
            columns[name] = value
    return columns
