"""A job of whole nodes that waits for days while GPUs stand free in its pool.

Counted: hours in which as many GPUs as it needs were free in all, only not where it needs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.cut_up import HOUR, Pool, pool_hours, read_queues, waited
from scheduler_advisor.advice.draft import Draft, Duty, Keys
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, modelled, observed

RULE = rule(
    "gang_wait",
    risk=2,
    effort="medium",
    needs=("scheduler",),
    wait_hours=Threshold(24, "h", "a day: a night run planned for today does not happen"),
    min_gpus=Threshold(8, "GPUs", "a whole node or more: smaller jobs find a gap by themselves"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per cluster and queue; the owner is the one who waited longest."""
    rules = RULE.values(site.goals)
    read_queues(site)
    queues: dict[tuple[str, str | None], list[tuple[float, Run]]] = defaultdict(list)
    for run in site.runs():
        until = min(run.start_at or run.end_at or site.window.until, site.window.until)
        hours = (until - run.submit_at).total_seconds() / 3600
        limit = rules["wait_hours"]
        if run.attempt != 1 or run.gpus < rules["min_gpus"] or hours < limit:
            continue
        queues[run.cluster, run.queue].append((hours, run))
    for waits in queues.values():
        draft = _draft(site, sorted(waits, key=lambda item: (-item[0], item[1].run_id)))
        if draft is not None:
            yield draft


def _while_waiting(site: Site, pool: Pool, run: Run) -> Pool:
    """The full hours of the run's wait in which something was free."""
    since, until = waited(site, run)
    hour = since.replace(minute=0, second=0, microsecond=0) + HOUR
    found: Pool = {}
    while hour < until - HOUR:
        if hour in pool:
            found[hour] = pool[hour]
        hour += HOUR
    return found


def _most_wanted(site: Site, pool: Pool, waits: list[tuple[float, Run]]) -> dict[datetime, int]:
    """Hours with enough GPUs free for a job that waited, but not where it needs them, and the GPUs
    of the largest such job.

    Two jobs that wait in one hour want the same free GPUs: only the larger one counts.
    """
    most: dict[datetime, int] = {}
    for _, run in waits:
        for hour, free in _while_waiting(site, pool, run).items():
            if free.cut_up_for(run.gpus, run.nodes):
                most[hour] = max(most.get(hour, 0), run.gpus)
    return most


def _draft(site: Site, waits: list[tuple[float, Run]]) -> Draft | None:
    """None where shape kept none waiting: the pool was full, or something else held them back."""
    longest, run = waits[0]
    pool = pool_hours(site, run.cluster, run.queue)
    most = _most_wanted(site, pool, waits)
    if not most:
        return None
    hours = _while_waiting(site, pool, run)
    free = [each.gpus for each in hours.values()]
    parts = [part for hour, gpus in most.items() for part in _need(site, pool[hour].rows, gpus)]
    command = site.command("job", run.job_id)
    goal = next((c for c in site.goals.work_class if c.match.fits(**run.facts())), None)
    figures = [
        observed("waited_h", longest, Unit.HOURS, command),
        observed("gpus_needed", run.gpus, Unit.GPUS, command),
        observed("free_while_waiting", sum(free) / len(free) if free else 0.0, Unit.GPUS,
                 site.command("report", "stranding")),
        observed("jobs_waited", len(waits), Unit.COUNT, site.command("report", "waits")),
        observed("hours_with_enough", len(most), Unit.HOURS, command),
    ]  # fmt: skip
    if goal is not None and goal.waiting_cost_per_hour is not None:
        price = float(goal.waiting_cost_per_hour) * longest
        figures.append(modelled("waiting_cost", price, Unit.MONEY, command))
    return Draft(
        kind=RULE.kind, cluster=run.cluster,
        subject=f"queue {run.queue}",
        owner=run.owner, duty=Duty.PLATFORM,
        variant="started" if run.start_at is not None else "waiting",
        params={"name": run.label, "user": run.user_name or "?", "team": run.owner.team or "?",
                "gpus": run.gpus, "waited_hours": longest,
                "queue": run.queue or Keys(["phrase.no_queue"]),
                "free": sum(free) / len(free) if free else 0.0,
                "enough_hours": len(most), "jobs": len(waits)},
        parts=parts, figures=figures, examples=[each.job_id for _, each in waits[:3]],
        samples=len(hours),
        alternatives=("fragmentation",),
        commands={
            "apply": f"scontrol create reservation reservationname=gang-{run.job_id} "
                     f"users={run.user_name} starttime=now+1days duration=UNLIMITED "
                     f"tres=gres/gpu={run.gpus}",
            "verify": command,
            "rollback": f"scontrol delete reservationname=gang-{run.job_id}",
        },
    )  # fmt: skip


def _need(site: Site, rows: list[dict[str, Any]], gpus: int) -> Iterator[Part]:
    """The job's GPUs for one hour, spread over the free ones."""
    ratio = gpus * MICRO_GPU_S_PER_HOUR / sum(row["micro"] for row in rows)
    for row in rows:
        claim = site.free_claim(row["cluster"], row["node"], row["hour"])
        yield site.part(row, round(row["micro"] * ratio), claim=claim)
