"""Synthetic clusters with a planted fault, and a judge: neither shares code with the advisor.

A site is 8 nodes of 8 GPUs and 64 CPUs over some days. `history` plays a policy in plain Python
and returns what happened; `lost` adds up, in its own way, the GPU-hours that stood free while
somebody waited, or that gangs took longer for where they lay.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from scheduler_advisor.diagnosis.seen import Seen
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.measurements.repeats import Repeat, RepeatRun
from scheduler_advisor.past import Past

NODES, GPUS, CPUS, DAY = 8, 8, 64, 86_400
ANY = 1 << 30


@dataclass
class Job:
    """One job; nodes x gpus, a share of CPUs on each node."""

    submit: int
    run: int
    limit: int
    nodes: int
    gpus: int
    cpus: int
    priority: int = 0
    name: str = ""
    work: int = 0  # seconds of service, without what its placement costs; 0: `run`
    team: str = ""
    start: int | None = None
    held: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """How the site's scheduler works."""

    urgent_first: bool = False
    backfill: bool = True
    spread: bool = False
    cap_cpus: bool = False
    near: bool = False  # gangs under one switch where one has room, small jobs where they leave it
    fair: bool = False  # who holds less comes first
    limits: tuple[tuple[str, int], ...] = ()  # GPUs that a team may hold at once
    far_costs: float = 1.0  # a gang under several switches takes that many times as long


@dataclass(frozen=True)
class Site:
    """A fault by name: the work that comes, and the rules that it meets."""

    fault: str
    rules: Rules
    fixed: Rules
    load: float
    mix: tuple[tuple[float, int, int, int, float], ...]  # (weight, nodes, gpus, cpus/GPU, hours)
    urgent: float = 0.0
    teams: tuple[tuple[str, float], ...] = ()  # each with its part of the work
    burst: tuple[tuple[str, ...], int, float] = ((), 0, 0.0)  # teams, 4-GPU jobs a day, their hours
    repeated: bool = False  # gangs run again and again, and do the same work each time


SITES = {
    "packing": Site("packing", Rules(spread=True), Rules(), 0.72,
                    ((10, 1, 1, 6, 5.0), (3, 1, 2, 6, 5.0), (2.2, 1, 8, 6, 4.0))),
    "cpu_hogs": Site("packing", Rules(), Rules(cap_cpus=True), 0.46,
                     ((10, 1, 1, 8, 4.0), (3, 1, 1, 36, 5.0), (2, 1, 4, 8, 4.0))),
    "urgency": Site("urgency", Rules(), Rules(urgent_first=True), 0.96,
                    ((4, 1, 1, 6, 5.0), (4, 1, 4, 6, 7.0), (4, 1, 8, 6, 8.0)), urgent=0.2),
    "gang": Site("gang", Rules(backfill=False), Rules(), 0.74,
                 ((14, 1, 1, 6, 4.0), (4, 1, 2, 6, 5.0), (0.9, 4, 8, 6, 3.0))),
    "topology": Site("topology", Rules(far_costs=1.8), Rules(far_costs=1.8, near=True), 0.42,
                     ((5, 2, 8, 6, 5.0), (3, 1, 8, 6, 4.0), (6, 1, 2, 6, 3.0)), repeated=True),
    "quota": Site("quota", Rules(limits=(("bio", 20), ("chem", 24), ("ml", 20))), Rules(), 0.55,
                  ((10, 1, 1, 6, 4.0), (4, 1, 2, 6, 5.0), (2, 1, 4, 6, 4.0)),
                  teams=(("bio", 0.125), ("chem", 0.375), ("ml", 0.5))),
    "starve": Site("nothing", Rules(), Rules(fair=True), 0.03,
                   ((10, 1, 1, 6, 0.2), (4, 1, 2, 6, 0.2)), teams=(("note", 1.0),),
                   burst=(("sweep", "train"), 48, 4.0)),
    "healthy": Site("nothing", Rules(urgent_first=True), Rules(urgent_first=True), 0.45,
                    ((10, 1, 1, 6, 3.0), (4, 1, 2, 6, 3.0), (1, 1, 4, 6, 3.0)), urgent=0.1),
}  # fmt: skip


