"""The cluster at one instant: what is free on each node, what holds it, what is in the way."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from analytics.ledger.allocations import Allocation
from analytics.ledger.broken import mark_failed
from analytics.ledger.facts import Facts, load
from analytics.ledger.fleet import FAILED_STATES, Fleet
from analytics.ledger.resolve import resolve
from collector.store import Work


@dataclass(frozen=True, slots=True)
class Holding:
    """What one run holds on one node."""

    run_id: str
    job_id: str
    account: str | None
    gpus: int
    cpu_milli: int
    mem_mib: int


@dataclass(frozen=True, slots=True)
class NodeNow:
    """One pool now; ``closed`` says why none of its free GPUs may be used, None = they may.

    CPU in thousandths; None = not known, never in the way.
    """

    node: str
    model: str
    partitions: tuple[str, ...]
    leaf: str | None
    rack: str | None
    spine: str | None
    installed: int
    free: int
    cpu_milli: int | None
    mem_mib: int | None
    closed: str | None
    holdings: tuple[Holding, ...]

    @property
    def open_gpus(self) -> int:
        """Free GPUs that may be used."""
        return 0 if self.closed else self.free


def state_at(work: Work, cluster: str, t: int) -> list[NodeNow]:
    """Every pool of ``cluster`` at ``t`` (microseconds), by node name."""
    facts = load(work, cluster, t, t + 1)
    fleet = Fleet.of(facts)
    held = resolve(facts, fleet, t, t + 1)
    broken = mark_failed(facts, fleet, held)
    taken = [0.0] * len(fleet.pools)
    boards: set[tuple[int, str]] = set()
    for piece in held.all_pieces():
        if piece.gpu is None:
            taken[piece.pool] += piece.units // held.per_gpu
        elif (piece.pool, piece.gpu) not in boards:
            boards.add((piece.pool, piece.gpu))
            taken[piece.pool] += 1
    for breakage in broken.loose:
        taken[breakage.pool] += 1
    live = defaultdict(list)
    for a in facts.allocations:
        if a.t0 <= t < a.t1:
            live[a.node].append(a)
    return [
        _node(facts, fleet, (pool, int(taken[pool])), live[fleet.pools[pool][0]])
        for pool in range(len(fleet.pools))
    ]


def _node(facts: Facts, fleet: Fleet, place: tuple[int, int], live: list[Allocation]) -> NodeNow:
    """The pool and how many of its GPUs are taken, by the allocations that its node has now."""
    pool, taken = place
    name, model = fleet.pools[pool]
    t = facts.since
    row = fleet.inventory[pool][-1]
    installed = sum(n for t0, t1, n in fleet.installed[pool] if t0 <= t < t1)
    holdings = _holdings(facts, live)
    cpu = None if row.cpus is None else row.cpus * 1000 - sum(h.cpu_milli for h in holdings)
    mem = None if row.mem_mib is None else row.mem_mib - sum(h.mem_mib for h in holdings)
    return NodeNow(
        name, model, row.partitions, row.leaf, row.rack, row.spine, installed,
        max(installed - taken, 0), cpu, mem, _closed(facts, name, t), holdings,
    )  # fmt: skip


def _holdings(facts: Facts, live: list[Allocation]) -> tuple[Holding, ...]:
    found: dict[str, Holding] = {}
    for a in live:
        run = facts.runs.get(a.run_id)
        known = found.get(a.run_id)
        gpus = a.gpus + (known.gpus if known else 0)
        cpu = max(a.cpus * 1000, known.cpu_milli if known else 0)
        mem = max(a.mem_mib, known.mem_mib if known else 0)
        job, account = (run.job_id, run.account) if run else (a.run_id, None)
        found[a.run_id] = Holding(a.run_id, job, account, gpus, cpu, mem)
    return tuple(found[run_id] for run_id in sorted(found))


def _closed(facts: Facts, node: str, t: int) -> str | None:
    kinds = [s.kind for s in facts.states if s.node == node and s.t0 <= t < s.t1]
    if any(kind in FAILED_STATES for kind in kinds):
        return "failed"
    if kinds:
        return "drained"
    covered = any(
        w.kind == "scheduler" and w.node in (None, node) and w.t0 <= t < w.t1
        for w in facts.coverage
    )
    if not covered:
        return "unknown"
    kept = any(r.node == node and r.gpus is None and r.t0 <= t < r.t1 for r in facts.reservations)
    return "reserved" if kept else None
