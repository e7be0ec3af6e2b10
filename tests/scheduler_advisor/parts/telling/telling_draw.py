"""Worlds for the telling, drawn from a seed, and what a proof counts of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from telling_policy import moving_of, queue_of, rules_of

from scheduler_advisor.engine import (
    Cluster,
    Jobs,
    Limit,
    Outage,
    OutageKind,
    Policy,
    Reservation,
    Scope,
)
from scheduler_advisor.engine.jobs import Named

SOON = 3580  # so that a clock hour turns while jobs run


def cluster_of(draw, timed):
    nodes = int(draw.integers(1, 7))
    away = [
        Outage(
            f"n{int(draw.integers(nodes)):05d}",
            SOON + int(at),
            SOON + int(at + draw.integers(1, 30)),
            OutageKind.FAIL if draw.random() < 0.5 else OutageKind.DRAIN,
        )
        for at in draw.integers(0, 60, 0 if timed else int(draw.integers(0, 3)))
    ]
    limits = [Limit(Scope(str(draw.choice(list(Scope)))), max_gpus=int(draw.choice([4, 8])))]
    return Cluster.build(
        gpus=draw.choice([2, 4, 4], nodes).tolist(),
        cpu_milli=draw.choice([4, 100], nodes).tolist(),
        outages=tuple(away),
        limits=tuple(limits if draw.random() < 0.2 else ()),
        reservations=reservations(draw, nodes),
        headroom_gpus=int(draw.choice([0, 0, 0, 1])),
    )


def reservations(draw, nodes):
    """None, or one of some nodes for a while."""
    if draw.random() < 0.7:
        return ()
    since = SOON + int(draw.integers(0, 40))
    kept = sorted({f"n{int(one):05d}" for one in draw.integers(0, nodes, 2)})
    return (Reservation("kept", tuple(kept), since, since + int(draw.integers(5, 60))),)


def workload(draw, elastic):
    count = int(draw.integers(2, 16))
    run = draw.integers(1, 25, count)
    gpus = draw.choice([1, 2, 3, 4, 5, 6, 8, 12], count)
    tasks = np.maximum(gpus // 4, 1)
    bends = (draw.random(count) < (0.6 if elastic else 0)) & (gpus % tasks == 0)
    bends &= gpus // tasks <= 4
    parents = [(count - 1, 0)] if draw.random() < 0.3 else []
    return Jobs.build(
        submit=SOON + draw.integers(0, 30, count),
        run=run,
        limit=run + draw.choice([0, 0, 5, 12], count),
        gpus=gpus,
        tasks=np.where(bends, tasks, 0),
        gpus_per_task=np.where(bends, gpus // tasks, 0),
        min_tasks=np.where(bends, np.maximum(tasks - 2, 1), 0),
        max_tasks=np.where(bends, tasks + 2, 0),
        cpu_milli=draw.choice([0, 0, 1, 2], count),
        distinct_nodes=draw.choice([0, 0, 0, 1], count),
        priority=draw.integers(0, 3, count),
        preemptible=draw.choice([0, 1, 1], count),
        checkpoint_every=draw.choice([0, 3], count),
        checkpoint_cost=draw.choice([0, 1], count),
        restore_cost=draw.choice([0, 2], count),
        service=(draw.random(count) < (0.3 if draw.random() < 0.3 else 0)).astype(np.int64),
        team=draw.choice(["a", "b", "c"], count).tolist(),
        user=draw.choice(["x", "y"], count).tolist(),
        account=draw.choice(["m", "n"], count).tolist(),
        exclusive=(draw.random(count) < (0.2 if draw.random() < 0.4 else 0)).astype(np.int64),
        reservation=np.where(draw.random(count) < 0.1, "kept", "").tolist(),
        parent_of=parents,
    )


def policy_of(draw, timed, elastic):
    placements = ["best-fit", "first-fit", "worst-fit"]
    values = rules_of(draw, timed, placements, ["none", "greedy", "easy", "easy"]) | {
        "defrag": str(draw.choice(["none", "pending", "pending", "threshold", "hours"])),
        "defrag.hours": "1",
        "defrag.threshold": 0.2,
        "defrag.moves": int(draw.integers(1, 5)),
        "defrag.every_s": int(draw.choice([0, 0, 5])),
        "defrag.min_gain": 0.1,
    }
    values |= moving_of(draw, timed)
    if elastic:
        values |= {
            "elastic": "resize",
            "elastic.resize_s": int(draw.choice([0, 2])),
            "elastic.every_s": int(draw.choice([0, 3])),
        }
    for queue in ("a", "b", "c"):
        if queue == "a" or draw.random() < 0.6:
            values |= queue_of(draw, queue, 1)
            if queue != "c" and draw.random() < 0.2:
                values[f"quota.queues.{queue}.parent"] = "above"
    return Policy().with_values(values)


def with_parts(draw, jobs):
    """Most jobs take parts of GPUs, some of them several."""
    part = draw.random(len(jobs)) < 0.7
    return replace(
        jobs,
        gpu_milli=np.where(
            part, draw.choice([100, 143, 200, 250, 400, 500, 600, 1000], len(jobs)), 0
        ),
        gpus=np.where(part, 1, jobs.gpus),
        tasks=np.where(part, draw.choice([1, 1, 1, 2, 3], len(jobs)), jobs.tasks),
        gpus_per_task=np.where(part, 0, jobs.gpus_per_task),
        min_tasks=np.where(part, 0, jobs.min_tasks),
        max_tasks=np.where(part, 0, jobs.max_tasks),
        latency_sensitive=draw.integers(0, 2, len(jobs)) * part,
    )


def sharing_of(draw, policy, kind):
    values = {
        "sharing": kind,
        "sharing.reconfigure_s": int(draw.choice([0, 3])),
        "sharing.crowding_milli": int(draw.choice([0, 100, 400])),
        "sharing.switch_milli": int(draw.choice([0, 50, 300])),
        "sharing.most": int(draw.choice([2, 3, 7])),
    }
    if policy.backfill == "easy":
        values["backfill"] = "greedy"
    if kind in ("mig", "mps", "time-slice"):
        values |= {"preemption": "none", "quota.reclaim": "none"}
        values |= {"defrag": "none"} if policy.defrag.kind == "pending" else {}
    return policy.with_values(values)


def on_a_network(draw, jobs, cluster, policy):
    """Leaves, spines and blocks; what jobs require of them; how much they talk."""
    nodes, size = len(cluster), len(jobs)
    leaf = draw.integers(0, 3, nodes)
    spine = leaf % 2 if draw.random() < 0.7 else draw.integers(0, 2, nodes)
    block = spine if draw.random() < 0.5 else draw.integers(0, 2, nodes)
    cluster = replace(
        cluster,
        leaf=tuple(f"l{one}" for one in leaf),
        spine=tuple(f"s{one}" for one in spine),
        rack=tuple(f"b{one}" for one in block),
        gpu_model=tuple(draw.choice(["H100", "H100", "A100"], nodes).tolist()),
    )
    words = ["", "", "", "required:node", "required:leaf", "required:spine", "required:block"]
    words += ["preferred:leaf", "leaf"]
    uneven = (draw.random(size) < 0.2) & (jobs.max_tasks == 0)  # their last task may lie beside
    jobs = replace(
        jobs,
        gpus=np.where(uneven, 5, jobs.gpus),
        tasks=np.where(uneven, 2, jobs.tasks),
        gpus_per_task=np.where(uneven, 2, jobs.gpus_per_task),
        rest_gpus=np.where(uneven, 1, jobs.rest_gpus),
        topology=Named.of(draw.choice(words, size).tolist(), size),
        comm_milli=draw.choice([0, 0, 100, 400], size),
    )
    values = {
        "placement": str(draw.choice(["topology", "topology", str(policy.placement)])),
        "topology.slowdown": str(draw.random() < 0.7),
        "topology.oversubscription": int(draw.choice([1, 4])),
        "topology.message_mib": int(draw.choice([1, 64, 1024])),
        "topology.comm_milli": int(draw.choice([0, 50, 200])),
    }
    if values["placement"] == "topology" and draw.random() < 0.3:
        values["topology.level"] = str(draw.choice(["node", "leaf", "spine", "block"]))
        values["topology.binding"] = str(draw.choice(["required", "preferred"]))
    return jobs, cluster, policy.with_values(values)


def happened(outcome):
    """What the figures of a proof count."""
    return {
        "worlds": 1,
        "jobs": len(outcome.jobs),
        "starts": int(outcome.starts.sum()),
        "stops": int(outcome.preemptions.sum()),
        "moves": int(outcome.migrations.sum()),
        "resizes": int(outcome.resizes.sum()),
        "lost_s": int(outcome.lost_s.sum()),
    }
