"""A fixed pool that sleeps at night and at the weekend.

Only what is reliably free counts: the GPUs that were free in nine of ten night and weekend hours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.draft import Assumption, Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed
from scheduler_advisor.measurements.quantiles import quantile

RULE = rule(
    "night_idle",
    risk=1,
    effort="medium",
    needs=("scheduler",),
    night_from=Threshold(20, "h", "local hour at which the night begins"),
    night_to=Threshold(6, "h", "local hour at which it ends"),
    off_free_ratio=Threshold(0.5, "ratio", "half the pool: less is the slack that queues need"),
    day_free_ratio=Threshold(0.5, "ratio", "a pool that is free by day too is too big, not asleep"),
    reliable=Threshold(0.9, "ratio", "what was there in nine of ten such hours can be promised"),
    min_gpu_hours=Threshold(168, "GPU-h", "a GPU-week: less pays for nobody's work"),
)

# One row = free and in-service GPU time of one pool of one model in one hour.
_HOURS = """
SELECT cluster, gpu_model, hour, sum(free)::BIGINT AS free,
  sum(used + lost + allocated_idle + allocated_unmeasured + failed_held + unattributed + reserved
    + gang_wait + stranded_cpu + stranded_mem + stranded_shape + stranded_topology
    + policy_blocked + free)::BIGINT AS usable
FROM advice_cell GROUP BY cluster, gpu_model, hour
HAVING sum(unknown) = 0 ORDER BY cluster, gpu_model, hour
"""
_FREE = """
SELECT cluster, node, gpu_model, hour, hour::DATE AS day, price, cash, sum(free)::BIGINT AS free
FROM advice_cell WHERE free > 0 AND cluster = $1 AND gpu_model = $2 GROUP BY ALL ORDER BY ALL
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per cluster and GPU model."""
    rules = RULE.values(site.goals)
    pools: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in site.rows(_HOURS):
        if row["usable"]:
            pools[row["cluster"], row["gpu_model"]].append(row)
    for (cluster, model), rows in pools.items():
        off = [row for row in rows if _off(site, row, rules)]
        day = [row for row in rows if not _off(site, row, rules)]
        if not off or not day:
            continue
        off_free, day_free = _free(off), _free(day)
        if off_free < rules["off_free_ratio"] or day_free > rules["day_free_ratio"]:
            continue
        draft = _draft(site, cluster, model, off, (off_free, day_free), rules)
        if sum(part.micro_gpu_s for part in draft.parts) >= rules["min_gpu_hours"] * 3.6e9:
            yield draft


def _off(site: Site, row: dict[str, Any], rules: dict[str, float]) -> bool:
    local = site.window.local(row["hour"])
    night = local.hour >= rules["night_from"] or local.hour < rules["night_to"]
    return night or local.weekday() >= 5


def _free(rows: list[dict[str, Any]]) -> float:
    return float(sum(row["free"] for row in rows) / sum(row["usable"] for row in rows))


def _draft(
    site: Site,
    cluster: str,
    model: str,
    off: list[dict[str, Any]],
    free: tuple[float, float],
    rules: dict[str, float],
) -> Draft:
    ascending = sorted(row["free"] / 3.6e9 for row in off)
    gpus = int(quantile(ascending, 1 - rules["reliable"]) or 0)
    per_hour = {row["hour"]: min(1.0, gpus * 3.6e9 / row["free"]) for row in off if row["free"]}
    parts = [
        site.part(row, round(row["free"] * per_hour[row["hour"]]),
                  claim=site.free_claim(cluster, row["node"], row["hour"]))
        for row in site.rows(_FREE, [cluster, model]) if row["hour"] in per_hour
    ]  # fmt: skip
    command = site.command("report", "ledger --by gpu_model,class,hour")
    return Draft(
        kind=RULE.kind, cluster=cluster, subject=f"pool {model}", owner=Owner(),
        duty=Duty.PLATFORM,
        params={"gpu_model": model, "gpus": gpus, "off_free": free[0], "day_free": free[1],
                "night_from": int(rules["night_from"]), "night_to": int(rules["night_to"]),
                "time_zone": site.window.time_zone},
        parts=parts,
        figures=(
            observed("off_free", free[0], Unit.RATIO, command),
            observed("day_free", free[1], Unit.RATIO, command),
            observed("reliably_free", gpus, Unit.GPUS, command),
        ),
        samples=len(off),
        assumptions=(Assumption("reliable", f"{rules['reliable']:.0%}", default=True),),
        alternatives=("shift_work", "power_down"),
        commands={"verify": command, "apply": "SuspendTime=1800    # slurm.conf: power idle nodes "
                  "down; and a night QoS with a lower price", "rollback": "SuspendTime=INFINITE"},
    )  # fmt: skip
