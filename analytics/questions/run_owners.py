"""Whom runs belong to, so that people read a job and a user and not a key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analytics.questions import statement
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOwner:
    """One run's job and people."""

    cluster: str
    run_id: str
    job_id: str
    user_name: str | None
    account: str | None


def run_owners(store: Store, run_ids: Iterable[str], cluster: str | None = None) -> list[RunOwner]:
    """The owners of ``run_ids``; a run that is not known has no row."""
    rows = store.rows(statement("001_run_owner"), [cluster, sorted(set(run_ids))])
    return [RunOwner(**row) for row in rows]
