"""What one job held, used, waited for and cost, for its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from analytics.ledger import ensure_built
from analytics.window import Window
from collector.store import Store, Work
from scheduler_advisor.advice.recommendation import money
from scheduler_advisor.advice.site import HELD
from scheduler_advisor.durations import duration_text
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.report.wording import amount_text, hours_text

_RUNS = """
SELECT r.*, j.name, j.req_gpus FROM job_run r
LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE r.job_id = $1 AND ($2::VARCHAR IS NULL OR r.cluster = $2)
ORDER BY r.cluster, r.attempt, r.start_at
"""
_HELD = """
SELECT r.run_id, d.currency, sum(h.used)::BIGINT AS used, sum(h.lost)::BIGINT AS lost,
  sum(h.allocated_idle)::BIGINT AS allocated_idle,
  sum(h.allocated_unmeasured)::BIGINT AS allocated_unmeasured,
  sum(h.failed_held)::BIGINT AS failed_held, sum(h.unattributed)::BIGINT AS unattributed,
  sum((h.used + h.lost + h.allocated_idle + h.allocated_unmeasured + h.failed_held
    + h.unattributed) * d.amount)::DECIMAL(38, 6) AS cost
FROM ledger_hour h JOIN ledger_run r ON r.run_key = h.run_key
LEFT JOIN price d ON d.price_key = h.price_key
WHERE r.cluster = $1 AND r.job_id = $2 GROUP BY r.run_id, d.currency
"""
_PLACES = """
SELECT run_id, node, sum(gpus * share_num / share_den) AS gpus, any_value(gpu_model) AS gpu_model
FROM allocation WHERE cluster = $1 AND list_contains($2::VARCHAR[], run_id)
GROUP BY run_id, node ORDER BY run_id, node
"""
_MARKS = """
SELECT ts, kind FROM event WHERE cluster = $1 AND job_id = $2
AND (starts_with(kind, 'checkpoint') OR starts_with(kind, 'restore')) ORDER BY ts
"""


@dataclass(frozen=True, slots=True)
class JobCard:
    """The card as plain values; `line` is its short form."""

    body: dict[str, Any]

    @property
    def line(self) -> str:
        """One line for an epilog or a terminal."""
        body = self.body
        busy = body["activity_ratio"]
        used = "activity not measured" if busy is None else f"GPUs busy {busy:.0%} of it"
        cost = body["cost"]
        price = "no price" if cost is None else amount_text(Decimal(cost), body["currency"])
        return (
            f"unstrand: job {body['job_id']} held {hours_text(body['held_gpu_hours'])} GPU-hours, "
            f"{used}, waited {duration_text(body['wait_s'])}, {price}"
        )


Account = Callable[[Window, str], object]


def _build(store: Store) -> Account:
    return lambda window, cluster: ensure_built(store, window, cluster=cluster)


def job_card(
    store: Store,
    job_id: str,
    at: datetime,
    cluster: str | None = None,
    account: Account | None = None,
) -> JobCard:
    """The card of a job as of ``at``, its ledger brought up to date first (by ``account``).

    Raises AdvisorError for a job that is not known, or known in several clusters.
    """
    runs = store.rows(_RUNS, [job_id, cluster])
    if not runs:
        raise AdvisorError(
            f"no job {job_id!r}" + (f" in cluster {cluster}" if cluster else "") + " is known: "
            "was its time imported? (unstrand import slurm --live)"
        )
    clusters = sorted({run["cluster"] for run in runs})
    if len(clusters) > 1:
        raise AdvisorError(
            f"job {job_id} is known in {', '.join(clusters)}: name one with --cluster"
        )
    _account(account or _build(store), runs, clusters[0], at)
    with store.work() as work:
        return JobCard(_body(work, runs, clusters[0], at))


def _account(account: Account, runs: list[dict[str, Any]], cluster: str, at: datetime) -> None:
    """Bring the ledger up to date over the job's life."""
    starts = [run["start_at"] for run in runs if run["start_at"] is not None]
    if starts:
        ends = [run["end_at"] or run["last_known_at"] or at for run in runs if run["start_at"]]
        until = max(max(ends), min(starts) + timedelta(hours=1))
        account(Window(min(starts), until), cluster)


def _body(work: Work, runs: list[dict[str, Any]], cluster: str, at: datetime) -> dict[str, Any]:
    first, last = runs[0], runs[-1]
    held = work.rows(_HELD, [cluster, first["job_id"]])
    hours = {name: sum(row[name] for row in held) / 3.6e9 for name in HELD}
    measured = hours["used"] + hours["lost"] + hours["allocated_idle"]
    priced = [row for row in held if row["cost"] is not None]
    cost = sum((row["cost"] for row in priced), Decimal(0)) / 3_600_000_000
    eligible = first["eligible_at"] or first["submit_at"]
    begun = next((run["start_at"] for run in runs if run["start_at"] is not None), None)
    ended = begun or last["end_at"] or at
    ids = [run["run_id"] for run in runs]
    places = work.rows(_PLACES, [cluster, ids])
    return {
        "job_id": first["job_id"], "cluster": cluster, "name": first["name"],
        "user": first["user_name"], "account": first["account"], "queue": first["partition"],
        "state": last["state"], "reason": last["reason"], "gpus": last["gpus"],
        "wait_s": max(0.0, (ended - eligible).total_seconds()), "started": begun is not None,
        "held_gpu_hours": sum(hours.values()),
        **{f"{name}_gpu_hours": value for name, value in hours.items()},
        "activity_ratio": (hours["used"] + hours["lost"]) / measured if measured else None,
        "cost": money(cost) if priced else None,
        "currency": priced[0]["currency"] if priced else None,
        "rows": [_run(run, places) for run in runs],
        "marks": work.rows(_MARKS, [cluster, first["job_id"]]),
        "kind": "observed",
    }  # fmt: skip


def _run(run: dict[str, Any], places: list[dict[str, Any]]) -> dict[str, Any]:
    own = [place for place in places if place["run_id"] == run["run_id"]]
    return {
        "attempt": run["attempt"], "state": run["state"], "eligible": run["eligible_at"],
        "start": run["start_at"], "end": run["end_at"], "reason": run["reason"],
        "nodes": ", ".join(f"{p['node']} ({p['gpus']:g} x {p['gpu_model'] or 'GPU'})" for p in own),
    }  # fmt: skip
