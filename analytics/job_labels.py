"""Labels of jobs from outside of the scheduler's accounting: pods as `kubectl` prints them, or a
sheet."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from analytics.audit import note
from analytics.errors import OrgMapError
from analytics.labels import labels_of
from analytics.sheet import read_sheet
from collector.store import Work

_JOBS = """
SELECT DISTINCT job_id FROM job WHERE cluster = ? AND job_id IN
  (SELECT unnest(CAST(? AS VARCHAR[])))"""


def read_labels(text: str, name: str) -> dict[str, str]:
    """Job id -> labels as JSON, from ``kubectl get pods -A -o json`` or a CSV of job_id,labels.

    Raises OrgMapError with file and remedy.
    """
    if text.lstrip().startswith("{"):
        return _pods(text, name)
    rows = read_sheet(text, name, {"job_id", "labels"}, OrgMapError, _row)
    return dict(rows)


def _row(row: dict[str, str]) -> tuple[str, str]:
    found = labels_of(row["labels"])
    if not row["job_id"] or not found:
        raise OrgMapError("a job_id and labels such as team=nlp are needed")
    return row["job_id"], json.dumps(found, sort_keys=True, ensure_ascii=False)


def _pods(text: str, name: str) -> dict[str, str]:
    try:
        items = json.loads(text).get("items")
    except ValueError as error:
        raise OrgMapError(f"{name}: {error}: write it with kubectl get pods -A -o json") from error
    if not isinstance(items, list):
        raise OrgMapError(f"{name}: no list of pods: write it with kubectl get pods -A -o json")
    found = {}
    for pod in items:
        meta: dict[str, Any] = pod.get("metadata") or {}
        if meta.get("labels") and meta.get("name"):
            # As agents name the holder of a pod's GPUs.
            key = f"pod:{meta.get('namespace', 'default')}/{meta['name']}"
            found[key] = json.dumps(meta["labels"], sort_keys=True, ensure_ascii=False)
    return found


def put_labels(
    work: Work, cluster: str, found: dict[str, str], *, at: datetime, actor: str
) -> tuple[int, int]:
    """Put labels on the jobs that the store knows; returns how many, and how many it does not know.

    Labels that a job has are replaced.
    """
    known = [row["job_id"] for row in work.rows(_JOBS, [cluster, list(found)])]
    for job_id in known:
        work.execute(
            "UPDATE job SET labels = ? WHERE cluster = ? AND job_id = ?",
            [found[job_id], cluster, job_id],
        )
    note(work, at, actor, "org.labels", cluster, after=f"labels of {len(known)} jobs")
    return len(known), len(found) - len(known)
