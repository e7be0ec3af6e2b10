"""One job that is fast on some days and slow on others, where its placement tells which.

Runs of one name, person, size and model. Only where each slow run lay over more leaf switches or
nodes than every other run, and often enough that chance would seldom deal it so. The saving is what
the slow runs took beyond the median of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Figure, Unit, modelled, observed
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.repeats import Repeat, RepeatRun, varying_repeats

RULE = rule(
    "uneven_runs",
    risk=1,
    effort="low",
    needs=("scheduler",),
    ratio=Threshold(1.5, "x", "slow over fast, medians: below, the work itself varies as much"),
    min_slow=Threshold(3, "count", "with three and three, chance parts them once in twenty times"),
    min_fast=Threshold(3, "count", "a median of fewer is one of them"),
    min_gpu_hours=Threshold(8, "GPU-h", "a whole node for an hour"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per job, the most wasteful first."""
    rules = RULE.values(site.goals)
    for repeat in varying_repeats(site.work, site.window, site.cluster):
        fast = [run for run in repeat.runs if run not in repeat.slow]
        known = {run.leaves is None for run in repeat.runs}
        if (
            site.run(repeat.cluster, repeat.slow[-1].run_id) is not None
            and repeat.gpus > 1
            and repeat.placement_explains
            and len(known) == 1  # where the switches of some are unknown nothing is compared
            and len(repeat.slow) >= rules["min_slow"]
            and len(fast) >= rules["min_fast"]
            and _median(repeat.slow) >= rules["ratio"] * _median(fast)
        ):
            draft = _draft(site, repeat, fast)
            if sum(part.micro_gpu_s for part in draft.parts) >= rules["min_gpu_hours"] * 3.6e9:
                yield draft


def _median(runs: Any) -> float:
    return quantile(sorted(run.run_s for run in runs), 0.5) or 0.0


def _middle(runs: Any) -> RepeatRun:
    """The run in the middle by time: its placement stands for its side."""
    ordered: list[RepeatRun] = sorted(runs, key=lambda run: (run.run_s, run.run_id))
    return ordered[len(ordered) // 2]


def _draft(site: Site, repeat: Repeat, fast: list[RepeatRun]) -> Draft:
    usual, slow_s = _median(fast), _median(repeat.slow)
    runs = [
        run for each in repeat.slow if (run := site.run(repeat.cluster, each.run_id)) is not None
    ]
    excess = {each.run_id: 1 - usual / each.run_s for each in repeat.slow}
    held = site.held_parts(runs)
    near, far = _middle(fast), _middle(repeat.slow)
    by_switch = max(run.placement[0] for run in fast) < min(run.placement[0] for run in repeat.slow)
    command = site.command("report", "repeats --rows")
    return Draft(
        kind=RULE.kind, cluster=repeat.cluster,
        subject=f"{repeat.name} of {repeat.user_name} on {repeat.gpus} {repeat.gpu_model}",
        owner=runs[0].owner, duty=Duty.OWNER, variant="switches" if by_switch else "nodes",
        params={"name": repeat.name, "user": repeat.user_name or "?", "gpus": repeat.gpus,
                "gpu_model": repeat.gpu_model or "GPU", "slow_runs": len(repeat.slow),
                "fast_runs": len(fast), "slow_hours": slow_s / 3600, "fast_hours": usual / 3600,
                "near_nodes": ", ".join(near.node_names[:8]), "near_leaves": near.leaves or 0,
                "far_nodes": ", ".join(far.node_names[:8]), "far_leaves": far.leaves or 0},
        parts=[part.scaled(excess[part.run_id]) for part in held if part.run_id is not None],
        current=held, figures=_figures(near, far, (usual, slow_s), command),
        examples=[near.job_id, far.job_id], samples=len(repeat.runs),
        assumptions=(Assumption("same_work", "", default=True),),
        break_even=modelled("longest_wait_for_place", (slow_s - usual) / 3600, Unit.HOURS),
        alternatives=("topology_for_all",),
        commands={
            "apply": _request(near, by_switch=by_switch, wait_s=slow_s - usual),
            "verify": command,
            "rollback": "# take the option out of the job script again",
        },
    )  # fmt: skip


def _figures(
    near: RepeatRun, far: RepeatRun, seconds: tuple[float, float], command: str
) -> tuple[Figure, ...]:
    """The two placements side by side."""
    return (
        observed("fast_run", seconds[0] / 3600, Unit.HOURS, command),
        observed("fast_nodes", near.nodes, Unit.COUNT, command),
        observed("fast_switches", near.leaves, Unit.COUNT, command),
        observed("slow_run", seconds[1] / 3600, Unit.HOURS, command),
        observed("slow_nodes", far.nodes, Unit.COUNT, command),
        observed("slow_switches", far.leaves, Unit.COUNT, command),
    )


def _request(near: RepeatRun, *, by_switch: bool, wait_s: float) -> str:
    """What the job asks for to lie as its fast runs did, and no longer than it pays."""
    if not by_switch:
        return f"#SBATCH --nodes={near.nodes}    # Kubernetes: as many pods, each with its GPUs"
    minutes = max(1, int(wait_s // 60))
    wait = f"{minutes // 60:02}:{minutes % 60:02}:00"
    return (
        f"#SBATCH --switches={near.leaves}@{wait}    # needs a topology plugin\n"
        "# Kueue: kueue.x-k8s.io/podset-preferred-topology: <the leaf's level>"
    )
