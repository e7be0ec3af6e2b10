"""How fast lent GPUs came back: from the store's own history, quota by quota.

A return is a span in which an account holds less than its quota, has a job waiting that its quota
has room for, and others hold more than theirs (or have none). It ends when it holds its quota, or
nothing that fits waits. What it cost others: their runs that were stopped in the span, with the
GPU-time since their last checkpoint; runs without any mark lost at most all of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from collector.store import Work
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.window import Window

STOPPED = ("PREEMPTED", "REQUEUED")

# One row = a quota that held at some time in the window.
_QUOTAS = """
SELECT cluster, name, coalesce(account, name) AS account, gpus,
  greatest(valid_from, $1) AS since, least(coalesce(valid_to, $2), $2) AS until
FROM quota WHERE valid_from < $2 AND coalesce(valid_to, $2) > $1
  AND ($3::VARCHAR IS NULL OR cluster = $3)
ORDER BY cluster, name, valid_from
"""
# One row = a GPU run that waited or held GPUs in the window; an account that is not known is ''.
_RUNS = """
SELECT cluster, run_id, coalesce(account, '') AS account, gpus, state,
  coalesce(eligible_at, submit_at) AS asked_at, start_at, end_at
FROM job_run WHERE gpus > 0 AND ($3::VARCHAR IS NULL OR cluster = $3)
  AND coalesce(eligible_at, submit_at) < $2 AND coalesce(end_at, $2) > $1
ORDER BY cluster, run_id
"""
# One row = the last checkpoint of a run that was stopped.
_SAVED = """
SELECT r.cluster, r.run_id, max(e.ts) AS saved_at
FROM job_run r JOIN event e ON e.cluster = r.cluster AND e.run_id = r.run_id
  AND e.kind = 'checkpoint_end' AND e.ts <= r.end_at
WHERE r.end_at >= $1 AND r.end_at < $2 AND ($3::VARCHAR IS NULL OR r.cluster = $3)
GROUP BY r.cluster, r.run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """One return. `end_at` None: the window ended first. `lost_at_most_gpu_hours`: of runs that
    never marked a checkpoint, beside `lost_gpu_hours` of those that did."""

    cluster: str
    quota: str
    account: str
    gpus: int
    begin_at: datetime
    end_at: datetime | None
    seconds: float
    held_gpus: int
    waiting_gpus: int
    borrowed_gpus: int
    stopped_runs: int
    lost_gpu_hours: float
    lost_at_most_gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """All returns of one quota; seconds are of those that ended."""

    cluster: str
    quota: str
    account: str
    gpus: int
    returns: int
    not_yet: int
    p50_s: float | None
    p95_s: float | None
    max_s: float | None
    stopped_runs: int
    lost_gpu_hours: float
    lost_at_most_gpu_hours: float


@dataclass
class _Account:
    held: int = 0
    waiting: dict[str, int] = field(default_factory=dict)


def returns_of(work: Work, window: Window, cluster: str | None = None) -> list[Return]:
    """Every return in the window, in order of time within each quota."""
    span = [window.since, window.until, cluster]
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in work.rows(_RUNS, span):
        runs[run["cluster"]].append(run)
    saved = {(row["cluster"], row["run_id"]): row["saved_at"] for row in work.rows(_SAVED, span)}
    quotas = work.rows(_QUOTAS, span)
    found: list[Return] = []
    for quota in quotas:
        others = [other for other in quotas if other["cluster"] == quota["cluster"]]
        mine = runs[quota["cluster"]]
        for begin, end, state in _spans(quota, others, mine):
            found.append(_return(quota, begin, end, state, mine, saved))
    return found


