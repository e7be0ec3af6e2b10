"""Rules of order, backfill, preemption and quotas, drawn from a seed for all tests of the parts."""

from __future__ import annotations


def rules_of(draw, timed, placements, backfills):
    """Keys and values of a policy; ``timed``: victims take time to leave."""
    reclaim = str(draw.choice(["none", "loose", "strict"]))
    return {
        "placement": str(draw.choice(placements)),
        "backfill": str(draw.choice(backfills)),
        "backfill.depth": int(draw.choice([0, 0, 1, 3])),
        "backfill.max_limit_s": int(draw.choice([0, 0, 9])),
        "order": str(draw.choice(["fifo", "priority", "sjf-limit", "fair-share", "drf"])),
        "fairshare.entitlement": str(draw.choice(["weight", "guarantee", "two-step"])),
        "fairshare.half_life_s": int(draw.choice([0, 0, 20])),
        "fairshare.period_s": int(draw.choice([1, 7])),
        "preemption": str(draw.choice(["none", "priority", "priority"])),
        "preemption.reach": "queue" if reclaim != "none" else "cluster",
        "preemption.eligible": str(draw.choice(["all", "flagged"])),
        "preemption.victims": str(draw.choice(["lowest-priority", "youngest", "least-lost"])),
        "preemption.mode": str(draw.choice(["requeue", "scratch", "checkpoint"])),
        "preemption.min_run_s": int(draw.choice([0, 0, 3])),
        "preemption.max_per_job": int(draw.choice([0, 0, 1])),
        "preemption.max_per_hour": int(draw.choice([0, 0, 2])),
        "preemption.max_team_gpus_per_hour": int(draw.choice([0, 0, 4])),
        "preemption.grace_s": int(draw.choice([1, 4])) if timed else 0,
        "quota.reclaim": reclaim,
        "quota.reclaim_to": str(draw.choice(["guarantee", "two-step"])),
        "quota.strict": str(draw.random() < 0.2),
    }


def moving_of(draw, timed):
    """What moving a job costs, in half of the policies in which victims take time."""
    if timed and draw.random() < 0.5:
        return {"preemption.gib_per_gpu": 2, "preemption.storage_gib_s": 3}
    return {}


def queue_of(draw, queue, least):
    """One queue with a guarantee of at least ``least``; what it draws stays within 6 more."""
    guarantee = int(draw.integers(least, 7))
    values = {"guarantee": guarantee, "weight": int(draw.integers(0, 3))}
    if draw.random() < 0.3:
        values["maximum"] = guarantee + 4
    if draw.random() < 0.3:
        values["lend"] = int(draw.integers(0, 2))
    return {f"quota.queues.{queue}.{key}": value for key, value in values.items()}
