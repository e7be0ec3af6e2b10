"""Write the ledger of whole hours; running it again gives the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pyarrow as pa

from analytics.errors import LedgerError
from analytics.ledger.burst import without_collector
from analytics.ledger.byholder import add_up_by_holder
from analytics.ledger.classes import RULES_VERSION
from analytics.ledger.closing import is_closed, post_corrections, set_aside
from analytics.ledger.compute import Computed, compute
from analytics.ledger.evidence import seen_before
from analytics.ledger.freshness import (
    fact_digests,
    recorded_hashes,
    sample_counts,
    samples_in,
    stale_hours,
)
from analytics.ledger.held import Conflict
from analytics.window import HOUR_US, Window, from_us, to_us
from collector.store import Store, Work

_HOUR = timedelta(hours=1)
_IN_WINDOW = (
    "hour >= ? AND hour < ? AND pool_key IN (SELECT pool_key FROM ledger_pool WHERE cluster = ?)"
)


def build(store: Store, cluster: str, window: Window) -> int:
    """Build or rebuild the whole hours that ``window`` touches, a day at a time; returns the rows
    written.

    Each day is one transaction. Raises LedgerError for a cluster without inventory.
    """
    rows = 0
    for since, until in _days(window):
        with store.one_thread(), store.work() as work:
            if not work.value("SELECT count(*) FROM node WHERE cluster = ?", [cluster]):
                raise LedgerError(
                    f"cluster {cluster}: no nodes are known; import its inventory first"
                )
            with work.transaction(), without_collector():
                rows += _build_day(work, cluster, since, until)
    return rows


def _build_day(work: Work, cluster: str, since: datetime, until: datetime) -> int:
    """Hours of one day; what differs from a closed day becomes correction rows."""
    closed = is_closed(work, cluster, since.date())
    if closed:
        set_aside(work, cluster, (since, until))
    digests = fact_digests(work, cluster, since, until)
    # Under new rules as well: what was measured then is known from the roll-up only.
    recorded = recorded_hashes(work, cluster, since, until, any_rules=True)
    kept = _dropped(work, cluster, recorded)
    gone = {hour for hour in kept if hour in digests}
    computed = compute(
        work, cluster, to_us(since), to_us(until), gone=[to_us(hour) for hour in gone]
    )
    counts = computed.samples
    if counts is None:
        counts = sample_counts(work, cluster, since, until)
    hashes = {
        hour: f"{digest}:{kept.get(hour, counts.get(hour, 0))}" for hour, digest in digests.items()
    }
    computed.evidence = seen_before(work, computed.evidence, cluster, gone)
    _write(work, cluster, (since, until), computed, hashes)
    if not gone:
        _write_activity(work, cluster, (since, until), computed)
    rows = int(computed.rows.num_rows)
    if closed:
        rows = post_corrections(work, cluster, (since, until))
    add_up_by_holder(work, cluster, (since, until))
    return rows


def _dropped(work: Work, cluster: str, recorded: dict[datetime, str]) -> dict[datetime, int]:
    """The hours that were built from more samples than there are now, and from how many."""
    built = {hour: samples_in(text) for hour, text in recorded.items() if samples_in(text)}
    if not built:
        return {}
    now = sample_counts(work, cluster, min(built), max(built) + _HOUR)
    return {hour: count for hour, count in built.items() if now.get(hour, 0) < count}


def _write_activity(
    work: Work, cluster: str, span: tuple[datetime, datetime], computed: Computed
) -> None:
    work.execute(f"DELETE FROM activity_hour WHERE {_IN_WINDOW}", [*span, cluster])  # noqa: S608 - our own names
    work.append("activity_hour", computed.activity)
    work.execute(
        "DELETE FROM idle_memory_hour WHERE hour >= ? AND hour < ? AND cluster = ?",
        [*span, cluster],
    )
    work.append("idle_memory_hour", computed.idle_memory)


def _days(window: Window) -> Iterator[tuple[datetime, datetime]]:
    """Whole hours of the window in pieces that do not cross midnight UTC."""
    since = window.since.replace(minute=0, second=0, microsecond=0)
    end = from_us(-(-window.until_us // HOUR_US) * HOUR_US)
    while since < end:
        midnight = since.replace(hour=0) + timedelta(days=1)
        yield since, min(midnight, end)
        since = min(midnight, end)


def _months(window: Window) -> Iterator[tuple[datetime, datetime]]:
    """Whole hours of the window, at most 31 days at a time."""
    days = list(_days(window))
    for first in range(0, len(days), 31):
        part = days[first : first + 31]
        yield part[0][0], part[-1][1]


def _write(
    work: Work,
    cluster: str,
    span: tuple[datetime, datetime],
    computed: Computed,
    hashes: dict[datetime, str],
) -> None:
    for table in ("ledger_hour", "ledger_cause"):
        work.execute(f"DELETE FROM {table} WHERE {_IN_WINDOW}", [*span, cluster])  # noqa: S608 - our own names
    for table in ("ledger_conflict", "ledger_build", "ledger_evidence", "fragmentation_hour"):
        work.execute(
            f"DELETE FROM {table} WHERE hour >= ? AND hour < ? AND cluster = ?",  # noqa: S608 - our own names
            [*span, cluster],
        )
    work.append("ledger_hour", computed.rows)
    work.append("ledger_cause", computed.causes)
    work.append("ledger_conflict", _conflicts(cluster, computed.conflicts))
    work.append("ledger_evidence", computed.evidence)
    _write_fragments(work, computed)
    _write_profiles(work, cluster, computed)
    hours = sorted(hashes)
    by_day = {profile.day: profile.profile_hash for profile in computed.profiles}
    counts = computed.rows.group_by("hour").aggregate([("since", "count")]).to_pydict()
    rows = dict(zip(counts["hour"], counts["since_count"], strict=True))
    work.append(
        "ledger_build",
        {
            "cluster": [cluster] * len(hours),
            "hour": hours,
            "facts_hash": [hashes[hour] for hour in hours],
            "profile_hash": [by_day[hour.replace(hour=0)] for hour in hours],
            "rules_version": [RULES_VERSION] * len(hours),
            "activity_metric": [computed.settings.activity_metric] * len(hours),
            "installed_us": [computed.installed_us.get(to_us(hour), 0) for hour in hours],
            "rows": [rows.get(hour.replace(tzinfo=None), 0) for hour in hours],
        },
    )


def _write_fragments(work: Work, computed: Computed) -> None:
    work.append("fragmentation_hour", computed.fragments.hours)
    tasks = computed.fragments.tasks
    for version in set(tasks.column("distribution").to_pylist()):
        work.execute("DELETE FROM task_distribution WHERE distribution = ?", [version])
    work.append("task_distribution", tasks)


def _write_profiles(work: Work, cluster: str, computed: Computed) -> None:
    for profile in computed.profiles:
        work.execute(
            "DELETE FROM demand_profile WHERE cluster = ? AND day = ?", [cluster, profile.day]
        )
    names = ("", "low_", "high_")
    kinds = [(p.middle, p.low, p.high) for p in computed.profiles]
    columns: dict[str, object] = {
        "profile_hash": [p.profile_hash for p in computed.profiles],
        "cluster": [cluster] * len(kinds),
        "day": [p.day.date() for p in computed.profiles],
        "jobs": [p.jobs for p in computed.profiles],
        "quantile": [p.quantile for p in computed.profiles],
    }
    for nth, name in enumerate(names):
        columns[f"{name}cpu_milli_per_gpu"] = pa.array(
            [k[nth].cpu_milli for k in kinds], pa.int64()
        )
        columns[f"{name}mem_mib_per_gpu"] = pa.array([k[nth].mem_mib for k in kinds], pa.int64())
    work.append("demand_profile", columns)


def _conflicts(cluster: str, conflicts: list[Conflict]) -> pa.Table:
    """Cut at hours, so that rebuilding an hour replaces its own."""
    cut = [
        (c, max(c.t0, hour), min(c.t1, hour + HOUR_US), hour)
        for c in conflicts
        for hour in range(c.t0 // HOUR_US * HOUR_US, c.t1, HOUR_US)
    ]
    time, text = pa.timestamp("us"), pa.string()
    return pa.table(
        {
            "cluster": pa.array([cluster] * len(cut), text),
            "hour": pa.array([hour for *_, hour in cut], time),
            "since": pa.array([t0 for _, t0, _, _ in cut], time),
            "until": pa.array([t1 for _, _, t1, _ in cut], time),
            "node": pa.array([c.node for c, *_ in cut], text),
            "gpu_uuid": pa.array([c.gpu for c, *_ in cut], text),
            "run_id": pa.array([c.run_id for c, *_ in cut], text),
            "kind": pa.array([c.kind for c, *_ in cut], text),
            "rule": pa.array([c.rule for c, *_ in cut], text),
            "gpu_us": pa.array(
                [c.gpu_us * (t1 - t0) // (c.t1 - c.t0) for c, t0, t1, _ in cut], pa.int64()
            ),
            "text": pa.array([c.text for c, *_ in cut], text),
        }
    )


def ensure_built(store: Store, window: Window, *, cluster: str | None = None) -> int:
    """Build the hours of ``window`` that are missing or older than their facts; returns how
    many."""
    built = 0
    for name in clusters(store, cluster):
        for stale in _stale(store, name, window):
            build(store, name, stale)
            built += (stale.until - stale.since) // _HOUR
    return built


def clusters(store: Store, cluster: str | None = None) -> list[str]:
    """The clusters with an inventory, or the one asked for."""
    if cluster is not None:
        return [cluster]
    return [row["cluster"] for row in store.rows("SELECT DISTINCT cluster FROM node ORDER BY ALL")]


def _stale(store: Store, cluster: str, window: Window) -> list[Window]:
    """Runs of neighbouring hours that must be built."""
    found: list[Window] = []
    with store.work() as work:
        for since, until in _months(window):
            for hour in stale_hours(work, cluster, since, until):
                if found and found[-1].until == hour:
                    found[-1] = Window(found[-1].since, hour + _HOUR)
                else:
                    found.append(Window(hour, hour + _HOUR))
    return found
