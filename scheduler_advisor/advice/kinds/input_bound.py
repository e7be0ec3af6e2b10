"""GPUs that wait for the CPU or for storage: kernels run rarely while the host is saturated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, modelled, observed

RULE = rule(
    "input_bound",
    risk=1,
    effort="medium",
    needs=("host",),
    cpu_ratio=Threshold(0.9, "ratio", "of the job's own CPUs: the rest is scheduling noise"),
    io_pressure=Threshold(0.2, "ratio", "a fifth of the time stalled on storage halves a pipeline"),
    below_ratio=Threshold(0.5, "ratio", "a GPU that is busier than half is not starved"),
    target_ratio=Threshold(0.5, "ratio", "what well-fed training jobs reach without tuning"),
    min_gpu_hours=Threshold(50, "GPU-h", "enough to measure"),
    min_samples=Threshold(12, "count", "an hour of five-minute samples"),
)

# One row = one run's own CPUs and storage stalls, from its cgroup.
_HOST = """
SELECT s.cluster, s.run_id, avg(s.cpu_used / nullif(s.cpus, 0)) AS cpu_ratio,
  avg(s.io_pressure_ratio) AS io_ratio, count(*) AS samples
FROM host_sample s SEMI JOIN advice_run r ON r.cluster = s.cluster AND r.run_id = s.run_id
WHERE s.run_id IS NOT NULL AND s.ts >= $1 AND s.ts < $2
GROUP BY s.cluster, s.run_id ORDER BY s.cluster, s.run_id
"""
_HELD = """
SELECT cluster, run_id, node, gpu_model, hour::DATE AS day, price, cash,
  sum(used + lost)::BIGINT AS used, sum(allocated_idle)::BIGINT AS idle
FROM advice_cell WHERE run_id IS NOT NULL AND used + lost + allocated_idle > 0
GROUP BY ALL ORDER BY ALL
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per team and bottleneck, cpu or io."""
    rules = RULE.values(site.goals)
    host = {
        (row["cluster"], row["run_id"]): row
        for row in site.rows(_HOST, [site.window.since, site.window.until])
        if row["samples"] >= rules["min_samples"]
    }
    cells: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in site.rows(_HELD):
        if (row["cluster"], row["run_id"]) in host:
            cells[row["cluster"], row["run_id"]].append(row)
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key, rows in cells.items():
        bound = _bound(host[key], rules)
        run = site.run(*key)
        if bound and run is not None and _activity(rows) < rules["below_ratio"]:
            groups[key[0], run.owner.team or "?", bound].append(key[1])
    for (cluster, team, bound), run_ids in sorted(groups.items()):
        rows = [row for run_id in run_ids for row in cells[cluster, run_id]]
        if sum(r["used"] + r["idle"] for r in rows) >= rules["min_gpu_hours"] * 3.6e9:
            yield _draft(site, team, bound, rows, [host[cluster, i] for i in run_ids], rules)


def _activity(rows: list[dict[str, Any]]) -> float:
    used = sum(row["used"] for row in rows)
    return float(used / (used + sum(row["idle"] for row in rows)))


def _bound(host: dict[str, Any], rules: dict[str, float]) -> str | None:
    if host["io_ratio"] is not None and host["io_ratio"] >= rules["io_pressure"]:
        return "io"
    if host["cpu_ratio"] is not None and host["cpu_ratio"] >= rules["cpu_ratio"]:
        return "cpu"
    return None


def _draft(
    site: Site,
    team: str,
    bound: str,
    rows: list[dict[str, Any]],
    host: list[dict[str, Any]],
    rules: dict[str, float],
) -> Draft:
    activity = _activity(rows)
    won = max(0.0, 1 - activity / rules["target_ratio"])
    column = "cpu_ratio" if bound == "cpu" else "io_ratio"
    level = sum(h[column] * h["samples"] for h in host) / sum(h["samples"] for h in host)
    runs = sorted({row["run_id"] for row in rows})
    held: list[Part] = [
        site.part(r, r["used"] + r["idle"], claim=f"run:{r['cluster']}/{r['run_id']}") for r in rows
    ]
    idle = [site.part(r, r["idle"], claim=f"run:{r['cluster']}/{r['run_id']}") for r in rows]
    sample = [run for i in runs if (run := site.run(rows[0]["cluster"], i)) is not None]
    command = site.command("report", "cost --by team,gpu_model")
    return Draft(
        kind=RULE.kind, cluster=rows[0]["cluster"], subject=f"team {team} waits for {bound}",
        owner=sample[0].owner.of_team(), duty=Duty.TEAM,
        variant=bound,
        params={"team": team, "level": level, "efficiency": activity,
                "runs": len(runs), "target": rules["target_ratio"],
                "gpu_model": rows[0]["gpu_model"] or "GPU"},
        parts=[part.scaled(won) for part in held], current=idle,
        figures=(
            observed("efficiency", activity, Unit.RATIO, command),
            observed(f"host_{bound}", level, Unit.RATIO, command),
        ),
        examples=[run.job_id for run in sample[:3]], samples=sum(h["samples"] for h in host),
        assumptions=(Assumption("target_ratio", f"{rules['target_ratio']:.0%}", default=True),),
        break_even=modelled("efficiency_target", rules["target_ratio"], Unit.RATIO),
        alternatives=("low_efficiency",), commands={"verify": command},
    )  # fmt: skip
