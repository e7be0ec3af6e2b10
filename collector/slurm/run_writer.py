"""Runs, jobs and allocations into the store: by run key, and never an older word over a newer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm.allocations import Spread
from collector.slurm.inventory import SOURCE
from collector.store import Work

EXACT = "slurm-detail"
"""Source of allocations whose split over nodes the controller itself gave; `SOURCE` = by rule."""

_STAGING = """
CREATE OR REPLACE TEMP TABLE slurm_run (
  run_id VARCHAR, job_id VARCHAR, name VARCHAR, account VARCHAR, user_name VARCHAR, project VARCHAR,
  qos VARCHAR, partition VARCHAR, submit_at TIMESTAMP, eligible_at TIMESTAMP, start_at TIMESTAMP,
  end_at TIMESTAMP, last_known_at TIMESTAMP, state VARCHAR, state_raw VARCHAR, reason VARCHAR,
  exit_code VARCHAR, priority BIGINT, gpus INTEGER, cpus INTEGER, mem_mib BIGINT, nodes INTEGER,
  suspended_s BIGINT, limit_s BIGINT, array_job_id VARCHAR, array_task VARCHAR, het_job_id VARCHAR,
  het_component INTEGER, req_nodes INTEGER, req_gpus INTEGER, req_gpu_model VARCHAR,
  req_cpus INTEGER, req_mem_mib BIGINT)
"""
_STAGING_ALLOCATION = """
CREATE OR REPLACE TEMP TABLE slurm_allocation (
  run_id VARCHAR, node VARCHAR, gpu_model VARCHAR, gpus INTEGER, cpus INTEGER, mem_mib BIGINT,
  start_at TIMESTAMP, end_at TIMESTAMP, source VARCHAR)
"""
# A run that the store knows the end of, or has seen later, is newer than this row.
_OLDER = """
DELETE FROM slurm_run USING job_run AS r
WHERE r.cluster = ? AND r.run_id = slurm_run.run_id AND slurm_run.end_at IS NULL
  AND (r.end_at IS NOT NULL OR r.last_known_at > slurm_run.last_known_at)
"""
_JOBS = """
CREATE OR REPLACE TEMP TABLE slurm_job AS
SELECT *, min(submit_at) OVER (PARTITION BY job_id) AS first_submit_at,
  list_filter(string_split(coalesce(partition, ''), ','), lambda p: p <> '') AS partitions
FROM slurm_run
QUALIFY row_number() OVER (
  PARTITION BY job_id ORDER BY submit_at DESC, start_at DESC NULLS LAST, run_id DESC) = 1
"""
# Of a job that the store knows from a later submission, only the first submit may be news.
_KEEP_FIRST_SUBMIT = """
UPDATE job SET submit_at = j.first_submit_at FROM slurm_job AS j
WHERE job.cluster = ? AND job.job_id = j.job_id AND job.submit_at > j.first_submit_at
"""
_LATER_KNOWN = """
DELETE FROM slurm_job USING job_run AS r
WHERE r.cluster = ? AND r.job_id = slurm_job.job_id AND r.submit_at > slurm_job.submit_at
"""
_FIRST_SUBMIT = """
UPDATE slurm_job SET first_submit_at = least(first_submit_at, job.submit_at) FROM job
WHERE job.cluster = ? AND job.job_id = slurm_job.job_id
"""
_DELETE_JOBS = "DELETE FROM job WHERE cluster = ? AND job_id IN (SELECT job_id FROM slurm_job)"
_INSERT_JOBS = """
INSERT INTO job BY NAME
SELECT $1 AS cluster, job_id, name, account, user_name, project, qos,
  CASE WHEN len(partitions) > 0 THEN partitions END AS partitions, first_submit_at AS submit_at,
  array_job_id, array_task, het_job_id, het_component, req_nodes, req_gpus, req_gpu_model, req_cpus,
  req_mem_mib, limit_s, $2 AS source
FROM slurm_job ORDER BY submit_at, job_id
"""
# The controller's own split of a run is better than the rule's, while accounting still names the
# same number of GPUs: then only the end is new.
_KEEP_EXACT = """
DELETE FROM slurm_allocation WHERE source <> $1 AND run_id IN (
  SELECT a.run_id FROM allocation AS a JOIN slurm_run AS r USING (run_id)
  WHERE a.cluster = $2 AND a.source = $1
  GROUP BY a.run_id HAVING sum(a.gpus) = any_value(r.gpus))
"""
_END_EXACT = """
UPDATE allocation SET end_at = r.end_at FROM slurm_run AS r
WHERE allocation.cluster = ? AND allocation.source = ? AND allocation.run_id = r.run_id
"""
_DELETE_ALLOCATIONS = """
DELETE FROM allocation WHERE cluster = ? AND run_id IN (SELECT run_id FROM slurm_run)
  AND NOT (source = ? AND run_id NOT IN (SELECT run_id FROM slurm_allocation))
