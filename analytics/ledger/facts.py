"""The facts that a build reads, without doubles; times are microseconds since 1970.

Every query gives the same rows whatever the order in which facts arrived: doubles are folded by
key,
a known end wins over an open one, and a later inventory row ends the one before it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from analytics.ledger import factqueries as sql
from analytics.ledger.allocations import Allocations
from analytics.ledger.runs import Runs
from analytics.window import from_us
from collector.store import Work

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Pool:
    """GPUs of one model on one node over ``[t0, t1)``."""

    node: str
    model: str
    gpus: int
    cpus: int | None
    mem_mib: int | None
    partitions: tuple[str, ...]
    rack: str | None
    leaf: str | None
    spine: str | None
    owned: bool
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A named state of a node (or of the cluster: node None) over ``[t0, t1)``."""

    node: str | None
    kind: str
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """GPUs of a node kept for accounts; ``gpus`` None = all of them, no accounts = for
    everybody."""

    name: str
    node: str
    gpus: int | None
    accounts: frozenset[str]
    t0: int
    t1: int


@dataclass(frozen=True, slots=True)
class Fatal:
    """A GPU broke at ``t``; ``by_name``: only who holds it by name can have held it."""

    node: str
    gpu_uuid: str | None
    run_id: str | None
    job_id: str | None
    t: int
    by_name: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything of one cluster that bears on ``[since, until)``."""

    cluster: str
    since: int
    until: int
    pools: list[Pool]
    allocations: Allocations
    states: list[Interval]
    coverage: list[Interval]
    reservations: list[Reservation]
    fatals: list[Fatal]
    runs: Runs
    seen: list[tuple[str, int]]
    """(gpu_uuid, instant) at which a GPU that broke was taken out, or given to a run again."""


def load(work: Work, cluster: str, since: int, until: int, *, lead: int = 0) -> Facts:
    """Facts of ``cluster`` that overlap ``[since - lead, until)``."""
    span = [from_us(until), from_us(since - lead)]
    states_ever = work.rows(sql.STATES, [cluster, span[0], from_us(0)])
    return Facts(
        cluster=cluster,
        since=since,
        until=until,
        pools=[_pool(row) for row in work.rows(sql.NODES, [cluster, *span])],
        allocations=Allocations.of(
            work.query(sql.ALLOCATIONS, [cluster, span[0], cluster, cluster, span[1]])
        ),
        states=[
            Interval(row["node"], row["state"], row["t0"], _end(row["t1"])) for row in states_ever
        ],
        coverage=[Interval(**row) for row in work.rows(sql.COVERAGE, [cluster, *span])],
        reservations=[_reservation(row) for row in work.rows(sql.RESERVATIONS, [cluster, *span])],
        fatals=[Fatal(**row) for row in work.rows(sql.FATALS, [cluster, span[0]])],
        runs=_runs(work, [cluster, *span]),
        seen=[(row["gpu_uuid"], row["t"]) for row in work.rows(sql.SEEN, [cluster])],
    )


def _runs(work: Work, params: list[object]) -> Runs:
    told = Runs(work.query(sql.RUNS_AS_TOLD, params))
    return Runs(work.query(sql.RUNS, params)) if told.told_twice else told


def inventory(work: Work, cluster: str, since: int, until: int) -> Facts:
    """Only what decides how many GPUs are installed: pools without CPUs, memory and places, states
    of power alone."""
    off: dict[tuple[str, int], int | None] = {}
    for row in work.rows(sql.POWERED_DOWN, [cluster, from_us(until)]):
        key = row["node"], row["t0"]
        off[key] = _later(off.get(key), row["t1"])
    states = [Interval(node, "powered_down", t0, _end(t1)) for (node, t0), t1 in off.items()]
    pools = _installed(work.rows(sql.INSTALLED, [cluster, from_us(until)]), since)
    none = Allocations.none()
    return Facts(cluster, since, until, pools, none, states, [], [], [], Runs.none(), [])


def _installed(rows: list[dict[str, Any]], since: int) -> list[Pool]:
    """Pools that end after ``since``. Of rows that tell the same pool's beginning, the largest
    count and the latest end that is known hold, and it is owned if any says so; it ends at latest
    where the next one begins."""
    told: dict[tuple[str, str], dict[int, tuple[int, int | None, bool]]] = {}
    for row in rows:
        pool = told.setdefault((row["node"], row["gpu_model"]), {})
        gpus, end, owned = pool.get(row["t0"], (0, None, False))
        pool[row["t0"]] = max(gpus, row["gpus"]), _later(end, row["t1"]), owned or row["owned"]
    found = []
    for (node, model), pool in sorted(told.items()):
        begins = sorted(pool)
        for t0, after in itertools.zip_longest(begins, begins[1:], fillvalue=FOREVER):
            gpus, end, owned = pool[t0]
            t1 = min(_end(end), after)
            if since < t1 and t0 < t1:
                found.append(
                    Pool(node, model, gpus, None, None, (), None, None, None, owned, t0, t1)
                )
    return found


def _later(one: int | None, other: int | None) -> int | None:
    """The later of two ends; None where neither is known."""
    return max((end for end in (one, other) if end is not None), default=None)


def _end(t1: int | None) -> int:
    return FOREVER if t1 is None else t1


def _pool(row: dict[str, Any]) -> Pool:
    return Pool(
        row["node"], row["gpu_model"], row["gpus"], row["cpus"], row["mem_mib"],
        tuple(row["partitions"] or ()), row["rack"], row["leaf"], row["spine"], row["owned"],
        row["t0"], _end(row["t1"]),
    )  # fmt: skip


def _reservation(row: dict[str, Any]) -> Reservation:
    return Reservation(
        row["name"], row["node"], row["gpus"], frozenset(row["accounts"] or ()),
        row["t0"], _end(row["t1"]),
    )  # fmt: skip
