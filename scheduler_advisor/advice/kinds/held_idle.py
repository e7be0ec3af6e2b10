"""Held and idle now: an open run whose GPUs have not run a kernel for hours.

Break-even: ending it and starting again later costs a start; it pays once the GPUs stay idle for
longer than a restart takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_advisor.advice.draft import Assumption, Draft, Duty, Horizon
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.tails import idle_tails
from scheduler_advisor.figure import Unit, modelled, observed

RULE = rule(
    "held_idle",
    risk=1,
    effort="low",
    needs=("activity",),
    idle_hours=Threshold(
        2, "h", "shorter pauses are people thinking; two hours is what cluster operators warn at"
    ),
    idle_ratio=Threshold(
        0.01, "ratio", "a kernel now and then (a display, a health check) is not work"
    ),
    measured_ratio=Threshold(0.8, "ratio", "with fewer samples the silence may be the collector's"),
    restart_minutes=Threshold(15, "min", "to open a notebook again and load its data"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per open run that is idle now."""
    rules = RULE.values(site.goals)
    tails = idle_tails(
        site, ended=False, min_hours=rules["idle_hours"], idle_ratio=rules["idle_ratio"],
        measured_ratio=rules["measured_ratio"],
    )  # fmt: skip
    for tail in tails:
        run = tail.run
        parts = site.run_parts(run, "allocated_idle", since=tail.since)
        command = site.command("job", run.job_id)
        yield Draft(
            kind=RULE.kind,
            cluster=run.cluster,
            subject=f"run {run.run_id}",
            owner=run.owner,
            duty=Duty.OWNER,
            horizon=Horizon.ONGOING,
            variant="worked" if tail.was_busy else "never",
            params={"name": run.label, "user": run.user_name or "?", "gpus": run.gpus,
                    "gpu_model": run.gpu_model or "GPU", "idle_hours": tail.hours,
                    "restart_minutes": rules["restart_minutes"]},
            parts=parts,
            figures=(
                observed("idle_now_h", tail.hours, Unit.HOURS, command),
                observed("gpus_held", run.gpus, Unit.GPUS, command),
                observed("measured_ratio", tail.measured_ratio, Unit.RATIO, command),
            ),
            examples=(run.job_id,),
            samples=tail.measured_hours,
            coverage_ratio=tail.measured_ratio,
            assumptions=(Assumption("stays_idle", "1", default=True),),
            break_even=modelled("restart_minutes", rules["restart_minutes"] / 60, Unit.HOURS),
            commands={
                "apply": f"scancel {run.job_id}",
                "verify": command,
                "rollback": "",
            },
        )  # fmt: skip
