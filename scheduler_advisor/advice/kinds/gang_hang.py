"""Gangs that hang: every GPU of a run 100% occupied while power sits at the idle floor.

Ranks that wait in a collective spin, so the occupied time says busy. Power does not lie: a GPU
that only spins draws little more than an idle one. The floor is measured per model from idle GPUs;
where none of a model ever idled, it is a share of what the board may draw by its data sheet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from analytics.gpu_models import ModelNames
from analytics.ledger.boardpower import board_watts
from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "gang_hang",
    risk=2,
    effort="low",
    needs=("power",),
    util_ratio=Threshold(0.95, "ratio", "a spinning rank shows as fully occupied"),
    floor_factor=Threshold(1.5, "x", "spinning draws a little more than idling, training far more"),
    board_ratio=Threshold(0.2, "ratio", "an idle board draws a seventh, its floor_factor a fifth"),
    hours=Threshold(1, "h", "shorter stalls are compilation, a checkpoint, a slow file system"),
)

# One row = the power of a model's idle GPUs, the median; with too few of them it is not known.
_IDLE = """
SELECT d.gpu_model, quantile_cont(s.power_mw, 0.5) FILTER (s.util_ratio = 0) AS power_mw,
  count(*) FILTER (s.util_ratio = 0) >= 12 AS known
FROM sample s JOIN advice_model d ON d.cluster = s.cluster AND d.node = s.node
WHERE s.power_mw IS NOT NULL AND s.ts >= $1 AND s.ts < $2 AND d.gpu_model IS NOT NULL
GROUP BY d.gpu_model ORDER BY d.gpu_model
"""
# One row = one hour of a multi-GPU run in which all its GPUs were occupied and none drew power.
_HUNG = """
WITH floor AS (SELECT unnest($4::VARCHAR[]) AS gpu_model, unnest($5::DOUBLE[]) AS most_mw),
hourly AS (
  SELECT s.cluster, s.run_id, time_bucket(INTERVAL 1 HOUR, s.ts - INTERVAL 1 MICROSECOND) AS hour,
    min(s.util_ratio) AS util,
    max(s.power_mw / f.most_mw) AS power, count(*) AS samples,
    any_value(d.gpu_model) AS gpu_model
  FROM sample s JOIN advice_run r ON r.cluster = s.cluster AND r.run_id = s.run_id AND r.gpus > 1
  JOIN advice_model d ON d.cluster = s.cluster AND d.node = s.node
  JOIN floor f ON f.gpu_model = d.gpu_model
  WHERE s.ts >= $1 AND s.ts < $2 AND s.util_ratio IS NOT NULL AND s.power_mw IS NOT NULL
  GROUP BY ALL)
SELECT cluster, run_id, hour, samples, gpu_model FROM hourly
WHERE util >= $3 AND power <= 1 AND samples >= 4
ORDER BY cluster, run_id, hour
"""
_MODEL = """
CREATE OR REPLACE TEMP TABLE advice_model AS
SELECT cluster, node, any_value(gpu_model) AS gpu_model FROM node WHERE gpus > 0
GROUP BY cluster, node HAVING count(DISTINCT gpu_model) = 1
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per run."""
    rules = RULE.values(site.goals)
    site.work.execute(_MODEL)
    hung: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    most, by_sheet = _most_power(site, rules)
    span = [site.window.since, site.window.until, rules["util_ratio"], [*most], [*most.values()]]
    for row in site.rows(_HUNG, span):
        hung[row["cluster"], row["run_id"]].append(row)
    for key, rows in hung.items():
        run = site.run(*key)
        if run is None or len(rows) < rules["hours"]:
            continue
        hours = {row["hour"] for row in rows}
        parts: list[Part] = []
        for hour in sorted(hours):
            parts += site.run_parts(run, "used", hour, hour.replace(minute=59))
        command = site.command("job", run.job_id)
        yield Draft(
            kind=RULE.kind, cluster=run.cluster, subject=f"run {run.run_id}", owner=run.owner,
            duty=Duty.OWNER,
            params={"name": run.label, "user": run.user_name or "?", "gpus": run.gpus,
                    "hours": len(rows), "since": f"{site.window.local(min(hours)):%Y-%m-%d %H:%M}"},
            parts=parts,
            figures=(observed("hung_hours", len(rows), Unit.HOURS, command),),
            examples=(run.job_id,), samples=sum(row["samples"] for row in rows),
            assumptions=(
                Assumption("board_ratio", f"{rules['board_ratio']:.0%}", default=True)
                if any(row["gpu_model"] in by_sheet for row in rows)
                else Assumption("floor_factor", f"{rules['floor_factor']:g}x", default=True),
            ),
            commands={"apply": f"scancel --signal=ABRT {run.job_id}", "verify": command,
                      "rollback": ""},
        )  # fmt: skip


def _most_power(site: Site, rules: dict[str, float]) -> tuple[dict[str, float], set[str]]:
    """Milliwatts that a GPU of each model draws at most while it only spins, and the models for
    which the data sheet stands for a measure; a model that neither tells is left out."""
    names, boards = ModelNames.load(site.work), board_watts()
    most: dict[str, float] = {}
    by_sheet = set()
    for row in site.rows(_IDLE, [site.window.since, site.window.until]):
        model = row["gpu_model"]
        if row["known"]:
            most[model] = row["power_mw"] * rules["floor_factor"]
            continue
        watts = next((boards[n] for n in names.candidates(model) if n in boards), None)
        if watts is not None:
            most[model] = watts * 1000 * rules["board_ratio"]
            by_sheet.add(model)
    return most, by_sheet
