"""Clusters whose fault shows in facts: sessions that idle, checkpoints too rare for the stops.

The generator draws what people do; the judge adds up, on fresh draws, what the fix would win. Both
are plain Python and share nothing with the advisor, which only sees the facts in a store.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.ledger import build
from analytics.prices import Price, load_prices
from analytics.window import Window as LedgerWindow
from collector.model import Allocation, Event, Job, JobRun
from collector.store import Store
from scheduler_advisor.window import Window

DAYS, NODES, GPUS, STEP_S = 28, 2, 8, 1800
T0 = datetime(2026, 10, 5, tzinfo=UTC)
UNTIL = T0 + timedelta(days=DAYS)
USERS = ("ann", "bob", "eve")
HOUR = 3600


@dataclass(frozen=True)
class Session:
    """A user holds one GPU from ``start`` for ``busy`` and then ``tail`` seconds of nothing."""

    user: str
    start: int
    busy: int
    tail: int
    gpu: int

    @property
    def end(self):
        return self.start + self.busy + self.tail


def sessions(seed, idle=True):
    """Each user has GPUs of an own; one session after another with a pause between."""
    rng = random.Random(f"sessions{seed}{idle}")
    found = []
    for gpu in range(NODES * GPUS - 4):
        at = rng.uniform(0, 12) * HOUR
        while at < DAYS * 24 * HOUR:
            busy = rng.lognormvariate(1.2, 0.4) * HOUR
            tail = rng.lognormvariate(2.0, 0.4) * HOUR if idle else rng.uniform(0, 0.4) * HOUR
            found.append(Session(USERS[gpu % 3], round(at), round(busy), round(tail), gpu))
            at += busy + tail + rng.uniform(4, 20) * HOUR
    return [each for each in found if each.end < DAYS * 24 * HOUR]


def culled(found, user, after_s):
    """GPU-hours a week that end earlier if a session ends ``after_s`` after its last kernel."""
    saved = sum(max(0, each.tail - after_s) for each in found if each.user == user)
    return saved / HOUR / DAYS * 7


@dataclass(frozen=True)
class Attempt:
    """One run of a training job until it was stopped or done, with the ends of its checkpoints."""

    job: int
    number: int
    start: int
    end: int
    stopped: bool
    saved: tuple[int, ...]


WRITE_S = 120


def training(seed, interval_s=HOUR, mean_stop_s=2.5 * HOUR):
    """Eight jobs of four GPUs, at all times; a stop comes at any moment, as often at any hour."""
    rng = random.Random(f"training{seed}")
    found = []
    for lane in range(NODES * GPUS // 4):
        at, job, number = lane * 600, lane * 1000, 1
        left = 30 * HOUR
        while at < DAYS * 24 * HOUR:
            until_stop = rng.expovariate(1 / mean_stop_s)
            rounds = int(until_stop // (interval_s + WRITE_S))
            need = left + int(left // interval_s) * WRITE_S
            if need <= until_stop:
                ends = [
                    at + (k + 1) * (interval_s + WRITE_S) for k in range(int(left // interval_s))
                ]
                found.append(Attempt(job, number, round(at), round(at + need), False,
                                     tuple(map(round, ends))))  # fmt: skip
                at, job, number, left = at + need + 60, job + 1, 1, 30 * HOUR
                continue
            ends = [at + (k + 1) * (interval_s + WRITE_S) for k in range(rounds)]
            found.append(Attempt(job, number, round(at), round(at + until_stop), True,
                                 tuple(map(round, ends))))  # fmt: skip
            left -= rounds * interval_s
            at, number = at + until_stop + 60, number + 1
    return [each for each in found if each.end < DAYS * 24 * HOUR]


def wasted(found, grace):
    """GPU-hours a week of work done again, and of writing; ``grace``: a notice before each stop
    lets the job write once more, so that nothing is done again."""
    again = sum(each.end - max((each.start, *each.saved)) for each in found if each.stopped)
    writing = sum(len(each.saved) + (grace and each.stopped) for each in found) * WRITE_S
    return ((0 if grace else again) + writing) * 4 / HOUR / DAYS * 7


class Planted:
    """The tools of the tests by name."""

    days = DAYS
    window = Window(T0, UNTIL)
    sessions, culled = staticmethod(sessions), staticmethod(culled)
    training, wasted = staticmethod(training), staticmethod(wasted)

    def __init__(self, folder, inventory):
        self._folder, self._count, self._inventory = folder, 0, inventory

    def _store(self):
        self._count += 1
        return Store.open(self._folder / f"{self._count}.duckdb", clock=lambda: UNTIL)

    def of_sessions(self, found):
        """A store with the sessions, sampled every half hour."""
        facts, samples = self._inventory(NODES, GPUS, T0, UNTIL), []
        for place, each in enumerate(found):
            facts += _run(str(place), 1, each.user, f"session-{each.user}", each.start, each.end,
                          [each.gpu], "COMPLETED")  # fmt: skip
            for tick in range(each.start + STEP_S, each.end, STEP_S):
                busy = 0.9 if tick - STEP_S < each.start + each.busy else 0.0
                samples.append((f"{place}:1", each.gpu, tick, busy))
        return self._filled(facts, samples)

    def of_training(self, found):
        """A store with the runs and the marks of their checkpoints."""
        facts, samples = self._inventory(NODES, GPUS, T0, UNTIL), []
        for each in found:
            lane = each.job // 1000
            gpus = list(range(lane * 4, lane * 4 + 4))
            name, run = str(each.job), f"{each.job}:{each.number}"
            state = "PREEMPTED" if each.stopped else "COMPLETED"
            facts += _run(name, each.number, "ann", "train", each.start, each.end, gpus, state)
            for end in each.saved:
                marks = (("checkpoint_begin", end - WRITE_S), ("checkpoint_end", end))
                facts += [_mark(kind, at, name, run) for kind, at in marks]
            ticks = range(each.start + STEP_S, each.end + STEP_S, STEP_S)
            samples += [(run, gpu, tick, 0.9) for gpu in gpus for tick in ticks]
        return self._filled(facts, samples)

    def _filled(self, facts, samples):
        store = self._store()
        columns = {
            "run_id": [row[0] for row in samples],
            "node": [f"n{row[1] // GPUS}" for row in samples],
            "gpu_uuid": [f"g{row[1]}" for row in samples],
            "gpu_index": [row[1] % GPUS for row in samples],
            "ts": [_at(row[2]) for row in samples], "util_ratio": [row[3] for row in samples],
            "power_mw": [50_000.0 + 300_000.0 * row[3] for row in samples],
            "mem_used_mib": [30_000.0] * len(samples), "mem_total_mib": [40_960.0] * len(samples),
        }  # fmt: skip
        with store.work() as work:
            work.append_facts(facts)
            same = {"cluster": "c", "step_s": float(STEP_S), "source": "test"}
            work.append("sample", columns | {k: [v] * len(samples) for k, v in same.items()})
            price = Price(gpu_model="A100", amount=Decimal(2), currency="USD", kind="contracted",
                          source="contract")  # fmt: skip
            load_prices(work, [price], at=T0, actor="test")
        build(store, "c", LedgerWindow(T0, UNTIL))
        return store


def _at(seconds):
    return T0 + timedelta(seconds=seconds)


def _mark(kind, at, job, run):
    return Event(cluster="c", ts=_at(at), kind=kind, job_id=job, run_id=run, source="test")


def _run(job, attempt, user, name, start, end, gpus, state):
    begin, over, run = _at(start), _at(end), f"{job}:{attempt}"
    facts = [
        JobRun(cluster="c", run_id=run, job_id=job, attempt=attempt, account="red", user_name=user,
               partition="batch", qos="normal", submit_at=begin, eligible_at=begin, start_at=begin,
               end_at=over, state=state, gpus=len(gpus), nodes=1, source="test")
    ]  # fmt: skip
    if attempt == 1:
        facts.append(
            Job(cluster="c", job_id=job, name=name, account="red", user_name=user, submit_at=begin,
                req_gpus=len(gpus), req_nodes=1, partitions=("batch",), source="test")
        )  # fmt: skip
    return facts + [
        Allocation(cluster="c", run_id=run, node=f"n{gpu // GPUS}", gpus=1, gpu_model="A100",
                   gpu_uuid=f"g{gpu}", start_at=begin, end_at=over, source="test")
        for gpu in gpus
    ]  # fmt: skip


@pytest.fixture
def planted(tmp_path, inventory):
    """Generators, judges, and stores of what the advisor is shown."""
    return Planted(tmp_path, inventory)
