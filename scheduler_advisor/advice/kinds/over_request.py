"""Over-requested CPU or memory per GPU that leaves GPUs without what a job would need.

The stranded GPU time and its causers are the ledger's (modelled by its rule); here they are
gathered by the person whose jobs caused them, one finding per resource.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.stranding import caused, node_shapes, stranded_part
from scheduler_advisor.figure import Unit, limit, modelled, observed

RULE = rule(
    "over_request",
    risk=2,
    effort="low",
    needs=("scheduler",),
    min_gpu_hours=Threshold(24, "GPU-h", "a GPU-day: less is not worth changing a script"),
    keep_factor=Threshold(1.2, "x", "room above what was used, for peaks between samples"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per owner and resource, cpu or mem."""
    rules = RULE.values(site.goals)
    groups: dict[tuple[str, str, str | None, str | None], list[dict[str, Any]]] = defaultdict(list)
    for row in caused(site, ("stranded_cpu", "stranded_mem")):
        run = site.run(row["cluster"], row["run_id"])
        if run is not None:
            key = (row["cluster"], row["class"], run.owner.team, run.user_name)
            groups[key].append(row)
    for key, rows in sorted(groups.items(), key=lambda item: str(item[0])):
        if sum(row["micro"] for row in rows) >= rules["min_gpu_hours"] * 3.6e9:
            yield _draft(site, key[1], rows, rules)


def _draft(site: Site, name: str, rows: list[dict[str, Any]], rules: dict[str, float]) -> Draft:
    by_run: dict[str, int] = defaultdict(int)
    for row in rows:
        by_run[row["run_id"]] += row["micro"]
    worst = sorted(by_run, key=lambda run_id: (-by_run[run_id], run_id))
    run = site.run(rows[0]["cluster"], worst[0])
    assert run is not None
    shape = node_shapes(site)[run.cluster, next(r for r in rows if r["run_id"] == worst[0])["node"]]
    cpu = name == "stranded_cpu"
    asked = (run.cpus if cpu else run.mem_mib) or 0
    fair = (shape.cpus if cpu else shape.mem_mib) * run.gpus / shape.gpus
    command = site.command("job", run.job_id)
    jobs = [r.job_id for run_id in worst[:3] if (r := site.run(run.cluster, run_id)) is not None]
    unit = Unit.COUNT if cpu else Unit.MIB
    return Draft(
        kind=RULE.kind, cluster=run.cluster, subject=f"{name} by {run.user_name}",
        owner=run.owner, duty=Duty.OWNER,
        variant="cpu" if cpu else "mem",
        params={"name": run.label, "user": run.user_name or "?",
                "asked": asked if cpu else asked / 1024, "fair": fair if cpu else fair / 1024,
                "gpus": run.gpus, "runs": len(by_run), "keep_factor": rules["keep_factor"],
                "stranded_gpu_hours": sum(by_run.values()) / 3.6e9},
        parts=[stranded_part(site, row) for row in rows],
        figures=(
            observed("asked", asked, unit, command),
            limit("fair_share", fair, unit, f"scontrol show node {rows[0]['node']}"),
            modelled("stranded_gpu_hours", sum(by_run.values()) / 3.6e9, Unit.GPU_HOURS,
                     site.command("report", "stranding")),
        ),
        examples=jobs, samples=len(rows),
        assumptions=(Assumption("demand_profile", "25%", default=True),),
        break_even=modelled("used_share", fair / asked if asked else None, Unit.RATIO),
        commands={
            "apply": f"#SBATCH --cpus-per-gpu={int(fair / run.gpus)}" if cpu
            else f"#SBATCH --mem-per-gpu={int(fair / run.gpus / 1024)}G",
            "verify": site.command("report", "stranding"),
        },
    )  # fmt: skip
