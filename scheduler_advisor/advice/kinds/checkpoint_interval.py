"""Checkpoints written far too often or far too rarely for the interruptions that were seen.

Waste per run time at interval t: C / t for writing and t / 2M for work done again (Young 1974,
Daly 2006), with C the measured time of a checkpoint and M the mean time between interruptions.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, modelled, observed
from scheduler_advisor.measurements.checkpoints import CheckpointClass

RULE = rule(
    "checkpoint_interval",
    risk=1,
    effort="low",
    needs=("marks",),
    factor=Threshold(2, "x", "the waste is flat around the optimum: half or double costs 25%"),
    min_interruptions=Threshold(3, "count", "fewer say little about the mean between them"),
    min_gpu_hours=Threshold(8, "GPU-h", "an hour of a whole node"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per job class with marks and interruptions."""
    rules = RULE.values(site.goals)
    for found in site.checkpoints:
        optimum = found.optimum_interval_s
        if optimum is None or not found.interval_s:
            continue
        if found.interruptions < rules["min_interruptions"]:
            continue
        ratio = max(found.interval_s / optimum, optimum / found.interval_s)
        saved = _waste(found, found.interval_s) - _waste(found, optimum)
        if ratio >= rules["factor"] and saved * found.gpu_hours >= rules["min_gpu_hours"]:
            yield _draft(site, found, optimum, saved)


def _waste(found: CheckpointClass, interval_s: float) -> float:
    between = found.mean_between_interruptions_s
    assert found.write_s is not None
    assert between is not None
    return min(1.0, found.write_s / interval_s + interval_s / (2 * between))


def _draft(site: Site, found: CheckpointClass, optimum: float, saved: float) -> Draft:
    runs = [run for run in site.runs() if run.run_id in set(found.run_ids)]
    parts = [part.scaled(min(1.0, max(0.0, saved))) for part in site.held_parts(runs)]
    command = site.command("report", "checkpoints")
    between = found.mean_between_interruptions_s or 0.0
    interval, write = found.interval_s or 0.0, found.write_s or 0.0
    return Draft(
        kind=RULE.kind, cluster=runs[0].cluster, subject=f"{found.name} of {found.user_name}",
        owner=runs[0].owner, duty=Duty.OWNER,
        params={"name": found.name or "?", "user": found.user_name or "?",
                "interval_min": interval / 60, "optimum_min": optimum / 60,
                "write_s": write, "between_hours": between / 3600,
                "interruptions": found.interruptions},
        parts=parts,
        figures=(
            observed("checkpoint_interval", interval, Unit.SECONDS, command),
            observed("checkpoint_write", write, Unit.SECONDS, command),
            observed("between_interruptions", between, Unit.SECONDS, command),
            modelled("optimum_interval", optimum, Unit.SECONDS, command),
        ),
        examples=[run.job_id for run in runs[:3]], samples=found.checkpoints,
        assumptions=(Assumption("interruptions_continue", "1", default=True),),
        break_even=modelled("write_limit", interval**2 / (2 * between) if between else None,
                            Unit.SECONDS),
        commands={"verify": command},
    )  # fmt: skip
