"""Each measurement as a document for the command line and the API: window, rows, remarks.

``rows`` True gives the jobs or runs that the groups were made from, so figures can be followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from analytics.window import Window as LedgerWindow
from collector.store import Store
from scheduler_advisor.measurements.activity import activity_distribution
from scheduler_advisor.measurements.breakers import breakers
from scheduler_advisor.measurements.checkpoints import checkpoint_classes
from scheduler_advisor.measurements.reclaims import by_quota, returns_of
from scheduler_advisor.measurements.repeats import Repeat, RepeatRun, varying_repeats
from scheduler_advisor.measurements.spread import run_spreads
from scheduler_advisor.measurements.team_waits import by_team
from scheduler_advisor.measurements.waits import by_hour, by_queue_and_size, job_waits
from scheduler_advisor.window import Window

Document = dict[str, Any]


def waits_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool, by: str = "queue"
) -> Document:
    """Waits by ``queue`` and size, by ``hour`` of the day or by ``team``; or one row per job."""
    own = _own(window)
    entries: Sequence[Any]
    with store.work() as work:
        found = job_waits(work, own, cluster)
        if rows:
            entries = found
        elif by == "team":
            entries = by_team(work, found)
        else:
            entries = by_hour(found, own.zone) if by == "hour" else by_queue_and_size(found)
    waiting = sum(not wait.started for wait in found)
    remarks = [f"{waiting} jobs had not started by the end of the window; not in p50, p95, max"]
    return _document(window, entries, remarks if waiting else [])


def spread_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool
) -> Document:
    """Runs that sat on more nodes or leaf switches than needed; ``rows``: every multi-GPU run."""
    with store.work() as work:
        found = run_spreads(work, _own(window), cluster)
    shown = [run for run in found if rows or run.spread]
    dark = sum(run.heavy is None for run in found)
    remarks = [f"communication is not measured for {dark} of {len(found)} multi-GPU runs"]
    document = _document(window, shown, remarks if dark else [])
    for row, run in zip(document["rows"], shown, strict=True):
        row["spread"] = run.spread
        row["gpu_hours"] = run.gpu_hours
    return document


def breakers_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool
) -> Document:
    """Broken GPU-hours per node; ``rows``: per small run and node (split: modelled)."""
    with store.work() as work:
        found = breakers(work, _own(window), cluster)
    by_node = [
        {"node": node, "broken_gpu_hours": hours}
        for node, hours in sorted(found.by_node.items(), key=lambda item: (-item[1], item[0]))
    ]
    remarks = [
        f"{found.broken_gpu_hours:,.1f} GPU-hours stood free beside small jobs (observed)",
        f"{found.hurt_gpu_hours:,.1f} of them while a job waited for more GPUs on one node",
    ]
    return _document(window, found.breakers if rows else by_node, remarks)


def checkpoints_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool
) -> Document:
    """Checkpoint interval, writing and restore time per job class; ``rows``: unmarked ones too."""
    with store.work() as work:
        found = checkpoint_classes(work, _own(window), cluster)
    shown = [entry for entry in found if rows or entry.checkpoints or entry.interruptions]
    dark = sum(entry.long_runs_without_marks for entry in found)
    remarks = [f"{dark} runs of 4 hours or more carry no mark: unknown, not zero (unstrand mark)"]
    document = _document(window, shown, remarks if dark else [])
    for row, entry in zip(document["rows"], shown, strict=True):
        del row["run_ids"]
        row["optimum_interval_s"] = entry.optimum_interval_s
    return document


def repeats_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool
) -> Document:
    """Jobs that repeat with very different run times; ``rows``: every run with its nodes."""
    with store.work() as work:
        found = varying_repeats(work, _own(window), cluster)
    shown = [
        entry
        for repeat in found
        for entry in (
            [_repeat_run(repeat, run) for run in repeat.runs] if rows else [_repeat(repeat)]
        )
    ]
    explained = sum(repeat.placement_explains for repeat in found)
    remarks = [f"in {explained} of {len(found)} every slow run sat looser than every fast one"]
    return _document(window, shown, remarks if found else [])


def activity_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool
) -> Document:
    """Held GPU-hours by the activity of their run and hour: the distribution behind the mean."""
    with store.work() as work:
        found = activity_distribution(work, _own(window), cluster)
    shown = [
        {"low_ratio": share.low, "high_ratio": share.high, "gpu_hours": share.gpu_hours}
        for share in found
    ]
    return _document(window, shown, [])


def reclaims_document(
    store: Store, window: LedgerWindow, cluster: str | None, *, rows: bool
) -> Document:
    """How fast lent GPUs came back to whoever has a quota; ``rows``: every return."""
    with store.work() as work:
        found = returns_of(work, _own(window), cluster)
        quotas = work.value("SELECT count(*) FROM quota")
    entries: Sequence[Any] = found if rows else by_quota(found)
    remarks = [] if quotas else ["the store knows no quotas: import them, or nothing can be owed"]
    guessed = sum(one.lost_at_most_gpu_hours for one in found)
    if guessed:
        remarks.append(
            f"{guessed:,.1f} GPU-hours are of stopped runs without a checkpoint mark: at most that"
        )
    return _document(window, entries, remarks)


def _repeat(repeat: Repeat) -> Document:
    names = ("cluster", "name", "user_name", "account", "gpus", "gpu_model")
    return {
        **{name: getattr(repeat, name) for name in names},
        "runs": len(repeat.runs), "fastest_s": repeat.runs[0].run_s, "median_s": repeat.median_s,
        "slowest_s": repeat.runs[-1].run_s, "ratio": repeat.ratio, "slow_runs": len(repeat.slow),
        "placement_explains": repeat.placement_explains,
        "excess_gpu_hours": repeat.excess_gpu_hours,
    }  # fmt: skip


def _repeat_run(repeat: Repeat, run: RepeatRun) -> Document:
    return {
        "cluster": repeat.cluster,
        "name": repeat.name,
        "slow": run in repeat.slow,
        **asdict(run),
    }


DOCUMENTS: dict[str, Callable[..., Document]] = {
    "waits": waits_document, "spread": spread_document, "breakers": breakers_document,
    "checkpoints": checkpoints_document, "repeats": repeats_document, "activity": activity_document,
    "reclaims": reclaims_document,
}  # fmt: skip


def _own(window: LedgerWindow) -> Window:
    return Window(window.since, window.until, window.time_zone)


def _document(window: LedgerWindow, rows: Sequence[Any], remarks: list[str]) -> Document:
    plain = [row if isinstance(row, dict) else asdict(row) for row in rows]
    return {
        "window": window.to_dict(), "kind": "observed",
        "rows": [{k: list(v) if isinstance(v, tuple) else v for k, v in r.items()} for r in plain],
        "remarks": remarks,
    }  # fmt: skip
