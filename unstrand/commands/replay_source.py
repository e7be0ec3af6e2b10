"""Whose jobs are replayed, and on which fleet: a file's, or the store's own last weeks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from collector.store import Store
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.readers.fleet import read_fleet
from scheduler_advisor.readers.jobs import JobsRead, Overrun, read_jobs
from scheduler_advisor.readers.store import read_history
from scheduler_advisor.window import parse_duration
from unstrand.commands.source import opened

_KNOWN = """
SELECT cluster, max(until) AS until FROM fact_window WHERE kind = 'scheduler' GROUP BY cluster
ORDER BY cluster
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySource:
    """The options that name a history and a fleet, as given."""

    jobs: Path | None
    kind: str | None
    window: str | None
    fleet: str | None
    overrun: str
    cluster: str | None
    db: Path | None


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """Jobs with what was kept and dropped, the cluster, and its name for the result."""

    read: JobsRead
    cluster: Cluster
    fleet: str


def replay_input(source: ReplaySource, network: Policy | None = None) -> ReplayInput:
    """Read what the options name; ``network``: a policy in which the network matters."""
    if source.window is not None:
        return _from_store(source, source.window, network)
    if source.jobs is None or source.fleet is None:
        raise ReaderError("give --jobs FILE with --fleet SPEC, or --window 4w")
    cluster = read_fleet(source.fleet)
    read = read_jobs(source.jobs, source.kind, Overrun(source.overrun))
    return ReplayInput(read, cluster, source.fleet)


def _from_store(source: ReplaySource, window: str, network: Policy | None) -> ReplayInput:
    length = parse_duration(window)
    with opened(source.db) as store:
        name, until = known_cluster(store, source.cluster)
        history = read_history(store, name, until - length, until, network)
    if source.fleet is None:
        return ReplayInput(history.read, history.cluster, f"store:{name}")
    return ReplayInput(history.read, read_fleet(source.fleet), source.fleet)


def known_cluster(store: Store, wanted: str | None) -> tuple[str, datetime]:
    """The cluster asked for, or the only one, and until when the scheduler's facts are known."""
    known = {row["cluster"]: row["until"] for row in store.rows(_KNOWN)}
    if wanted is None and len(known) == 1:
        wanted = next(iter(known))
    if wanted is None or wanted not in known:
        what = f"no facts of cluster {wanted}" if wanted else "several clusters, or none"
        raise ReaderError(
            f"{store.path} holds {what}; name one with --cluster (known: "
            f"{', '.join(known) or 'none, import facts first'})"
        )
    return wanted, known[wanted]