def arrivals(site: Site, seed: int, days: int) -> list[Job]:
    """Poisson arrivals with a day-night rhythm, run times spread log-normally."""
    rng = random.Random(f"{site.fault}{site.load}{seed}")
    weights = [entry[0] for entry in site.mix]
    mean = sum(w * n * g * h * 1.13 for w, n, g, _, h in site.mix) / sum(weights)
    rate = site.load * NODES * GPUS / mean  # jobs an hour
    jobs, at = [], 0.0
    while True:
        busy = 1.3 if 8 <= at / 3600 % 24 < 20 else 0.7
        at += rng.expovariate(rate * busy) * 3600
        if at >= days * DAY:
            return sorted([*jobs, *bursts(site, rng, days)], key=lambda job: job.submit)
        _, nodes, gpus, cpus, hours = rng.choices(site.mix, weights)[0]
        run = max(60, round(min(hours * rng.lognormvariate(0, 0.5), 24) * 3600))
        priority = 0
        if site.urgent and rng.random() < site.urgent:
            nodes, gpus, run, priority = 1, 1, max(60, round(run * 0.1)), 10
        name = ""
        if site.repeated and nodes > 1:
            name = f"train-{rng.randrange(6)}"
            run = round(hours * (0.6 + 0.15 * int(name[-1])) * 3600 * rng.uniform(0.98, 1.02))
        team = ""
        if site.teams:
            team = rng.choices([t for t, _ in site.teams], [part for _, part in site.teams])[0]
        limit = round(run * site.rules.far_costs * rng.uniform(1.1, 2.0))
        jobs.append(Job(round(at), run, limit, nodes, gpus, min(gpus * cpus, CPUS), priority, name,
                        run, team))  # fmt: skip


def bursts(site: Site, rng: random.Random, days: int) -> list[Job]:
    """Sweeps of some teams, all of them at nine in the morning."""
    teams, count, hours = site.burst
    runs = [max(60, round(hours * rng.lognormvariate(0, 0.3) * 3600)) for _ in range(count * days)]
    return [
        Job(
            place // count * DAY + 9 * 3600,
            run,
            round(run * 1.5),
            1,
            4,
            24,
            work=run,
            team=teams[place % len(teams)],
        )
        for place, run in enumerate(runs)
    ]


