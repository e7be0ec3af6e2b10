"""Quota that is held and not used while others wait. A quota is a count of GPUs, not devices.

Lending wins what others would have taken of it: at every instant the smaller of what is unused and
what the jobs of others ask for that wait then and are no larger; and in no hour more GPUs than
nobody held. Two quotas whose lending the same jobs would have used win it once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.cut_up import HOUR, waited
from scheduler_advisor.advice.draft import Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, limit, observed
from scheduler_advisor.measurements.quantiles import quantile

RULE = rule(
    "quota_unused",
    risk=2,
    effort="medium",
    needs=("quota",),
    unused_ratio=Threshold(0.25, "ratio", "a quarter is the headroom a team plans with"),
    peak_quantile=Threshold(0.95, "ratio", "what is used for five per cent of the time is used"),
    min_waiting_hours=Threshold(24, "h", "unused quota that nobody waits for costs nothing"),
)

# One row = a quota of GPUs that held for the whole window.
_QUOTAS = """
SELECT cluster, name, account, gpu_model, gpus FROM quota
WHERE valid_from <= $1 AND coalesce(valid_to, $2) >= $2 AND ($3::VARCHAR IS NULL OR cluster = $3)
ORDER BY cluster, name
"""
# One row = GPUs that one account held of one model in one hour, on average.
_HELD = """
SELECT c.cluster, r.account, c.gpu_model, c.hour,
  sum(used + lost + allocated_idle + allocated_unmeasured + failed_held)::BIGINT AS held
FROM advice_cell c JOIN advice_run r ON r.cluster = c.cluster AND r.run_id = c.run_id
GROUP BY ALL
"""

# One row = GPU time of one model that nobody held in one hour, while in service.
_FREE = """
SELECT cluster, gpu_model, hour, sum(free + stranded_cpu + stranded_mem + stranded_shape
  + stranded_topology + gang_wait + policy_blocked)::BIGINT AS micro
FROM advice_cell GROUP BY ALL HAVING micro > 0
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per quota."""
    rules = RULE.values(site.goals)
    quotas = site.rows(_QUOTAS, [site.window.since, site.window.until, site.cluster])
    if not quotas:
        return
    held: dict[tuple[str, str | None], dict[datetime, float]] = defaultdict(dict)
    for row in site.rows(_HELD):
        hours = held[row["cluster"], row["account"]]
        hours[row["hour"]] = hours.get(row["hour"], 0.0) + row["held"] / 3.6e9
    free = site.rows(_FREE)
    for quota in quotas:
        used = held.get((quota["cluster"], quota["account"]), {})
        count = round(site.window.duration_s / 3600)
        ascending = sorted([*used.values(), *([0.0] * (count - len(used)))])
        peak = quantile(ascending, rules["peak_quantile"]) or 0.0
        unused = int(quota["gpus"] - peak)
        waits = list(_waits(site, quota))
        others = sum((until - since).total_seconds() for since, until, _ in waits) / 3600
        much = unused > 0 and unused >= rules["unused_ratio"] * quota["gpus"]
        if much and others >= rules["min_waiting_hours"]:
            taken = _taken(waits, unused, _free(site, quota, free))
            if taken:
                yield _draft(site, quota, (peak, unused, others), taken)


def _waits(site: Site, quota: dict[str, Any]) -> Iterator[tuple[datetime, datetime, int]]:
    """When jobs of other accounts waited in the window, and for how many GPUs; not those that
    got GPUs of another model than the quota's."""
    model = quota["gpu_model"]
    for run in site.runs():
        if run.cluster != quota["cluster"] or run.account == quota["account"]:
            continue
        since, until = waited(site, run)
        if since < until and (None in (model, run.gpu_model) or run.gpu_model == model):
            yield since, until, run.gpus


def _free(site: Site, quota: dict[str, Any], rows: list[dict[str, Any]]) -> dict[datetime, float]:
    """GPU-hours of the quota's model that nobody held, by hour; every hour of the window."""
    free = dict.fromkeys(_hours(site), 0.0)
    for row in rows:
        if row["cluster"] == quota["cluster"] and quota["gpu_model"] in (None, row["gpu_model"]):
            free[row["hour"]] += row["micro"] / MICRO_GPU_S_PER_HOUR
    return free


def _hours(site: Site) -> Iterator[datetime]:
    hour = site.window.since.replace(minute=0, second=0, microsecond=0)
    while hour < site.window.until:
        yield hour
        hour += HOUR


def _taken(
    waits: list[tuple[datetime, datetime, int]], unused: int, free: dict[datetime, float]
) -> dict[date, float]:
    """GPU-hours of ``unused`` GPUs that those who waited would have taken, by day."""
    changes: dict[datetime, int] = dict.fromkeys(free, 0)  # a piece ends with its hour
    for since, until, gpus in waits:
        if gpus <= unused:
            changes[since] = changes.get(since, 0) + gpus
            changes[until] = changes.get(until, 0) - gpus
    by_hour: dict[datetime, float] = defaultdict(float)
    asked = 0
    for since, until in pairwise(sorted(changes)):
        asked += changes[since]
        hour = since.replace(minute=0, second=0, microsecond=0)
        by_hour[hour] += min(asked, unused) * (until - since).total_seconds() / 3600
    taken: dict[date, float] = defaultdict(float)
    for hour, hours in by_hour.items():
        taken[hour.date()] += min(hours, free[hour])
    return {day: hours for day, hours in taken.items() if hours}


def _draft(
    site: Site, quota: dict[str, Any], found: tuple[float, int, float], taken: dict[date, float]
) -> Draft:
    peak, unused, hours = found
    price = site.prices().get(quota["gpu_model"] or "")
    parts = []
    for day, won in sorted(taken.items()):
        micro = round(won * MICRO_GPU_S_PER_HOUR)
        parts.append(
            Part(claim=f"quota:{quota['cluster']}/{quota['gpu_model']}", day=day,
                 micro_gpu_s=micro,
                 cost=None if price is None else price * micro / MICRO_GPU_S_PER_HOUR,
                 cluster=quota["cluster"], gpu_model=quota["gpu_model"])
        )  # fmt: skip
    command = site.command("report", "cost --by account,gpu_model")
    team = site.team_of(quota["cluster"], [quota["account"]] if quota["account"] else None)
    return Draft(
        kind=RULE.kind, cluster=quota["cluster"], subject=f"quota {quota['name']}",
        owner=Owner(team=team), duty=Duty.PLATFORM,
        params={"name": quota["name"], "team": team or "-", "gpus": quota["gpus"], "peak": peak,
                "unused": unused, "waited_hours": hours},
        parts=parts,
        figures=(
            limit("quota_gpus", quota["gpus"], Unit.GPUS, command),
            observed("peak_gpus", peak, Unit.GPUS, command),
            observed("others_waited", hours, Unit.HOURS, site.command("report", "waits")),
        ),
        samples=round(site.window.duration_s / 3600),
        alternatives=("borrowing",), commands={"verify": command},
    )  # fmt: skip
