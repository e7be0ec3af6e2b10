"""Gangs that run half-started: some GPUs of a run never ran a kernel while the others worked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "gang_half",
    risk=1,
    effort="low",
    needs=("activity",),
    hours=Threshold(1, "h", "ranks may start late; an hour is not late any more"),
    busy_ratio=Threshold(0.05, "ratio", "mean activity of the working GPUs"),
    min_gpu_hours=Threshold(4, "GPU-h", "shorter cases are found by their owner"),
)

# One row = one GPU of a multi-GPU run with its mean activity and its time under samples.
_GPUS = """
SELECT s.cluster, s.run_id, s.node, coalesce(s.gpu_uuid, s.gpu_index::VARCHAR) AS gpu,
  avg(s.util_ratio) AS activity, max(s.util_ratio) AS highest, max(s.processes) AS processes,
  sum(s.step_s) / 3600 AS hours, count(*) AS samples
FROM sample s SEMI JOIN advice_run r ON r.cluster = s.cluster AND r.run_id = s.run_id AND r.gpus > 1
WHERE s.util_ratio IS NOT NULL AND s.mig_uuid IS NULL AND s.ts >= $1 AND s.ts < $2
GROUP BY ALL ORDER BY s.cluster, s.run_id, s.node, gpu
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per owner and job name."""
    rules = RULE.values(site.goals)
    runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in site.rows(_GPUS, [site.window.since, site.window.until]):
        runs[row["cluster"], row["run_id"]].append(row)
    groups: dict[tuple[str, str | None, str], list[tuple[Run, int, int]]] = defaultdict(list)
    for key, gpus in runs.items():
        run = site.run(*key)
        silent = [g for g in gpus if g["highest"] == 0 and g["hours"] >= rules["hours"]]
        busy = [g for g in gpus if g["activity"] >= rules["busy_ratio"]]
        if run is not None and silent and busy:
            samples = sum(g["samples"] for g in gpus)
            groups[key[0], run.user_name, run.label].append((run, len(silent), samples))
    for found in groups.values():
        draft = _draft(site, found)
        if sum(part.micro_gpu_s for part in draft.parts) >= rules["min_gpu_hours"] * 3.6e9:
            yield draft


def _draft(site: Site, found: list[tuple[Run, int, int]]) -> Draft:
    run, silent, _ = max(found, key=lambda item: (item[1], item[0].run_id))
    parts: list[Part] = []
    for each, count, _ in found:
        # A silent GPU is idle for all the run held it: its share of what the run held.
        parts += [part.scaled(count / each.gpus) for part in site.run_parts(each, "held")]
    command = site.command("job", run.job_id)
    return Draft(
        kind=RULE.kind, cluster=run.cluster, subject=f"{run.label} of {run.user_name}",
        owner=run.owner, duty=Duty.OWNER,
        params={"name": run.label, "user": run.user_name or "?", "gpus": run.gpus,
                "silent": silent, "runs": len(found)},
        parts=parts, figures=(observed("silent_gpus", silent, Unit.GPUS, command),),
        examples=tuple(item[0].job_id for item in found[:3]),
        samples=sum(item[2] for item in found), commands={"verify": command},
    )  # fmt: skip
