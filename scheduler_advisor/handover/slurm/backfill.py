"""Who may start while the head of the queue cannot: SchedulerType and the bf_ parameters."""

from __future__ import annotations

from scheduler_advisor.handover.slurm.conf import minutes_of, partitions_in
from scheduler_advisor.handover.slurm.draft import SlurmDraft

MOST_JOBS, MOST_MINUTES, DAY_MINUTES = 1_000_000, 43_200, 1440
EVERY = ("bf_max_job_test", "bf_job_part_count_reserve", "bf_interval", "bf_window", "bf_continue")


def backfill(draft: SlurmDraft) -> None:
    """SchedulerType and SchedulerParameters."""
    if not draft.take("backfill"):
        return
    kind = draft.text("backfill", "none")
    if kind == "greedy":
        draft.refuse(
            "backfill",
            "Slurm's backfill never delays a job that it has a plan for;"
            " bf_job_part_count_reserve=1 (backfill easy) is the nearest",
        )
        return
    draft.always(
        "backfill.max_limit_s",
        0,
        "Slurm fills gaps with jobs of any length; put short ones"
        " in a partition of higher PriorityTier with MaxTime for a like effect",
    )
    draft.say_verify("scontrol show config | grep -E '^Scheduler(Type|Parameters)'", "sdiag")
    if kind == "none":
        draft.conf.set("SchedulerType", "sched/builtin")
        return
    draft.conf.set("SchedulerType", "sched/backfill")
    switched = "backfill" in draft.change.changed
    if switched:
        _plans(draft, kind)
    _depth(draft, switched)
    interval = draft.number("backfill.interval_s")
    if draft.changes("backfill.interval_s") or (switched and interval):
        draft.parameter("bf_interval", str(max(1, interval)))
    draft.always("backfill.whole_nodes", True, "Slurm's backfill always plans whole nodes")


def _plans(draft: SlurmDraft, kind: str) -> None:
    """How many waiting jobs have a place kept for them, and how far ahead."""
    draft.parameter("bf_job_part_count_reserve", "1" if kind == "easy" else None)
    draft.parameter("bf_continue", "", flag=True)
    if kind == "easy":
        draft.remark("backfill", "places are kept for the first job of each partition")
    else:
        draft.remark(
            "backfill",
            "places are kept for every job that a pass tests, for whole nodes;"
            " plans are made anew in each pass",
        )
    longest = _longest_minutes(draft)
    if longest > DAY_MINUTES:
        draft.parameter("bf_window", str(min(longest, MOST_MINUTES)))
    if kind == "conservative-compress":
        draft.remark("backfill", "Slurm does not compress a plan; a new pass has that effect")


def _depth(draft: SlurmDraft, switched: bool) -> None:
    depth = draft.number("backfill.depth")
    if draft.changes("backfill.depth") or (switched and depth):
        draft.parameter("bf_max_job_test", str(min(depth or MOST_JOBS, MOST_JOBS)))
        if not 0 < depth < MOST_JOBS:
            draft.remark(
                "backfill.depth",
                f"at most {MOST_JOBS:,} jobs a pass; watch the cycle's time in sdiag and lower it"
                " if a pass takes over bf_interval",
            )
    elif switched:
        draft.remark(
            "backfill.depth", "a pass tests 500 jobs unless bf_max_job_test is there and says more"
        )


def _longest_minutes(draft: SlurmDraft) -> int:
    names = {*draft.conf.partitions(), *partitions_in(draft.site.settings)}
    stored = draft.site.settings
    texts = [
        draft.conf.partition(name, "MaxTime") or stored.get(f"partition.{name}.MaxTime", "")
        for name in sorted(names)
    ]
    return max((minutes_of(text) for text in texts), default=0)
