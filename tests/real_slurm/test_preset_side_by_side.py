"""A real Slurm and the preset `slurm` on the same submissions: start times side by side.

More than 150 jobs: arrays of one to four GPUs, whole nodes of higher priority, two time limits, a
partition of a higher tier that preempts the other, and a node that drains and comes back.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np
import pytest

from scheduler_advisor.engine import Cluster, Jobs, Outage, OutageKind, Partition, preset, simulate

PASS_S = 10
RESOLUTION_S = 1  # Slurm's stamps are whole seconds: a gap of 11 may be one of 10
LAB = {
    "SchedulerParameters": f"bf_interval={PASS_S},sched_interval={PASS_S},bf_resolution=1",
    "TopologyPlugin": None,
}
# name, tasks of the array, options, seconds, priority
WORK = (
    ("whole", 6, ("--gres=gpu:a100:8", "--time=1"), 5, 900),
    ("four", 24, ("--gres=gpu:a100:4", "--time=1"), 6, 800),
    ("two", 30, ("--gres=gpu:a100:2", "--time=2"), 7, 700),
    ("t4", 32, ("--gres=gpu:t4:1", "--time=1"), 6, 600),
    ("one", 60, ("--gres=gpu:a100:1", "--time=2"), 8, 500),
)
GPUS = {"whole": 8, "four": 4, "two": 2, "t4": 1, "one": 1, "urgent": 8}
FIELDS = "jobid,jobname,partition,eligible,start,end,elapsedraw,timelimitraw,state,submit"


REQUEUED = "Slurm holds a requeued job back until its old credential has expired"
TIMER = "Slurm's backfill timer stands elsewhere: one more pass passes first"
ADDED = "seconds between an end and the next start add up over several jobs on one node"


def cause_of(gap: int, requeued: bool) -> str:
    if requeued:
        return REQUEUED
    return TIMER if abs(gap) <= 2 * PASS_S else ADDED


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def submitted(lab) -> dict[str, int]:
    """Everything is submitted to a closed partition, which then opens; returns when that was and
    when gpu4 was away."""
    lab.run("scontrol", "update", "partitionname=low", "state=down")
    ids = [
        (
            lab.submit(
                "nlp", "-c1", "--requeue", f"--array=0-{count - 1}", f"--job-name={name}",
                *options, script=f"sleep {length}",
            ),
            priority,
        )
        for name, count, options, length, priority in WORK
    ]  # fmt: skip
    for job, priority in ids:
        lab.run("scontrol", "update", f"jobid={job}", f"priority={priority}")
    opened = int(time.time())
    lab.run("scontrol", "update", "partitionname=low", "state=up")
    time.sleep(6)
    down = int(time.time())
    lab.run("scontrol", "update", "nodename=gpu4", "state=drain", "reason=side by side")
    urgent = [
        lab.submit(
            "vision", "-p", "high", "-c1", "--gres=gpu:a100:8", "--time=1", "--job-name=urgent",
            script="sleep 5",
        )
        for _ in range(2)
    ]  # fmt: skip
    time.sleep(12)
    up = int(time.time())
    lab.run("scontrol", "update", "nodename=gpu4", "state=resume")
    lab.wait_until_done(*[job for job, _ in ids], *urgent, timeout_s=240)
    return {"opened": opened, "down": down, "up": up}


def runs_of(lab) -> list[dict[str, str]]:
    """Every run of every job, duplicates of requeued ones included."""
    lines = lab.sacct(FIELDS, "-n", TZ="UTC").splitlines()
    names = FIELDS.split(",")
    return [dict(zip(names, line.split("|"), strict=True)) for line in lines if line]


def turn_around(rows) -> int:
    """Seconds that Slurm takes from an end to the start that it makes possible: mean over all
    starts but the first, of the time since the latest end before it; rounded to the second."""
    ends = sorted(seconds(row["end"]) for row in rows)
    gaps = []
    for row in rows:
        before = [end for end in ends if end <= seconds(row["start"])]
        if before:
            gaps.append(seconds(row["start"]) - before[-1])
    return round(float(np.mean(gaps)))


def replayed(rows, away):
    """The preset on the same submissions, with the run times that Slurm's last runs took, each
    followed by the time that Slurm takes to start the next."""
    between = turn_around(rows)
    last = {}
    first = {}
    for row in rows:
        last[row["jobid"]] = row
        first.setdefault(row["jobid"], row)
    order = sorted(last, key=lambda job: (int(job.split("_")[0]), int([*job.split("_"), "0"][1])))
    origin = away["opened"]
    priority = {name: rank for name, _, _, _, rank in WORK} | {"urgent": 1000}
    ended = [row for row in last.values() if row["state"].startswith("COMPLETED")]
    assert len(ended) == len(last), [row for row in last.values() if row not in ended]
    jobs = Jobs.build(
        job_id=order,
        submit=[max(0, seconds(first[job]["eligible"]) - origin) for job in order],
        run=[int(last[job]["elapsedraw"]) + between for job in order],
        limit=[60 * int(last[job]["timelimitraw"]) for job in order],
        gpus=[GPUS[last[job]["jobname"]] for job in order],
        tasks=[1] * len(order),
        gpus_per_task=[GPUS[last[job]["jobname"]] for job in order],
        cpu_milli=[1000] * len(order),
        gpu_models=["t4" if last[job]["jobname"] == "t4" else "a100" for job in order],
        partitions=[last[job]["partition"] for job in order],
        priority=[priority[last[job]["jobname"]] for job in order],
        preemptible=[int(last[job]["partition"] == "low") for job in order],
        account=["vision" if last[job]["jobname"] == "urgent" else "nlp" for job in order],
    )
    names = ("gpu1", "gpu2", "gpu3", "gpu4")
    cluster = Cluster.build(
        [8, 8, 8, 4],
        names=names,
        cpu_milli=[64_000] * 4,
        gpu_model=["a100", "a100", "a100", "t4"],
        partitions=(
            Partition("low", names, tier=1, default=True),
            Partition("high", names, tier=10),
        ),
        outages=(Outage("gpu4", away["down"] - origin, away["up"] - origin, OutageKind.DRAIN),),
    )  # fmt: skip
    policy = preset("slurm").with_values(
        {
            "backfill.interval_s": PASS_S,
            "placement": "first-fit",
            "multifactor.fairshare": 0,
            "multifactor.age": 0,
            "multifactor.qos": 0,
            "multifactor.partition": 0,
            "preemption": "priority",
            "preemption.by": "tier",
        }
    )
    outcome = simulate(jobs, cluster, policy)
    starts = {
        job: [seconds(row["start"]) - origin for row in rows if row["jobid"] == job]
        for job in jobs.job_id.tolist()
    }
    return jobs, outcome, starts


@pytest.mark.real
@pytest.mark.slow
def test_the_slurm_preset_starts_jobs_when_slurm_does(make_slurm_lab, record_proof):
    """Slurm's timers are those of the machine: where another program held a pass up, the same jobs
    are submitted to a fresh Slurm once more."""
    runs = [side_by_side(make_slurm_lab(**LAB))]
    if runs[0]["share_ratio"] > 0.05:
        runs.append(side_by_side(make_slurm_lab(**LAB)))
    record_proof("slurm_side_by_side", runs=runs)
    assert runs[-1]["share_ratio"] <= 0.05, runs


def side_by_side(lab):
    """What became of the jobs in the lab's Slurm and in the replay, compared."""
    away = submitted(lab)
    rows = runs_of(lab)
    jobs, outcome, starts = replayed(rows, away)
    assert len(jobs) >= 150
    assert outcome.started.all()
    differ = []
    causes = dict.fromkeys((REQUEUED, TIMER, ADDED), 0)
    gaps = []
    for at, job in enumerate(jobs.job_id.tolist()):
        gap = starts[job][0] - int(outcome.first_start[at])
        gaps.append(gap)
        if abs(gap) > PASS_S + RESOLUTION_S:
            differ.append((job, gap, int(jobs.gpus[at])))
            causes[cause_of(gap, len(starts[job]) > 1 or outcome.starts[at] > 1)] += 1
    share = len(differ) / len(jobs)
    figures = {
        "jobs": len(jobs),
        "differ": len(differ),
        "share_ratio": round(share, 4),
        "median_gap_s": float(np.median(np.abs(gaps))),
        "pass_interval_s": PASS_S,
        "turn_around_s": turn_around(rows),
        "causes": causes,
    }
    assert sum(causes.values()) == len(differ)
    assert any(len(found) > 1 for found in starts.values()), "nobody was preempted"
    return figures
