"""Jobs that fail, are queued again, and fail again.

The first failure is how one learns; every further one in a row, without a success between, is
counted as avoidable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduler_advisor.advice.draft import Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "requeue_loops",
    risk=0,
    effort="low",
    needs=("scheduler",),
    failures=Threshold(3, "count", "twice can be chance, three times in a row is a cause"),
    within_hours=Threshold(24, "h", "failures further apart are different attempts by a person"),
    min_gpu_hours=Threshold(4, "GPU-h", "half an hour of a whole node"),
)
FAILED = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "REQUEUED")


def find(site: Site) -> Iterator[Draft]:
    """One finding per job, or per name and user that was submitted over and over."""
    rules = RULE.values(site.goals)
    groups: dict[tuple[str, str, str | None], list[Run]] = defaultdict(list)
    for run in site.runs():
        if run.start_at is not None and run.ended(site.window.until):
            groups[run.cluster, run.name or f"job {run.job_id}", run.user_name].append(run)
    for runs in groups.values():
        loop = _longest_loop(runs, rules["within_hours"])
        if len(loop) >= rules["failures"]:
            draft = _draft(site, loop)
            if sum(p.micro_gpu_s for p in draft.parts) >= rules["min_gpu_hours"] * 3.6e9:
                yield draft


def _longest_loop(runs: list[Run], within_hours: float) -> list[Run]:
    """The longest row of failures without a success or a long pause between them."""
    best: list[Run] = []
    row: list[Run] = []
    for run in sorted(runs, key=lambda r: (r.start_at is not None and r.start_at, r.run_id)):
        assert run.start_at is not None
        if run.state not in FAILED:
            row = []
            continue
        if row and row[-1].end_at is not None:
            pause = (run.start_at - row[-1].end_at).total_seconds() / 3600
            row = row if pause <= within_hours else []
        row.append(run)
        best = row if len(row) > len(best) else best
    return best


def _draft(site: Site, loop: list[Run]) -> Draft:
    first = loop[0]
    held = {run.run_id: site.run_parts(run, "held") for run in loop}
    command = site.command("job", first.job_id)
    return Draft(
        kind=RULE.kind, cluster=first.cluster, subject=f"job {first.label} of {first.user_name}",
        owner=first.owner, duty=Duty.OWNER,
        params={"name": first.label, "user": first.user_name or "?", "failures": len(loop),
                "gpus": first.gpus, "ending": _ending(loop[-1])},
        parts=[part for run in loop[1:] for part in held[run.run_id]],
        current=[part for parts in held.values() for part in parts],
        figures=(observed("failures_in_a_row", len(loop), Unit.COUNT, command),),
        examples=tuple(dict.fromkeys(run.job_id for run in loop))[:3], samples=len(loop),
        commands={
            "apply": f"scontrol requeuehold {first.job_id}", "verify": command,
            "rollback": f"scontrol release {first.job_id}",
        },
    )  # fmt: skip


def _ending(run: Run) -> str:
    return f"{run.state} ({run.reason})" if run.reason else run.state
