"""A site that checkpoints hourly and stops training for urgent work: its facts, and a judge.

Plain Python that shares nothing with the advisor. Every job holds one node of eight GPUs. Urgent
work takes the node of the training job that began last where none is free; training goes on later
from its last checkpoint.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.ledger import build
from analytics.prices import Price, load_prices
from analytics.window import Window as LedgerWindow
from collector.model import Allocation, Event, Job, JobRun
from collector.store import Store
from scheduler_advisor.window import Window

NODES, GPUS, DAYS, HOUR = 12, 8, 28, 3600
T0 = datetime(2026, 10, 5, tzinfo=UTC)
UNTIL = T0 + timedelta(days=DAYS)
STEP_S = 1800
SETTINGS = {
    "SchedulerType": "sched/backfill", "SchedulerParameters": "bf_max_job_test=40",
    "SelectTypeParameters": "CR_Core", "PriorityType": "priority/multifactor",
    "PreemptType": "preempt/qos", "PreemptMode": "REQUEUE",
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """``every``: seconds of work between checkpoints; ``write``/``read``: to write one and to go on
    from it; ``notice``: the stopped job writes once more before it leaves."""

    every: int = HOUR
    write: int = 60
    read: int = 120
    notice: bool = False


@dataclass
class Attempt:
    """One run: when, how it ended, and the ends of its checkpoints."""

    start: int
    end: int
    stopped: bool
    saved: int
    marks: list[int]
    node: int


@dataclass
class Work:
    """One job: what it has to do, and its runs."""

    name: str
    submit: int
    seconds: int
    urgent: bool
    left: int = 0
    runs: list[Attempt] = field(default_factory=list)
    node: int = -1
    start: int = -1


def arrivals(seed, urgent=3.0, load=0.5):
    """Training by Poisson at that load of the nodes, urgent jobs so many an hour."""
    rng = random.Random(f"{seed}{urgent}{load}")
    found, at = [], 0.0
    while at < DAYS * 24 * HOUR:
        at += rng.expovariate(load * NODES / (18 * HOUR))
        seconds = round(min(60, rng.lognormvariate(2.77, 0.5)) * HOUR)
        found.append(Work("train", round(at), seconds, urgent=False))
    at = 0.0
    while at < DAYS * 24 * HOUR:
        at += rng.expovariate(urgent / HOUR)
        found.append(Work("serve", round(at), round(rng.uniform(0.5, 1.5) * HOUR), urgent=True))
    return sorted((w for w in found if w.submit < DAYS * 24 * HOUR), key=lambda w: w.submit)


def wall(work, rules):
    """Seconds that the rest of the job takes if nobody stops it."""
    reading = rules.read if work.left < work.seconds else 0
    writes = 0 if work.urgent else (work.left - 1) // rules.every
    return reading + work.left + writes * rules.write


def play(jobs, rules):  # noqa: C901 - one event loop, read in one go
    """What happens; returns the jobs with their runs."""
    jobs = [Work(w.name, w.submit, w.seconds, w.urgent, w.seconds) for w in jobs]
    free, queue, running, ends = list(range(NODES)), [], {}, []
    events = [(work.submit, 1, at) for at, work in enumerate(jobs)]
    heapq.heapify(events)
    while events or ends:
        now = min(events[0][0] if events else 1 << 60, ends[0][0] if ends else 1 << 60)
        while ends and ends[0][0] == now:
            _, at, begun = heapq.heappop(ends)
            if running.get(at) == begun:
                free.append(finish(jobs[at], now, rules))
                del running[at]
        while events and events[0][0] == now:
            at = heapq.heappop(events)[2]
            heapq.heappush(queue, (not jobs[at].urgent, jobs[at].submit, at))
        while queue:
            at = queue[0][2]
            if not free and jobs[at].urgent:
                victims = [v for v in running if not jobs[v].urgent]
                if victims:
                    victim = max(victims, key=lambda v: (jobs[v].start, v))
                    free.append(stop(jobs[victim], now, rules))
                    del running[victim]
                    heapq.heappush(queue, (True, jobs[victim].submit, victim))
            if not free:
                break
            heapq.heappop(queue)
            jobs[at].node, jobs[at].start = free.pop(), now
            running[at] = now
            heapq.heappush(ends, (now + wall(jobs[at], rules), at, now))
    return jobs


def marks_until(work, now, rules):
    """Ends of the checkpoints of the run up to now."""
    if work.urgent:
        return []
    first = work.start + (rules.read if work.left < work.seconds else 0)
    count = (work.left - 1) // rules.every
    ends = [first + (k + 1) * (rules.every + rules.write) for k in range(count)]
    return [end for end in ends if end <= now]


def stop(work, now, rules):
    """The run is over before its end; what the last checkpoint has is kept."""
    marks = marks_until(work, now, rules)
    kept = len(marks) * rules.every
    if rules.notice:
        reading = rules.read if work.left < work.seconds else 0
        done = now - work.start - reading - len(marks) * rules.write - rules.write
        kept = max(kept, min(done, work.left - 1))
    work.runs.append(Attempt(work.start, now, True, kept, marks, work.node))
    work.left -= kept
    return work.node


def finish(work, now, rules):
    marks = marks_until(work, now, rules)
    work.runs.append(Attempt(work.start, now, False, work.left, marks, work.node))
    work.left = 0
    return work.node


def wasted(jobs):
    """GPU-hours a week that training held without getting on: done again, written, read; each run
    of it spread over its time, as far as that lies in the window."""
    total, until = 0.0, DAYS * 24 * HOUR
    for work in jobs:
        for run in work.runs:
            inside = max(0, min(run.end, until) - run.start)
            length = max(run.end - run.start, 1)
            total += (length - run.saved) * inside / length
    return total * GPUS / HOUR / DAYS * 7


class Hourly:
    """The tools of the tests by name."""

    window = Window(T0, UNTIL)
    days, rules, settings = DAYS, Rules, SETTINGS
    arrivals, play, wasted = staticmethod(arrivals), staticmethod(play), staticmethod(wasted)

    def __init__(self, folder, inventory):
        self._folder, self._count, self._inventory = folder, 0, inventory

    def store(self, jobs, rules, *, measured=False, marked=True, settings=SETTINGS, resumes=True):
        """What the advisor is shown of a history; ``measured``: with samples and a ledger."""
        self._count += 1
        store = Store.open(self._folder / f"{self._count}.duckdb", clock=lambda: UNTIL)
        facts, samples = self._inventory(NODES, GPUS, T0, UNTIL), []
        for number, work in enumerate(jobs):
            facts += _facts(str(number), work, rules, marked=marked)
            samples += _samples(str(number), work) if measured else []
        with store.work() as work:
            work.append_facts(facts)
            for key, value in settings.items():
                row = {"cluster": "c", "scheduler": "slurm", "key": key, "value": value,
                       "valid_from": T0, "source": "test"}  # fmt: skip
                work.append("scheduler_setting", {name: [each] for name, each in row.items()})
            if measured:
                work.append("sample", _columns(samples))
                price = Price(gpu_model="A100", amount=Decimal(2), currency="USD",
                              kind="contracted", source="contract")  # fmt: skip
                load_prices(work, [price], at=T0, actor="test")
        if measured:
            build(store, "c", LedgerWindow(T0, UNTIL))
        return store


def _at(seconds):
    return T0 + timedelta(seconds=seconds)


def _facts(name, work, rules, *, marked):
    user = "eve" if work.urgent else "ann"
    facts = [Job(cluster="c", job_id=name, name=work.name, account="red", user_name=user,
                 submit_at=_at(work.submit), req_gpus=GPUS, req_nodes=1, partitions=("batch",),
                 source="test")]  # fmt: skip
    submit = work.submit
    for attempt, run in enumerate(work.runs, 1):
        if run.start >= DAYS * 24 * HOUR:
            continue
        key, begin, end = f"{name}:{attempt}", _at(run.start), _at(run.end)
        facts += [
            JobRun(cluster="c", run_id=key, job_id=name, attempt=attempt, account="red",
                   user_name=user, partition="batch", qos="urgent" if work.urgent else "normal",
                   priority=1000 if work.urgent else 10, submit_at=_at(submit),
                   eligible_at=_at(submit), start_at=begin, end_at=end, limit_s=72 * HOUR,
                   state="PREEMPTED" if run.stopped else "COMPLETED", gpus=GPUS, nodes=1,
                   source="test"),
            Allocation(cluster="c", run_id=key, node=f"n{run.node}", gpus=GPUS, gpu_model="A100",
                       start_at=begin, end_at=end, source="test"),
        ]  # fmt: skip
        submit = run.end
        for end_of in run.marks if marked else ():
            for kind, when in (("checkpoint_begin", end_of - rules.write),
                               ("checkpoint_end", end_of)):  # fmt: skip
                facts.append(Event(cluster="c", ts=_at(when), kind=kind, job_id=name, run_id=key,
                                   source="test"))  # fmt: skip
    return facts


def _samples(name, work):
    found = []
    for attempt, run in enumerate(work.runs, 1):
        ticks = range(run.start + STEP_S, min(run.end, DAYS * 24 * HOUR) + STEP_S, STEP_S)
        found += [(f"{name}:{attempt}", run.node, gpu, at) for gpu in range(GPUS) for at in ticks]
    return found


def _columns(samples):
    size = len(samples)
    return {
        "cluster": ["c"] * size, "run_id": [row[0] for row in samples],
        "node": [f"n{row[1]}" for row in samples],
        "gpu_uuid": [f"g{row[1]}-{row[2]}" for row in samples],
        "gpu_index": [row[2] for row in samples], "ts": [_at(row[3]) for row in samples],
        "step_s": [float(STEP_S)] * size, "util_ratio": [0.9] * size,
        "power_mw": [320_000.0] * size, "mem_used_mib": [30_000.0] * size,
        "mem_total_mib": [40_960.0] * size, "source": ["test"] * size,
    }  # fmt: skip


@pytest.fixture
def hourly(tmp_path, inventory):
    """Generator, judge, and stores of what the advisor is shown."""
    return Hourly(tmp_path, inventory)
