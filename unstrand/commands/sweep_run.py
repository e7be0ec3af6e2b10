"""What `unstrand sweep` does, apart from its options: only it loads the compiler."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scheduler_advisor.engine import policy_text
from scheduler_advisor.engine.hashes import VERSION
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.parts.places import by_network
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
    # One history for all cells: fractions are read with the network of the first that has one.
    network = next((cell.policy for cell in cells if by_network(cell.policy)), None)
    found = replay_input(source, network)
    yield from found.read.lines()
    runner = runner_named(executor, len(cells), found.read.kept)
    drivers = {cell.name: driver_of(found.read.jobs, cell.policy) for cell in cells}
    for name, driver in drivers.items():
        yield from (f"{name}: {line}" for line in driver.lines())
    compiled = [cell.policy for cell in cells if not drivers[cell.name].plain]
    for policy in {policy.placement: policy for policy in compiled}.values():
        warm_up(policy)  # once here, and not in every worker at the same time
    keeps = source.window is not None or source.db is not None
    with opened(source.db, create=True) if keeps else nullcontext() as store:
        jobs, cluster = found.read.jobs, found.cluster
        cache = None if store is None else Cache(store, jobs.hash, cluster.hash)
        results = sweep(
            jobs, cluster, cells, runner, cache=cache, clock=utc_now, progress=_progress()
        )
    write_result(out, _parquet(results, found))
    known = sum(result.cached for _, result in results)
    yield f"{len(results)} replays, {known} of them known already: {out}"
    for cell, result in sorted(results, key=lambda pair: pair[1].summary["wait_s"]["mean"] or 0):
        wait = result.summary["wait_s"]
        told = ["-" if wait[key] is None else f"{wait[key]:,.0f} s" for key in ("mean", "p95")]
        yield f"  {cell.name} (seed {cell.seed}): wait mean {told[0]}, p95 {told[1]}"


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


def _parquet(results: Sequence[tuple[Cell, Replayed]], found: ReplayInput) -> bytes:
    jobs, cluster = found.read.jobs.hash, found.cluster.hash
    rows = [
        {
            "policy": cell.name,
            "seed": cell.seed,
            **_flat(result.summary),
            "policy_toml": policy_text.to_toml(cell.policy),
            "policy_hash": cell.policy.hash,
            "workload_hash": jobs,
            "cluster_hash": cluster,
            "engine_version": VERSION,
            "outcome_hash": result.outcome_hash,
            "engine_s": result.engine_s,
            "cached": result.cached,
        }
        for cell, result in results
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
