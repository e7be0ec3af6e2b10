"""From the holders that an agent saw to the runs in the store.

An agent knows a Slurm job by its id; the store knows runs of jobs, because ids are requeued. A
holder without a run in the store yet is kept by its own name and tagged again when the scheduler's
facts come in (`retag`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from collector.agent.batch import Batch
from collector.store import Work

SLURM = "slurm:"
# Prolog and epilog run outside of the times that the accounting keeps.
_SLACK = timedelta(seconds=30)
_TAGGED = ("sample", "process_sample", "host_sample")


@dataclass(slots=True)
class Resolved:
    """Runs of the jobs named in some batches: (cluster, job id) -> (start, end, run id), by start.

    The end is None for a run that is not over.
    """

    runs: dict[tuple[str, str], list[tuple[datetime, datetime | None, str]]] = field(
        default_factory=dict
    )

    def of(self, cluster: str, keys: list[str | None], times: list[int]) -> list[str | None]:
        """The run of each holder at each time."""
        known: dict[tuple[str, int], str] = {}
        found: list[str | None] = []
        for key, time in zip(keys, times, strict=True):
            if key is None or not key.startswith(SLURM):
                found.append(key)
                continue
            if (key, time) not in known:
                known[key, time] = self._run(cluster, key, time)
            found.append(known[key, time])
        return found

    def _run(self, cluster: str, key: str, time_us: int) -> str:
        runs = self.runs.get((cluster, key.removeprefix(SLURM)), [])
        ts = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time_us)
        position = bisect_right([start - _SLACK for start, _, _ in runs], ts) - 1
        if position < 0:
            return key
        _, end, run_id = runs[position]
        return key if end is not None and ts > end + _SLACK else run_id


def resolve(work: Work, batches: Iterable[Batch]) -> Resolved:
    """The runs of every Slurm job that the batches name."""
    jobs: dict[str, set[str]] = {}
    for batch in batches:
        named = set(_jobs(batch))
        if named:
            jobs.setdefault(batch.cluster, set()).update(named)
    found = Resolved()
    for cluster, ids in jobs.items():
        marks = ", ".join("?" * len(ids))
        rows = work.rows(
            "SELECT job_id, run_id, start_at, end_at FROM job_run WHERE cluster = ? "
            f"AND job_id IN ({marks}) AND start_at IS NOT NULL ORDER BY start_at",
            [cluster, *sorted(ids)],
        )
        for row in rows:
            run = (row["start_at"], row["end_at"], row["run_id"])
            found.runs.setdefault((cluster, row["job_id"]), []).append(run)
    return found


def _jobs(batch: Batch) -> Iterable[str]:
    for table in _TAGGED:
        for key in batch.tables.get(table, {}).get("run_id", []):
            if isinstance(key, str) and key.startswith(SLURM):
                yield key.removeprefix(SLURM)


def retag(work: Work, cluster: str, since: datetime) -> None:
    """Give samples since then that carry a job's name the run that is known now."""
    for table in _TAGGED:
        work.execute(
            f"UPDATE {table} SET run_id = r.run_id FROM job_run r "
            f"WHERE {table}.cluster = ? AND {table}.ts >= ? "
            f"AND starts_with({table}.run_id, '{SLURM}') "
            f"AND r.cluster = {table}.cluster AND r.job_id = substr({table}.run_id, 7) "
            f"AND {table}.ts >= r.start_at AND (r.end_at IS NULL OR {table}.ts <= r.end_at)",
            [cluster, since],
        )
