"""Defragmentation: which running tasks to move so that nodes come free whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenant:
    """A job's tasks on one node, for a pass of moves. `cost_s`: checkpoint and restore;
    `left_s`: how long it is believed to run on; `movable`: it may be stopped, and its tasks may lie
    anywhere; `held`: GPUs that the whole job holds, which all stand still when some of them move
    (0: those of this node); `barred`: nodes
    that others have reserved before it ends."""

    job: int
    gpus: int
    cpu: int
    mem: int
    cost_s: int
    left_s: int
    movable: bool
    held: int = 0
    barred: frozenset[int] = frozenset()

    @property
    def still(self) -> int:
        """GPUs that stand still for a move."""
        return self.held or self.gpus


@dataclass(frozen=True, slots=True)
class House:
    """One node that is up: what is free, and who is on it."""

    node: int
    total: int
    free: int
    cpu: int
    mem: int
    kind: int  # tenants may move between nodes of one kind
    tenants: tuple[Tenant, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """A job leaves one node for another."""

    job: int
    source: int
    target: int


def scattered_share(houses: Sequence[House]) -> float:
    """The share of idle GPUs that lie on nodes in use; 0 where none is idle."""
    idle = sum(house.free for house in houses)
    beside = sum(house.free for house in houses if 0 < house.free < house.total)
    return beside / idle if idle else 0.0


def plan_moves(houses: Sequence[House], most: int, horizon_s: int, min_gain: float) -> list[Move]:
    """At most `most` moves that empty nodes, the one with the fewest GPUs in use first.

    A node is emptied as a whole or not at all, largest tenant first, each to the node in use with
    the least free GPUs that takes it (ties: the lowest), and only if what is won outlasts what it
    costs: its idle GPUs, whole-node usable until the node would have come free by itself (at most
    `horizon_s`), against the GPU-seconds in which the moved jobs stand still. A node that took a
    tenant in this pass is not emptied in it, and no job moves twice in it."""
    room = {house.node: [house.free, house.cpu, house.mem] for house in houses}
    by_node = {house.node: house for house in houses}
    moves: list[Move] = []
    settled: set[int] = set()
    moved: set[int] = set()
    partly = [house for house in houses if house.tenants and house.free > 0]
    for house in sorted(partly, key=lambda one: (one.total - one.free, one.node)):
        if house.node in settled or not worth_moving(house, horizon_s, min_gain):
            continue
        if moved & {tenant.job for tenant in house.tenants}:
            continue
        found = _emptied(house, room, by_node, {move.source for move in moves})
        if found is None or len(moves) + len(found) > most:
            continue
        for move, tenant in found:
            _shift(room, move.target, tenant, -1)
            settled.add(move.target)
            moves.append(move)
            moved.add(move.job)
        room[house.node] = [-1, -1, -1]  # nobody moves in
    return moves


def worth_moving(house: House, horizon_s: int, min_gain: float) -> bool:
    """Whether emptying the node wins more GPU-seconds than it costs, `min_gain` times."""
    if not all(tenant.movable for tenant in house.tenants):
        return False
    lasts = min(horizon_s, max(tenant.left_s for tenant in house.tenants))
    cost = sum(tenant.still * tenant.cost_s for tenant in house.tenants)
    return house.free * lasts >= min_gain * cost and lasts > 0


def _emptied(
    house: House,
    room: Mapping[int, list[int]],
    by_node: Mapping[int, House],
    emptied: set[int],
) -> list[tuple[Move, Tenant]] | None:
    trial = {node: list(free) for node, free in room.items()}
    found = []
    for tenant in sorted(house.tenants, key=lambda one: (-one.gpus, one.job)):
        able = [
            node
            for node, (gpus, cpu, mem) in trial.items()
            if node != house.node
            and node not in emptied
            and node not in tenant.barred
            and by_node[node].tenants
            and by_node[node].kind == house.kind
            and gpus >= tenant.gpus
            and cpu >= tenant.cpu
            and mem >= tenant.mem
        ]
        if not able:
            return None
        target = min(able, key=lambda node: (trial[node][0], node))
        _shift(trial, target, tenant, -1)
        found.append((Move(tenant.job, house.node, target), tenant))
    return found


def _shift(room: Mapping[int, list[int]], node: int, tenant: Tenant, sign: int) -> None:
    for at, amount in enumerate((tenant.gpus, tenant.cpu, tenant.mem)):
        room[node][at] += sign * amount
