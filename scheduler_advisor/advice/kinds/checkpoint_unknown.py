"""Long runs that were interrupted and of which nobody knows what they kept.

Nothing is claimed as lost: the bound is said, and that a mark would settle it.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_advisor.advice.draft import Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, limit, observed

RULE = rule(
    "checkpoint_unknown",
    risk=0,
    effort="low",
    needs=("scheduler",),
    min_gpu_hours=Threshold(100, "GPU-h", "that may be lost: half a node for a day"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per interrupted job class without a mark."""
    least = RULE.values(site.goals)["min_gpu_hours"]
    for found in site.checkpoints:
        if found.checkpoints or not found.interruptions or found.lost_gpu_hours_bound < least:
            continue
        run = next(run for run in site.runs() if run.run_id in set(found.run_ids))
        command = site.command("report", "checkpoints")
        yield Draft(
            kind=RULE.kind, cluster=run.cluster, subject=f"{found.name} of {found.user_name}",
            owner=run.owner, duty=Duty.OWNER,
            params={"name": found.name or "?", "user": found.user_name or "?",
                    "interruptions": found.interruptions,
                    "bound_gpu_hours": found.lost_gpu_hours_bound},
            parts=(),
            figures=(
                observed("interruptions", found.interruptions, Unit.COUNT, command),
                limit("possibly_lost", found.lost_gpu_hours_bound, Unit.GPU_HOURS, command),
            ),
            examples=(run.job_id,), samples=found.runs,
            commands={"apply": "from unstrand.marks import checkpoint\n"
                               "with checkpoint(): save(model)    # or unstrand mark",
                      "verify": command},
        )  # fmt: skip
