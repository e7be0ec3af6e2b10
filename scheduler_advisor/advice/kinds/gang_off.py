"""Gang scheduling that is off: multi-node jobs whose ranks get their GPUs at different times.

The first ranks hold their GPUs and wait for the last one; that time is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "gang_off",
    risk=2,
    effort="medium",
    needs=("scheduler",),
    apart_minutes=Threshold(10, "min", "container images come at different times, not this late"),
    min_runs=Threshold(3, "count", "once can be a node that was slow to boot"),
    min_gpu_hours=Threshold(4, "GPU-h", "half an hour of a whole node"),
)

# One row = one node's part of a multi-node run that began before its last part.
_EARLY = """
WITH part AS (
  SELECT a.cluster, a.run_id, a.node, min(a.start_at) AS start_at
  FROM allocation a SEMI JOIN advice_run r ON r.cluster = a.cluster AND r.run_id = a.run_id
  GROUP BY a.cluster, a.run_id, a.node),
gang AS (
  SELECT cluster, run_id, max(start_at) AS full_at FROM part GROUP BY cluster, run_id
  HAVING count(*) > 1 AND epoch(max(start_at) - min(start_at)) >= $1)
SELECT p.cluster, p.run_id, p.node, p.start_at, g.full_at
FROM part p JOIN gang g ON g.cluster = p.cluster AND g.run_id = p.run_id
WHERE p.start_at < g.full_at ORDER BY p.cluster, p.run_id, p.node
"""


def find(site: Site) -> Iterator[Draft]:
    """At most one finding per cluster."""
    rules = RULE.values(site.goals)
    clusters: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in site.rows(_EARLY, [rules["apart_minutes"] * 60]):
        clusters[row["cluster"]].append(row)
    for cluster, rows in clusters.items():
        runs = sorted({row["run_id"] for row in rows})
        parts = [part for row in rows for part in _waiting(site, row)]
        hours = sum(part.micro_gpu_s for part in parts) / 3.6e9
        if len(runs) < rules["min_runs"] or hours < rules["min_gpu_hours"]:
            continue
        found = [run for run_id in runs if (run := site.run(cluster, run_id)) is not None]
        apart = max((row["full_at"] - row["start_at"]).total_seconds() / 60 for row in rows)
        command = site.command("job", found[0].job_id)
        yield Draft(
            kind=RULE.kind, cluster=cluster, subject="gang scheduling", owner=Owner(),
            duty=Duty.PLATFORM,
            params={"runs": len(runs), "apart_minutes": apart, "name": found[0].label},
            parts=parts,
            figures=(
                observed("runs_apart", len(runs), Unit.COUNT, command),
                observed("longest_apart_h", apart / 60, Unit.HOURS, command),
            ),
            examples=[run.job_id for run in found[:3]], samples=len(rows),
            commands={"apply": "minAvailable: <all ranks>    # PodGroup of Volcano, KAI or the "
                      "coscheduling plugin; Kueue: waitForPodsReady", "verify": command},
        )  # fmt: skip


def _waiting(site: Site, row: dict[str, Any]) -> list[Part]:
    """The held time of one early part until the gang was complete, by hour of the ledger."""
    cells = site.rows(
        "SELECT cluster, run_id, node, gpu_model, hour::DATE AS day, price, cash, "
        "sum((used + lost + allocated_idle + allocated_unmeasured) "
        "* least(1.0, greatest(0.0, epoch(least(cell_until, $5) - cell_since) "
        "/ epoch(cell_until - cell_since))))::BIGINT AS micro "
        "FROM advice_cell WHERE cluster = $1 AND run_id = $2 AND node = $3 "
        "AND cell_until > $4 AND cell_since < $5 GROUP BY ALL ORDER BY ALL",
        [row["cluster"], row["run_id"], row["node"], row["start_at"], row["full_at"]],
    )
    claim = f"run:{row['cluster']}/{row['run_id']}"
    return [site.part(cell, cell["micro"], claim=claim) for cell in cells if cell["micro"]]
