"""Runs, jobs and allocations into the store: by run key, and never an older word over a newer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm import run_statements as statements
from collector.slurm.allocations import Spread
from collector.slurm.inventory import SOURCE
from collector.store import Work

EXACT = "slurm-detail"
"""Source of allocations whose split over nodes the controller itself gave; `SOURCE` = by rule."""


@dataclass(frozen=True, slots=True)
class Written:
    """Rows taken in by table, and rows that the store knew better."""

    kept: dict[str, int]
    older: int


def write(work: Work, cluster: str, runs: pa.Table, allocations: pa.Table) -> Written:
    """Take in `run_table` and `allocation_table` inside the caller's transaction."""
    work.execute(statements.STAGED_RUNS)
    work.execute(statements.STAGED_ALLOCATIONS)
    offered = work.append("slurm_run", runs)
    work.append("slurm_allocation", allocations)
    work.execute(statements.OLDER, [cluster])
    work.execute(statements.DROP_SAME_ALLOCATIONS)
    _write_jobs(work, cluster)
    work.execute(statements.EXACT_KNOWN, [cluster, EXACT])
    work.execute(statements.DROP_RULED)
    work.execute(statements.KEEP_EXACT)
    written = _counted(work, offered)
    _drop_what_is_stored(work, cluster)
    work.execute(statements.DELETE_RUNS, [cluster])
    work.execute(statements.INSERT_RUNS, [cluster, SOURCE])
    work.execute(statements.DELETE_OVERTAKEN, [cluster])
    work.execute(statements.NUMBER_ATTEMPTS, [cluster])
    work.execute(statements.DELETE_ALLOCATIONS, [cluster, SOURCE, EXACT])
    work.execute(statements.INSERT_ALLOCATIONS, [cluster])
    return written


def _write_jobs(work: Work, cluster: str) -> None:
    work.execute(statements.JOBS, [cluster, SOURCE])
    work.execute(statements.KEEP_FIRST_SUBMIT, [cluster])
    work.execute(statements.LATER_KNOWN, [cluster])
    work.execute(statements.FIRST_SUBMIT, [cluster])
    work.execute(statements.SAME_JOBS, [cluster])
    work.execute(statements.DELETE_JOBS, [cluster])
    work.execute(statements.INSERT_JOBS)


def _drop_what_is_stored(work: Work, cluster: str) -> None:
    """Leave in the staged tables only runs that differ from what is stored."""
    work.execute(statements.SAME_RUNS, [cluster, SOURCE, EXACT])
    work.execute(statements.SEEN_LATER, [cluster])
    work.execute(statements.DROP_SAME_RUNS)
    work.execute(statements.DROP_SAME_ALLOCATIONS)


def _counted(work: Work, offered: int) -> Written:
    runs = int(work.value("SELECT count(*) FROM slurm_run"))
    jobs = int(work.value("SELECT count(DISTINCT job_id) FROM slurm_run"))
    held = int(work.value("SELECT count(*) FROM slurm_allocation"))
    return Written({"job_run": runs, "job": jobs, "allocation": held}, offered - runs)


def run_table(
    table: pa.Table, gpus: pa.Array, cpus: pa.Array, mem_mib: pa.Array, nodes: pa.Array
) -> pa.Table:
    """The runs of a batch as `write` takes them."""
    same = (
        *("run_id", "job_id", "name", "account", "user_name", "project", "qos", "partition"),
        *("state", "state_raw", "reason", "exit_code", "suspended_s", "limit_s", "array_job_id"),
        *("array_task", "het_job_id", "het_component", "req_nodes", "req_gpus", "req_gpu_model"),
        *("req_cpus", "req_mem_mib", "priority", "labels"),
    )
    columns = {name: table[name] for name in same}
    times = {"submit_at": "submit", "eligible_at": "eligible", "start_at": "start"}
    times |= {"end_at": "end", "last_known_at": "known"}
    columns |= {name: instant(table[source]) for name, source in times.items()}
    columns |= {"gpus": gpus, "cpus": cpus, "mem_mib": mem_mib, "nodes": nodes}
    return pa.table(columns)


def allocation_table(table: pa.Table, spread: Spread) -> pa.Table:
    """The allocations of a batch as `write` takes them."""
    at = pa.array(spread.run)
    exact = np.asarray(spread.exact)
    source = pc.if_else(pa.array(exact, pa.bool_()), EXACT, SOURCE)
    return pa.table(
        {
            "run_id": table["run_id"].take(at),
            **spread.columns,
            "start_at": instant(table["start"].take(at)),
            "end_at": instant(table["end"].take(at)),
            "source": source,
        }
    )


def instant(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Epoch seconds as the naive UTC timestamps that the store keeps."""
    return pc.cast(pc.cast(seconds, pa.int64()), pa.timestamp("s"))