def play(jobs: list[Job], rules: Rules) -> list[Job]:  # noqa: C901 - one event loop, read in one go
    """What happens to the jobs under the rules; the head keeps its place by estimates."""
    jobs = [replace(job, start=None, held=[]) for job in jobs]
    if rules.cap_cpus:
        for job in jobs:
            job.cpus = min(job.cpus, job.gpus * CPUS // GPUS)
    free = [[GPUS, CPUS] for _ in range(NODES)]
    ends: list[tuple[int, int]] = []
    queue: list[Job] = []
    place = 0
    running: dict[int, Job] = {}
    while place < len(jobs) or ends:
        now = min(jobs[place].submit if place < len(jobs) else 1 << 60,
                  ends[0][0] if ends else 1 << 60)  # fmt: skip
        while ends and ends[0][0] == now:
            gone = running.pop(heapq.heappop(ends)[1])
            for node in gone.held:
                free[node][0] += gone.gpus
                free[node][1] += gone.cpus
        while place < len(jobs) and jobs[place].submit == now:
            queue.append(jobs[place])
            place += 1
        if rules.urgent_first:
            queue.sort(key=lambda job: (-job.priority, job.submit))
        if rules.fair:
            held = Counter({job.team: 0 for job in queue})
            for job in running.values():
                held[job.team] += job.nodes * job.gpus
            queue.sort(key=lambda job: (held[job.team], job.submit))
        for job in one_pass(queue, free, running, now, rules):
            job.start = now
            heapq.heappush(ends, (now + job.run, id(job)))
            running[id(job)] = job
    return jobs


def one_pass(queue, free, running, now, rules):  # noqa: C901 - one pass, read in one go
    """Start what may start; the rest stays in the queue."""
    started, promise = [], None
    room = team_room(running, rules)
    for job in [job for job in queue if job.nodes * job.gpus <= room.get(job.team, ANY)][:40]:
        if job.nodes * job.gpus > room.get(job.team, ANY):
            continue  # its team's limit holds it back; it holds back nobody
        nodes = choose(job, free, rules.spread, rules.near)
        if promise is not None and nodes is not None and not keeps(job, nodes, free, promise, now):
            nodes = None
        if nodes is not None:
            for node in nodes:
                free[node][0] -= job.gpus
                free[node][1] -= job.cpus
            job.held = nodes
            started.append(job)
            running[id(job)] = job
            room = team_room(running, rules)
            queue.remove(job)
            job.start = now
            if len({leaf_of(node) for node in nodes}) > 1:
                job.run = round(job.work * rules.far_costs)
        elif promise is None:
            if not rules.backfill:
                break
            promise = (job, *shadow(job, free, running, now))
    return started


def team_room(running, rules):
    """GPUs that each limited team may still take."""
    room = dict(rules.limits)
    for job in running.values():
        if job.team in room:
            room[job.team] -= job.nodes * job.gpus
    return room


def leaf_of(node):
    """Four switches; the names of the nodes say nothing of them."""
    return node % 4


def choose(job, free, spread, near=False):
    """The nodes to hold, or None."""
    fits = [n for n in range(NODES) if free[n][0] >= job.gpus and free[n][1] >= job.cpus]
    if len(fits) < job.nodes:
        return None
    if not near:
        fits.sort(key=lambda n: (-free[n][0] if spread else free[n][0], n))
        return fits[: job.nodes]
    # What "placement by the network" says: the fullest switch that has room for a gang, and small
    # jobs on the fullest node, under the fullest switch where there are several.
    left = [sum(free[n][0] for n in range(NODES) if leaf_of(n) == leaf) for leaf in range(4)]
    fits.sort(key=lambda n: (free[n][0], left[leaf_of(n)], n))
    for leaf in sorted(range(4), key=lambda leaf: (left[leaf], leaf)):
        under = [n for n in fits if leaf_of(n) == leaf]
        if job.nodes > 1 and len(under) >= job.nodes:
            return under[: job.nodes]
    return fits[: job.nodes]


def shadow(head, free, running, now):
    """When the head fits by estimates, and what is free then."""
    later = [list(each) for each in free]
    for at, job in sorted(
        ((max(job.start + job.limit, now + 1), job) for job in running.values()),
        key=lambda pair: pair[0],
    ):
        for node in job.held:
            later[node][0] += job.gpus
            later[node][1] += job.cpus
        if choose(head, later, False) is not None:
            return at, later
    return 1 << 60, later


def keeps(job, nodes, free, promise, now):
    """Whether the head can still start when promised if ``job`` starts now."""
    head, at, later = promise
    if now + job.limit <= at:
        return True
    rest = [list(each) for each in later]
    for node in nodes:
        rest[node][0] -= job.gpus
        rest[node][1] -= job.cpus
    if any(gpus < 0 for gpus, _ in rest) or choose(head, rest, False) is None:
        return False
    later[:] = rest
    return True


def lost(jobs: list[Job], days: int) -> float:
    """GPU-hours a week that stood free while jobs waited for GPUs, or went into a slow network."""
    slowed = sum(job.nodes * job.gpus * (job.run - job.work) for job in jobs)
    return stood_free(jobs, days) + slowed / 3600 / days * 7


def stood_free(jobs: list[Job], days: int) -> float:
    """GPU-hours a week that stood free while jobs waited for GPUs."""
    events = []
    for job in jobs:
        size = job.nodes * job.gpus
        events += [(job.submit, size, 0), (job.start, -size, -size), (job.start + job.run, 0, size)]
    events.sort(key=lambda event: event[0])
    total, asked, room, before = 0.0, 0, NODES * GPUS, 0
    for at, demand, change in events:
        until = min(at, days * DAY)
        total += max(until - before, 0) * min(asked, room)
        before, asked, room = until, asked + demand, room + change
    return total / 3600 / days * 7


def urgent_waiting(jobs: list[Job], days: int) -> float:
    """Hours that urgent jobs waited, a week."""
    urgent = [job for job in jobs if job.priority]
    return sum(min(j.start, days * DAY) - j.submit for j in urgent) / 3600 / days * 7


def team_waiting(jobs: list[Job], days: int, team: str) -> float:
    """Hours that a team's jobs waited, a week."""
    own = [job for job in jobs if job.team == team]
    return sum(min(j.start, days * DAY) - j.submit for j in own) / 3600 / days * 7


def wide(jobs: list[Job]) -> float:
    """Share of held GPU time that gangs took longer for where they lay."""
    held = sum(job.nodes * job.gpus * job.run for job in jobs)
    return sum(job.nodes * job.gpus * (job.run - job.work) for job in jobs) / held


def repeats_of(jobs: list[Job]) -> list[Repeat]:
    """What the advisor is shown of jobs that ran again and again: names, times and places."""
    order = sorted(jobs, key=lambda job: job.submit)
    found = []
    for name in sorted({job.name for job in jobs} - {""}):
        runs = [
            RepeatRun(
                run_id=str(place), job_id=str(place), run_s=job.run,
                start_at=datetime.fromtimestamp(job.start, UTC),
                 nodes=job.nodes, leaves=len({leaf_of(node) for node in job.held}),
                node_names=tuple(str(node) for node in job.held),
            )
            for place, job in enumerate(order) if job.name == name
        ]  # fmt: skip
        found.append(
            Repeat(cluster="c", name=name, user_name="u", account="a", gpus=16, gpu_model="",
                   runs=tuple(sorted(runs, key=lambda run: run.run_s)))
        )  # fmt: skip
    return [each for each in found if len(each.runs) >= 4 and each.ratio >= 1.5]


def past_of(jobs: list[Job], days: int) -> tuple[Past, Seen]:
    """What the advisor is shown of a history."""
    order = sorted(range(len(jobs)), key=lambda place: jobs[place].submit)
    jobs = [jobs[place] for place in order]
    made = Jobs.build(
        job_id=[str(place) for place in range(len(jobs))],
        submit=[j.submit for j in jobs], run=[j.run for j in jobs], limit=[j.limit for j in jobs],
        gpus=[j.gpus * j.nodes for j in jobs], tasks=[j.nodes for j in jobs],
        gpus_per_task=[j.gpus for j in jobs], cpu_milli=[j.cpus * 1000 for j in jobs],
        priority=[j.priority for j in jobs], team=[j.team for j in jobs],
        account=[j.team for j in jobs],
    )  # fmt: skip
    cluster = Cluster.build(gpus=[GPUS] * NODES, cpu_milli=[CPUS * 1000] * NODES,
                            leaf=[f"leaf{leaf_of(node)}" for node in range(NODES)])  # fmt: skip
    wait = np.array([j.start - j.submit for j in jobs], np.int64)
    rows = [(place, node, j.gpus, j.cpus * 1000) for place, j in enumerate(jobs) for node in j.held]
    table = np.array(rows, np.int64).reshape(-1, 4)
    seen = Seen(table[:, 0], table[:, 1], table[:, 2].astype(float), table[:, 3].astype(float),
                np.zeros(len(table)), idle_ratio=0.08, topology_ratio=wide(jobs))  # fmt: skip
    return Past(made, cluster, wait, 0, days * DAY), seen


@dataclass(frozen=True)
class Planted:
    """The tools of the tests by name."""

    sites: dict[str, Site]

    arrivals = staticmethod(arrivals)
    play = staticmethod(play)
    lost = staticmethod(lost)
    urgent_waiting = staticmethod(urgent_waiting)
    team_waiting = staticmethod(team_waiting)
    past_of = staticmethod(past_of)
    repeats_of = staticmethod(repeats_of)

    @staticmethod
    def with_limits(rules: Rules, advice: str) -> Rules:
        """The rules with the limits of teams that the name of an advice speaks of."""
        name, *told = advice.split(" + ")[0].split(":")
        limits = dict(rules.limits)
        if name == "limits_wider":
            limits = {team: min(NODES * GPUS, math.ceil(gpus * 1.5))
                      for team, gpus in limits.items()}  # fmt: skip
        elif name == "limit_move":
            gpus, giver, taker = int(told[0]), told[1], told[2]
            limits[giver] -= gpus
            limits[taker] += gpus
        else:
            limits = {}
        return replace(rules, limits=tuple(limits.items()))

    @staticmethod
    def with_jobs(past: Past, jobs: Jobs) -> Past:
        """The same past with changed columns of its jobs."""
        return replace(past, jobs=jobs)


@pytest.fixture(scope="session")
def planted():
    """Sites with a planted fault, their generator and their judge."""
    return Planted(SITES)
