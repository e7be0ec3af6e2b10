"""Low efficiency on a costly GPU: a team's runs on one model are active for little of the time.

Hours without any work belong to the idle kinds and are left out here. The saving is what the same
work would not have held at the target efficiency: held x (1 - efficiency / target).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, modelled, observed

RULE = rule(
    "low_efficiency",
    risk=2,
    effort="medium",
    needs=("activity",),
    below_ratio=Threshold(0.4, "ratio", "below the target by more than a fifth of it"),
    target_ratio=Threshold(0.5, "ratio", "what well-fed training jobs reach without tuning"),
    min_gpu_hours=Threshold(50, "GPU-h", "a week of one GPU at a third: enough to measure"),
    min_run_minutes=Threshold(30, "min", "shorter runs are start-up"),
    price_factor=Threshold(
        2, "x", "on the fleet's cheapest GPUs a low share is often the right choice"
    ),
    idle_ratio=Threshold(0.01, "ratio", "hours below belong to the idle kinds"),
)

# One row = one run's measured time on one day, without hours in which nothing ran.
_BUSY = """
WITH hourly AS (
  SELECT c.*, sum(used + lost) OVER w AS u, sum(allocated_idle) OVER w AS i
  FROM advice_cell c SEMI JOIN advice_run r ON r.cluster = c.cluster AND r.run_id = c.run_id
    AND epoch(coalesce(r.end_at, $3) - r.start_at) >= $2
  WINDOW w AS (PARTITION BY cluster, run_id, hour))
SELECT cluster, run_id, node, gpu_model, hour::DATE AS day, price, cash,
  sum(used + lost)::BIGINT AS used, sum(allocated_idle)::BIGINT AS idle
FROM hourly WHERE u > $1 * (u + i)
GROUP BY ALL HAVING sum(used + lost + allocated_idle) > 0
ORDER BY ALL
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per team and GPU model."""
    rules = RULE.values(site.goals)
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    arguments = [rules["idle_ratio"], rules["min_run_minutes"] * 60, site.window.until]
    for row in site.rows(_BUSY, arguments):
        run = site.run(row["cluster"], row["run_id"])
        if run is not None and row["gpu_model"] is not None:
            groups[row["cluster"], run.owner.team or "?", row["gpu_model"]].append(row)
    for (cluster, team, model), rows in sorted(groups.items()):
        used, idle = sum(r["used"] for r in rows), sum(r["idle"] for r in rows)
        efficiency, held_hours = used / (used + idle), (used + idle) / 3.6e9
        if held_hours < rules["min_gpu_hours"] or efficiency >= rules["below_ratio"]:
            continue
        if _costly(site, model, rules["price_factor"]):
            yield _draft(site, cluster, team, model, rows, rules)


def _costly(site: Site, model: str, factor: float) -> bool:
    prices = site.prices()
    own = prices.get(model)
    if own is None or len(prices) < 2:
        return True
    return own >= min(prices.values()) * Decimal(repr(factor))


def _draft(
    site: Site,
    cluster: str,
    team: str,
    model: str,
    rows: list[dict[str, Any]],
    rules: dict[str, float],
) -> Draft:
    used, idle = sum(r["used"] for r in rows), sum(r["idle"] for r in rows)
    efficiency = used / (used + idle)
    won = 1 - efficiency / rules["target_ratio"]
    held = [_part(site, row, row["used"] + row["idle"]) for row in rows]
    by_run: dict[str, int] = defaultdict(int)
    for row in rows:
        by_run[row["run_id"]] += row["idle"]
    worst = sorted(by_run, key=lambda run_id: (-by_run[run_id], run_id))[:3]
    jobs = [run.job_id for run_id in worst if (run := site.run(cluster, run_id)) is not None]
    command = site.command("report", "cost --by team,gpu_model")
    return Draft(
        kind=RULE.kind, cluster=cluster, subject=f"team {team} on {model}",
        owner=Owner(team=team), duty=Duty.TEAM,
        params={"team": team, "gpu_model": model, "efficiency": efficiency,
                "held_gpu_hours": (used + idle) / 3.6e9, "target": rules["target_ratio"],
                "runs": len(by_run)},
        parts=[part.scaled(won) for part in held], current=[_idle(site, r) for r in rows],
        figures=(
            observed("efficiency", efficiency, Unit.RATIO, command),
            observed("held_gpu_hours", (used + idle) / 3.6e9, Unit.GPU_HOURS, command),
        ),
        examples=jobs, samples=len(rows),
        assumptions=(Assumption("target_ratio", f"{rules['target_ratio']:.0%}",
                                RULE.kind not in site.goals.thresholds),),
        break_even=modelled("efficiency_target", rules["target_ratio"], Unit.RATIO),
        alternatives=("input_bound", "smaller_gpu"), commands={"verify": command},
    )  # fmt: skip


def _part(site: Site, row: dict[str, Any], micro: int) -> Part:
    return site.part(row, micro, claim=f"run:{row['cluster']}/{row['run_id']}")


def _idle(site: Site, row: dict[str, Any]) -> Part:
    return _part(site, row, row["idle"])
