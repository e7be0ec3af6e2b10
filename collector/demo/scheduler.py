"""A small scheduler, so that the demo's queues, gangs and fragments come about by themselves.

Each event is followed by a pass over the queue in order of priority, then submission: whatever
fits starts at once (greedy backfill). A job that has run out of patience gets nodes kept empty
for it. Nothing starts or ends while the scheduler itself is down.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from collector.demo.fleet import FLEET, SAMPLE_STEP_S
from collector.demo.jobs import HOUR, DemoJob, DemoRun


@dataclass(frozen=True, slots=True)
class Outage:
    """A node takes no new work over ``[since, until)`` (None = for good).

    ``kills``: what ran there ends at ``since`` as NODE_FAIL and is queued again.
    """

    node: int
    since: int
    until: int | None
    kills: bool = False


@dataclass(slots=True)
class _NodeRoom:
    """What is free on one node now."""

    gpus: list[int]
    cpus: int
    mem_mib: int
    closed: int = 0
    kept_for: DemoRun | None = None

    def fits(self, run: DemoRun) -> bool:
        job = run.job
        return (
            self.closed == 0
            and self.kept_for in (None, run)
            and len(self.gpus) >= job.gpus
            and self.cpus >= job.cpus
            and self.mem_mib >= job.mem_mib
        )


class DemoScheduler:
    """Runs the jobs over the fleet from second 0 to ``until``.

    Invariant: a GPU is in exactly one run's placement or in its node's free list.
    """

    def __init__(self, *, spread: bool, blackout: tuple[int, int] | None) -> None:
        self._spread = spread
        self._blackout = blackout
        self._rooms = [_NodeRoom(list(range(n.gpus)), n.cpus, n.mem_mib) for n in FLEET]
        self._nodes_of: dict[str, list[int]] = {}
        for index, node in enumerate(FLEET):
            self._nodes_of.setdefault(node.partition, []).append(index)
        self._queue: list[DemoRun] = []
        self._running: list[DemoRun] = []
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._sequence = 0
        self.runs: list[DemoRun] = []

    def run(self, jobs: Sequence[DemoJob], outages: Sequence[Outage], until: int) -> list[DemoRun]:
        """Every run that came about, in order of becoming eligible."""
        for job in jobs:
            self._at(job.submit, lambda now, job=job: self._submit(job, now))  # type: ignore[misc]
        for outage in outages:
            self._at(outage.since, lambda now, outage=outage: self._close(outage, now))  # type: ignore[misc]
            if outage.until is not None:
                self._at(outage.until, lambda now, node=outage.node: self._reopen(node))  # type: ignore[misc]
        while self._events and self._events[0][0] < until:
            now = self._events[0][0]
            while self._events and self._events[0][0] == now:
                heapq.heappop(self._events)[2](now)
            self._pass(now)
        return self.runs

    def _at(self, second: int, what: Callable[[int], None]) -> None:
        if self._blackout and self._blackout[0] <= second < self._blackout[1]:
            second = self._blackout[1]
        self._sequence += 1
        heapq.heappush(self._events, (second, self._sequence, what))

    def _submit(self, job: DemoJob, now: int) -> None:
        job.submit = now
        run = self._enqueue(job, 1, now, job.run_s)
        if job.patience_s is not None:
            self._at(now + job.patience_s, lambda at: self._keep_nodes_for(run, at))
        if job.cancel_after_s is not None:
            self._at(now + job.cancel_after_s, lambda at: self._withdraw(run, at))

    def _enqueue(self, job: DemoJob, attempt: int, now: int, length_s: int) -> DemoRun:
        run = DemoRun(job, attempt, now, length_s)
        self.runs.append(run)
        self._queue.append(run)
        # Stable: equal keys keep the order in which they came.
        self._queue.sort(key=lambda r: (-r.job.priority, r.job.submit))
        return run

    def _withdraw(self, run: DemoRun, now: int) -> None:
        if run.start is None:
            self._queue.remove(run)
            run.end, run.state = now, "CANCELLED"

    def _pass(self, now: int) -> None:
        refused: set[tuple[str, int, int, int, int]] = set()
        waiting = []
        for run in self._queue:
            job = run.job
            shape = (job.partition, job.nodes, job.gpus, job.cpus, job.mem_mib)
            patient = job.patience_s is None  # for the others, nodes may be kept
            chosen = None if patient and shape in refused else self._place(run)
            if chosen is None:
                if patient:
                    refused.add(shape)
                waiting.append(run)
            else:
                self._start(run, chosen, now)
        self._queue = waiting

    def _place(self, run: DemoRun) -> list[int] | None:
        nodes = [n for n in self._nodes_of[run.job.partition] if self._rooms[n].fits(run)]
        if len(nodes) < run.job.nodes:
            return None
        sign = -1 if self._spread else 1
        nodes.sort(key=lambda n: (sign * len(self._rooms[n].gpus), n))
        return nodes[: run.job.nodes]

    def _start(self, run: DemoRun, nodes: Sequence[int], now: int) -> None:
        job = run.job
        for node in nodes:
            room = self._rooms[node]
            taken, room.gpus = room.gpus[: job.gpus], room.gpus[job.gpus :]
            room.cpus -= job.cpus
            room.mem_mib -= job.mem_mib
            run.placement.append((node, tuple(taken)))
        for room in self._rooms:
            if room.kept_for is run:
                room.kept_for = None
        run.start, run.state = now, "RUNNING"
        self._running.append(run)
        self._at(_on_tick(now + run.length_s), lambda at: self._finish(run, at))
        if job.preemptor is not None and run.attempt == 1:
            assert job.preempt_after_s is not None
            self._at(now + job.preempt_after_s, lambda at: self._preempt(run, at))

    def _release(self, run: DemoRun, now: int, state: str, reason: str | None = None) -> None:
        run.end, run.state, run.reason = now, state, reason
        self._running.remove(run)
        for node, gpus in run.placement:
            room = self._rooms[node]
            room.gpus = sorted([*room.gpus, *gpus])
            room.cpus += run.job.cpus
            room.mem_mib += run.job.mem_mib

    def _finish(self, run: DemoRun, now: int) -> None:
        if run.end is not None:
            return
        job = run.job
        if run.attempt < job.attempts:
            self._release(run, now, "FAILED", "NonZeroExitCode")
            self._at(now + 60, lambda at: self._again(run, at, job.run_s))
        else:
            self._release(run, now, job.outcome)

    def _again(self, run: DemoRun, now: int, length_s: int) -> None:
        self._enqueue(run.job, run.attempt + 1, now, length_s)

    def _preempt(self, victim: DemoRun, now: int) -> None:
        """The preemptor takes the victim's place; the victim goes on from its last checkpoint."""
        if victim.end is not None or victim.job.preemptor is None or victim.start is None:
            return
        urgent = victim.job.preemptor
        nodes = [node for node, _ in victim.placement]
        self._release(victim, now, "PREEMPTED", f"preempted by job {urgent.job_id}")
        urgent.submit = now
        run = DemoRun(urgent, 1, now, urgent.run_s)
        self.runs.append(run)
        self._start(run, nodes, now)
        every = victim.job.checkpoint_every_s
        kept_s = 0 if every is None else (now - victim.start) // every * every
        self._again(victim, now, victim.length_s - kept_s)

    def _keep_nodes_for(self, run: DemoRun, now: int) -> None:
        """Keep the nodes that will be empty first, none that a more urgent job has kept."""
        if run.start is not None or run.end is not None:
            return
        nodes = [n for n in self._nodes_of[run.job.partition] if self._may_keep(run, n)]
        nodes.sort(key=lambda n: (self._empty_by(n), n))
        if len(nodes) < run.job.nodes:
            self._at(now + HOUR, lambda at: self._keep_nodes_for(run, at))
            return
        for node in nodes[: run.job.nodes]:
            self._rooms[node].kept_for = run

    def _may_keep(self, run: DemoRun, node: int) -> bool:
        keeper = self._rooms[node].kept_for
        outranked = keeper is None or keeper.job.priority < run.job.priority
        return self._rooms[node].closed == 0 and outranked

    def _empty_by(self, node: int) -> int:
        """When the last run there must have ended, by the limits."""
        ends = [
            run.start + run.job.limit_s
            for run in self._running
            if run.start is not None and any(node == held for held, _ in run.placement)
        ]
        return max(ends, default=0)

    def _close(self, outage: Outage, now: int) -> None:
        self._rooms[outage.node].closed += 1
        if not outage.kills:
            return
        for run in [r for r in self._running if any(n == outage.node for n, _ in r.placement)]:
            self._release(run, now, "NODE_FAIL", "NodeDown")
            self._again(run, now, run.length_s)

    def _reopen(self, node: int) -> None:
        self._rooms[node].closed -= 1


def _on_tick(second: int) -> int:
    """Runs end when samples are taken: else the idle sample after each would tell its last minutes,
    and the planted means would come out lower than stated."""
    return -(-second // SAMPLE_STEP_S) * SAMPLE_STEP_S
