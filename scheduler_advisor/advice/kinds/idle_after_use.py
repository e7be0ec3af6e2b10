"""Idle after some use: ended runs that kept their GPUs for hours after the last kernel.

Counted in full idle hours after the last hour with work, so the amount is a lower bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.tails import IdleTail, idle_tails
from scheduler_advisor.figure import Unit, modelled, observed

RULE = rule(
    "idle_after_use",
    risk=1,
    effort="low",
    needs=("activity",),
    idle_hours=Threshold(2, "h", "as for GPUs that are idle now"),
    idle_ratio=Threshold(0.01, "ratio", "a kernel now and then is not work"),
    measured_ratio=Threshold(0.8, "ratio", "with fewer samples the silence may be the collector's"),
    min_gpu_hours=Threshold(
        24, "GPU-h", "a GPU-day a month: less is not worth a person's attention"
    ),
    cull_after_hours=Threshold(2, "h", "the time-out that is proposed, kept out of the saving"),
)


def find(site: Site) -> Iterator[Draft]:
    """One finding per owner whose ended runs had idle tails."""
    rules = RULE.values(site.goals)
    by_owner: dict[tuple[str, str | None, str | None], list[IdleTail]] = defaultdict(list)
    for tail in idle_tails(
        site, ended=True, min_hours=rules["idle_hours"], idle_ratio=rules["idle_ratio"],
        measured_ratio=rules["measured_ratio"],
    ):  # fmt: skip
        by_owner[tail.run.cluster, tail.run.owner.team, tail.run.user_name].append(tail)
    for (cluster, _, user), tails in sorted(by_owner.items(), key=lambda item: str(item[0])):
        draft = _draft(site, cluster, user, tails, rules)
        if sum(part.micro_gpu_s for part in draft.current or ()) >= rules["min_gpu_hours"] * 3.6e9:
            yield draft


def _draft(
    site: Site, cluster: str, user: str | None, tails: list[IdleTail], rules: dict[str, float]
) -> Draft:
    tails.sort(key=lambda tail: -tail.hours * (tail.run.gpus or 0))
    current, parts = [], []
    for tail in tails:
        idle = site.run_parts(tail.run, "allocated_idle", since=tail.since)
        kept = max(0.0, 1 - rules["cull_after_hours"] / tail.hours)
        current += idle
        parts += [part.scaled(kept) for part in idle]
    run = tails[0].run
    command = site.command("job", run.job_id)
    return Draft(
        kind=RULE.kind, cluster=cluster, subject=f"user {user}", owner=run.owner,
        duty=Duty.OWNER,
        params={"user": user or "?", "runs": len(tails), "name": run.label,
                "gpu_model": run.gpu_model or "GPU", "longest_hours": max(t.hours for t in tails),
                "cull_after_hours": rules["cull_after_hours"]},
        parts=parts, current=current,
        figures=(
            observed("runs_with_tail", len(tails), Unit.COUNT, command),
            observed("longest_tail_h", max(t.hours for t in tails), Unit.HOURS, command),
        ),
        examples=tuple(tail.run.job_id for tail in tails[:3]),
        samples=sum(tail.measured_hours for tail in tails),
        assumptions=(Assumption("cull_after_hours", f"{rules['cull_after_hours']:g} h", True),),
        break_even=modelled("cull_after_hours", max(t.hours for t in tails), Unit.HOURS),
        commands={"verify": command},
    )  # fmt: skip