"""
_INSERT_ALLOCATIONS = """
INSERT INTO allocation BY NAME
SELECT ? AS cluster, a.*, 1 AS share_num, 1 AS share_den FROM slurm_allocation AS a
WHERE run_id IN (SELECT run_id FROM slurm_run) ORDER BY start_at, run_id, node
"""
_DELETE_RUNS = "DELETE FROM job_run WHERE cluster = ? AND run_id IN (SELECT run_id FROM slurm_run)"
_INSERT_RUNS = """
INSERT INTO job_run BY NAME
SELECT $1 AS cluster, run_id, job_id, 1 AS attempt, account, user_name, project, qos, partition,
  submit_at, eligible_at, start_at, end_at, state, state_raw, reason, exit_code, priority, gpus,
  cpus, mem_mib, nodes, suspended_s, limit_s, last_known_at, $2 AS source
FROM slurm_run ORDER BY submit_at, run_id
"""
# A submission that has started is no longer pending, whichever row came first.
_DELETE_OVERTAKEN = """
DELETE FROM job_run USING job_run AS s
WHERE job_run.cluster = $1 AND s.cluster = $1 AND job_run.job_id = s.job_id
  AND job_run.submit_at = s.submit_at AND job_run.start_at IS NULL AND s.start_at IS NOT NULL
  AND s.job_id IN (SELECT job_id FROM slurm_run)
"""
_NUMBER_ATTEMPTS = """
UPDATE job_run SET attempt = n.attempt FROM (
  SELECT run_id, row_number() OVER (
    PARTITION BY job_id ORDER BY submit_at, start_at NULLS LAST, run_id) AS attempt
  FROM job_run WHERE cluster = $1 AND job_id IN (SELECT job_id FROM slurm_run)) AS n
WHERE job_run.cluster = $1 AND job_run.run_id = n.run_id AND job_run.attempt <> n.attempt
"""


@dataclass(frozen=True, slots=True)
class Written:
    """Rows taken in by table, and rows that the store knew better."""

    kept: dict[str, int]
    older: int


def write(work: Work, cluster: str, runs: pa.Table, allocations: pa.Table) -> Written:
    """Take in `run_table` and `allocation_table` inside the caller's transaction."""
    work.execute(_STAGING)
    work.execute(_STAGING_ALLOCATION)
    offered = work.append("slurm_run", runs)
    work.append("slurm_allocation", allocations)
    work.execute(_OLDER, [cluster])
    _write_jobs(work, cluster)
    work.execute(_DELETE_RUNS, [cluster])
    work.execute(_INSERT_RUNS, [cluster, SOURCE])
    work.execute(_DELETE_OVERTAKEN, [cluster])
    work.execute(_NUMBER_ATTEMPTS, [cluster])
    work.execute(_KEEP_EXACT, [EXACT, cluster])
    work.execute(_DELETE_ALLOCATIONS, [cluster, EXACT])
    work.execute(_END_EXACT, [cluster, EXACT])
    work.execute(_INSERT_ALLOCATIONS, [cluster])
    return _counted(work, offered)


def _write_jobs(work: Work, cluster: str) -> None:
    work.execute(_JOBS)
    work.execute(_KEEP_FIRST_SUBMIT, [cluster])
    work.execute(_LATER_KNOWN, [cluster])
    work.execute(_FIRST_SUBMIT, [cluster])
    work.execute(_DELETE_JOBS, [cluster])
    work.execute(_INSERT_JOBS, [cluster, SOURCE])


def _counted(work: Work, offered: int) -> Written:
    runs = int(work.value("SELECT count(*) FROM slurm_run"))
    jobs = int(work.value("SELECT count(DISTINCT job_id) FROM slurm_run"))
    held = work.value(
        "SELECT count(*) FROM slurm_allocation WHERE run_id IN (SELECT run_id FROM slurm_run)"
    )
    kept = {"job_run": runs, "job": jobs, "allocation": int(held)}
    return Written(kept, offered - runs)


def run_table(
    table: pa.Table, gpus: pa.Array, cpus: pa.Array, mem_mib: pa.Array, nodes: pa.Array
) -> pa.Table:
    """The runs of a batch as `write` takes them."""
    same = (
        *("run_id", "job_id", "name", "account", "user_name", "project", "qos", "partition"),
        *("state", "state_raw", "reason", "exit_code", "suspended_s", "limit_s", "array_job_id"),
        *("array_task", "het_job_id", "het_component", "req_nodes", "req_gpus", "req_gpu_model"),
        *("req_cpus", "req_mem_mib", "priority"),
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
