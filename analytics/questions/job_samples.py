"""What was measured on a job's GPUs, device by device, in steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSample:
    """Means of one device over one step that begins at ``ts``; None = not measured."""

    ts: datetime
    node: str
    device: str | None
    gpu_index: int | None
    samples: int
    util_ratio: float | None
    mem_ratio: float | None
    power_w: float | None
    nvlink_tx_bytes_per_s: float | None


def job_samples(store: Store, cluster: str, job_id: str, step_s: int) -> list[JobSample]:
    """The samples of the job's runs in steps of ``step_s`` seconds, by time and device."""
    rows = store.rows(statement("004_job_samples"), [cluster, job_id, step_s])
    return [JobSample(**row) for row in rows]