def by_quota(found: Sequence[Return]) -> list[Returns]:
    """One row per quota, the slowest first."""
    groups: dict[tuple[str, str, str, int], list[Return]] = defaultdict(list)
    for one in found:
        groups[one.cluster, one.quota, one.account, one.gpus].append(one)
    rows = []
    for (cluster, quota, account, gpus), group in groups.items():
        took = sorted(one.seconds for one in group if one.end_at is not None)
        rows.append(
            Returns(
                cluster=cluster, quota=quota, account=account, gpus=gpus, returns=len(group),
                not_yet=len(group) - len(took), p50_s=quantile(took, 0.5),
                p95_s=quantile(took, 0.95), max_s=took[-1] if took else None,
                stopped_runs=sum(one.stopped_runs for one in group),
                lost_gpu_hours=sum(one.lost_gpu_hours for one in group),
                lost_at_most_gpu_hours=sum(one.lost_at_most_gpu_hours for one in group),
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: (-(row.p95_s or 0.0), row.cluster, row.quota))


def _spans(
    quota: dict[str, Any], quotas: Sequence[dict[str, Any]], runs: Sequence[dict[str, Any]]
) -> Iterator[tuple[datetime, datetime | None, tuple[int, int, int]]]:
    """Begin, end and (held, waiting, borrowed at the begin) of each return."""
    accounts: dict[str, _Account] = defaultdict(_Account)
    begin: datetime | None = None
    state = (0, 0, 0)
    for at, changes in _changes(runs, quota["until"]):
        if at >= quota["until"]:
            break
        for kind, run in changes:
            _apply(accounts[run["account"]], kind, run)
        if at < quota["since"]:
            continue
        now = _owed(quota, quotas, accounts, at)
        if now is not None and begin is None:
            begin, state = at, now
        elif now is None and begin is not None:
            yield begin, at, state
            begin = None
    if begin is not None:
        yield begin, None, state


def _changes(
    runs: Sequence[dict[str, Any]], until: datetime
) -> list[tuple[datetime, list[tuple[str, dict[str, Any]]]]]:
    """What happens at each instant; all of one instant together."""
    at: dict[datetime, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for run in runs:
        at[run["asked_at"]].append(("asks", run))
        if run["start_at"] is not None:
            at[run["start_at"]].append(("starts", run))
        if run["end_at"] is not None:
            at[run["end_at"]].append(("ends", run))
    return sorted(((when, changes) for when, changes in at.items()), key=lambda pair: pair[0])


def _apply(account: _Account, kind: str, run: dict[str, Any]) -> None:
    if kind == "asks":
        account.waiting[run["run_id"]] = run["gpus"]
        return
    account.waiting.pop(run["run_id"], None)
    if kind == "starts":
        account.held += run["gpus"]
    elif run["start_at"] is not None:
        account.held -= run["gpus"]


def _owed(
    quota: dict[str, Any],
    quotas: Sequence[dict[str, Any]],
    accounts: dict[str, _Account],
    at: datetime,
) -> tuple[int, int, int] | None:
    """(held, waiting, borrowed by others) while GPUs are owed; None while they are not."""
    own = accounts[quota["account"]]
    fitting = [gpus for gpus in own.waiting.values() if own.held + gpus <= quota["gpus"]]
    if not fitting:
        return None
    theirs = {one["account"]: one["gpus"] for one in quotas if one["since"] <= at < one["until"]}
    borrowed = sum(
        max(0, account.held - theirs.get(name, 0))
        for name, account in accounts.items()
        if name != quota["account"]
    )
    return (own.held, sum(own.waiting.values()), borrowed) if borrowed else None


def _return(
    quota: dict[str, Any],
    begin: datetime,
    end: datetime | None,
    state: tuple[int, int, int],
    runs: Sequence[dict[str, Any]],
    saved: dict[tuple[str, str], datetime],
) -> Return:
    until = end if end is not None else quota["until"]
    stopped = [
        run
        for run in runs
        if run["account"] != quota["account"]
        and run["state"] in STOPPED
        and run["start_at"] is not None
        and run["end_at"] is not None
        and begin < run["end_at"] <= until
    ]
    lost = at_most = 0.0
    for run in stopped:
        mark = saved.get((run["cluster"], run["run_id"]))
        hours = (run["end_at"] - (mark or run["start_at"])).total_seconds() * run["gpus"] / 3600
        lost += hours if mark else 0.0
        at_most += 0.0 if mark else hours
    return Return(
        cluster=quota["cluster"], quota=quota["name"], account=quota["account"],
        gpus=quota["gpus"], begin_at=begin, end_at=end,
        seconds=(until - begin).total_seconds(), held_gpus=state[0], waiting_gpus=state[1],
        borrowed_gpus=state[2], stopped_runs=len(stopped), lost_gpu_hours=lost,
        lost_at_most_gpu_hours=at_most,
    )  # fmt: skip
