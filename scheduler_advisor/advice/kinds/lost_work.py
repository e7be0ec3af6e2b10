"""Work that was thrown away when a run was interrupted, where checkpoint marks prove it.

A notice before the interruption that is longer than a checkpoint takes saves all of it, but for the
time that this checkpoint takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed
from scheduler_advisor.measurements.checkpoints import CheckpointClass

RULE = rule(
    "lost_work",
    risk=1,
    effort="low",
    needs=("marks",),
    min_gpu_hours=Threshold(8, "GPU-h", "an hour of a whole node"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per job class that lost work."""
    rows = site.rows(
        "SELECT cluster, run_id, sum(lost)::BIGINT AS lost FROM advice_cell WHERE lost > 0 "
        "GROUP BY cluster, run_id ORDER BY cluster, run_id"
    )
    lost: dict[tuple[str | None, str | None], list[Run]] = defaultdict(list)
    for row in rows:
        run = site.run(row["cluster"], row["run_id"])
        if run is not None:
            lost[run.name, run.user_name].append(run)
    if not lost:
        return
    classes = {(c.name, c.user_name): c for c in site.checkpoints}
    least = RULE.values(site.goals)["min_gpu_hours"] * 3.6e9
    for key, runs in lost.items():
        draft = _draft(site, runs, classes.get(key))
        if sum(part.micro_gpu_s for part in draft.parts) >= least:
            yield draft


def _draft(site: Site, runs: list[Run], marks: CheckpointClass | None) -> Draft:
    run = runs[0]
    write_s = (marks.write_s if marks else None) or 0.0
    lost = [site.run_parts(each, "lost") for each in runs]
    hours = sum(part.micro_gpu_s for own in lost for part in own) / 3.6e9
    parts = [
        part for each, own in zip(runs, lost, strict=True) for part in _won(each, own, write_s)
    ]
    interval_s = (marks.interval_s if marks else None) or 0.0
    grace = max(60, int(write_s * 1.5 + 0.5))
    command = site.command("job", run.job_id)
    return Draft(
        kind=RULE.kind, cluster=run.cluster, subject=f"{run.label} of {run.user_name}",
        owner=run.owner, duty=Duty.PLATFORM,
        params={"name": run.label, "user": run.user_name or "?", "lost_gpu_hours": hours,
                "runs": len(runs), "interval_hours": interval_s / 3600, "write_s": write_s,
                "grace_s": grace},
        parts=parts, current=[part for own in lost for part in own],
        figures=(
            observed("lost_gpu_hours", hours, Unit.GPU_HOURS, command),
            observed("checkpoint_interval", interval_s or None, Unit.SECONDS,
                     site.command("report", "checkpoints")),
            observed("checkpoint_write", write_s or None, Unit.SECONDS,
                     site.command("report", "checkpoints")),
        ),
        examples=[each.job_id for each in runs[:3]], samples=len(runs),
        commands={
            "apply": f"sacctmgr modify qos {run.qos or 'normal'} set GraceTime={grace}",
            "verify": command,
            "rollback": f"sacctmgr modify qos {run.qos or 'normal'} set GraceTime=0",
        },
    )  # fmt: skip


def _won(run: Run, lost: list[Part], write_s: float) -> list[Part]:
    """What one more checkpoint before the stop keeps of the work that was lost."""
    total = sum(part.micro_gpu_s for part in lost)
    kept = 1 - write_s * (run.gpus or 0) * 1e6 / total if total else 0.0
    return [part.scaled(max(0.0, kept)) for part in lost]
