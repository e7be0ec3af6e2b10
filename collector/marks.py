"""Marks: what people and training loops say about a run, kept as events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from collector.errors import ImportRefusedError
from collector.model import Event
from collector.store import Work

JOB_KINDS = ("checkpoint-begin", "checkpoint-end", "restore-begin", "restore-end")
KINDS = (*JOB_KINDS, "policy-change", "note")
LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One mark. ``cluster`` None = the only one that the store knows."""

    kind: str
    ts: datetime
    cluster: str | None = None
    job_id: str | None = None
    run_id: str | None = None
    node: str | None = None
    text: str | None = None


def record_mark(work: Work, mark: Mark) -> Event:
    """Store a mark as an event and return it.

    Raises ImportRefusedError for a kind that is none, a checkpoint or restore without a job, a
    policy change or note without a text, a cluster that is not known or not named.
    """
    _check(mark)
    event = Event(
        cluster=_cluster(work, mark.cluster), ts=mark.ts, kind=mark.kind.replace("-", "_"),
        node=mark.node, job_id=mark.job_id, run_id=mark.run_id, text=mark.text, source="mark",
    )  # fmt: skip
    work.append_facts([event])
    return event


def _check(mark: Mark) -> None:
    if mark.kind not in KINDS:
        raise ImportRefusedError(f"mark {mark.kind!r}: use one of {', '.join(KINDS)}")
    if mark.kind in JOB_KINDS and not (mark.job_id or mark.run_id):
        raise ImportRefusedError(
            f"mark {mark.kind}: of which job? Name it with --job, or run inside of a Slurm job"
        )
    if mark.kind not in JOB_KINDS and not (mark.text or "").strip():
        raise ImportRefusedError(f"mark {mark.kind}: say what (--text)")
    if mark.text is not None and len(mark.text) > LONGEST_TEXT:
        raise ImportRefusedError(
            f"mark {mark.kind}: the text is longer than {LONGEST_TEXT} letters"
        )


def _cluster(work: Work, named: str | None) -> str:
    rows = work.rows("SELECT DISTINCT cluster FROM node ORDER BY cluster")
    known = [str(row["cluster"]) for row in rows]
    if named is not None and named not in known:
        raise ImportRefusedError(
            f"there is no cluster {named!r}; known are: {', '.join(known) or 'none'}"
        )
    if named is None and len(known) != 1:
        raise ImportRefusedError(
            f"of which cluster? Name it with --cluster: {', '.join(known) or 'none is known yet'}"
        )
    return named or known[0]
