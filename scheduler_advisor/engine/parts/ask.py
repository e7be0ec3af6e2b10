"""What each job asks of the machines, and finding it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.parts.floor import (
    Floor,
    Piece,
    marks_of,
    release,
    take_share,
    take_slice,
    take_whole,
    unmark,
)
from scheduler_advisor.engine.parts.interference import Demand
from scheduler_advisor.engine.parts.levels import Tree
from scheduler_advisor.engine.parts.mig import WHOLE, Profile, serving
from scheduler_advisor.engine.parts.reference_gang import Site, gang_nodes
from scheduler_advisor.engine.parts.settings import Sharing
from scheduler_advisor.engine.policy import Placement, Policy


@dataclass(frozen=True, slots=True)
class Ask:
    """`tasks` tasks of `gpus` GPUs, or of `milli` thousandths of one, each with CPU and memory;
    a smaller last one of `rest`. `nodes`: where it may run, in the cluster's order."""

    job: int
    tasks: int
    gpus: int
    milli: int
    rest: int
    cpu: int
    mem: int
    latency: bool
    nodes: tuple[int, ...]
    need: str
    distinct: bool = False  # each task on a node of its own
    exclusive: bool = False  # each task has its node to itself, with all that is on it
    part: bool = False  # it asks for a part of a GPU, though it gets a whole node
    closed: frozenset[int] = frozenset()  # of `nodes`, those that others have reserved

    def rest_part(self, amount: int) -> int:
        """The rest's share of a task's CPU or memory, rounded up."""
        return -(-amount * self.rest // self.gpus) if self.gpus else 0


def ask_of(jobs: Jobs, job: int, nodes: Sequence[int], sharing: Sharing, need: str) -> Ask:
    """What the job asks for; without sharing a part of a GPU becomes a whole one."""
    milli = int(jobs.gpu_milli[job])
    gpus = int(jobs.gpus_per_task[job])
    exclusive = bool(jobs.exclusive[job])
    if milli and (sharing is Sharing.NONE or exclusive):
        milli, gpus = 0, 1
    return Ask(
        job,
        int(jobs.tasks[job]),
        gpus,
        milli,
        int(jobs.rest_gpus[job]),
        int(jobs.cpu_milli[job]),
        int(jobs.mem_mib[job]),
        bool(jobs.latency_sensitive[job]),
        tuple(nodes),
        need,
        bool(jobs.distinct_nodes[job]),
        exclusive,
        exclusive and bool(jobs.gpu_milli[job]),
    )


def size_of(ask: Ask, part: int, floor: Floor, sharing: Sharing) -> int:
    """Thousandths of GPUs that the job counts in its queues; `part`: of a GPU, which it asked for.
    A slice counts as what it is, the largest of those that would serve it; a part without sharing
    is a whole GPU; nodes to itself are what it asks for."""
    task = ask.gpus * WHOLE + ask.milli
    if ask.part and sharing is not Sharing.NONE:
        task = part
    if ask.milli and sharing is Sharing.MIG:
        found = [profile_for(floor, node, ask) for node in ask.nodes]
        task = max((one.bandwidth_milli for one in found if one is not None), default=task)
    return ask.tasks * task + ask.rest * WHOLE


class Guard(Protocol):
    """Refuses nodes on which a promise to somebody would be broken; hears of what is taken."""

    def safe(self, node: int, gpus: int, cpu: int, mem: int) -> bool: ...

    def take(self, node: int, gpus: int, cpu: int, mem: int, sign: int) -> None: ...


def place(
    floor: Floor, ask: Ask, tasks: int, policy: Policy, tree: Tree, guard: Guard | None = None
) -> list[Piece] | None:
    """Puts `tasks` tasks and the rest on the floor, or changes nothing and says None."""
    marks = marks_of(floor) if policy.sharing.kind is Sharing.MIG else []
    pieces: list[Piece] = []
    networked = _networked(ask, policy)
    chosen = _by_network(floor, ask, tasks, tree, guard) if networked else None
    if networked and chosen is None:
        return None
    for task in range(tasks):
        used = {piece.node for piece in pieces} if ask.distinct else set()
        piece = _one(floor, ask, policy, chosen[task] if chosen is not None else None, used, guard)
        if piece is None:
            _undo(floor, pieces, ask.job, guard)
            unmark(marks)
            return None
        pieces.append(piece)
    if ask.rest:
        node = _rest_node(floor, ask, policy, tree, pieces, guard)
        if node is None:
            _undo(floor, pieces, ask.job, guard)
            unmark(marks)
            return None
        cpu, mem = ask.rest_part(ask.cpu), ask.rest_part(ask.mem)
        taken = taken_of(floor, node, ask, ask.rest, cpu, mem)
        pieces.append(take_whole(floor, node, ask.job, *taken))
        if guard is not None:
            guard.take(node, *taken, 1)
    return pieces


def _undo(floor: Floor, pieces: Sequence[Piece], job: int, guard: Guard | None) -> None:
    lift(floor, pieces, job)
    if guard is not None:
        for piece in pieces:
            guard.take(piece.node, len(piece.gpus), piece.cpu, piece.mem, -1)


def lift(floor: Floor, pieces: Sequence[Piece], job: int) -> None:
    """Takes the job's tasks off the floor."""
    for piece in pieces:
        release(floor, piece, job)


def _networked(ask: Ask, policy: Policy) -> bool:
    return policy.placement is Placement.TOPOLOGY and ask.gpus > 0 and not ask.part


def _one(
    floor: Floor,
    ask: Ask,
    policy: Policy,
    node: int | None,
    used: set[int],
    guard: Guard | None,
) -> Piece | None:
    if ask.milli:
        return _share(floor, ask, policy, used)
    able = [node] if node is not None else [one for one in ask.nodes if one not in used]
    need = (ask.gpus, ask.cpu, ask.mem)
    able = [one for one in able if _fits(floor, one, ask, *need)]
    if guard is not None:
        able = [one for one in able if guard.safe(one, *taken_of(floor, one, ask, *need))]
    chosen = _preferred(floor, able, policy.placement)
    if chosen is None:
        return None
    taken = taken_of(floor, chosen, ask, *need)
    if guard is not None:
        guard.take(chosen, *taken, 1)
    return take_whole(floor, chosen, ask.job, *taken)


def _fits(floor: Floor, node: int, ask: Ask, gpus: int, cpu: int, mem: int) -> bool:
    machine = floor[node]
    if machine.down or node in ask.closed or (ask.exclusive and machine.tasks):
        return False
    return machine.cpu >= cpu and machine.mem >= mem and machine.whole >= gpus


def taken_of(
    floor: Floor, node: int, ask: Ask, gpus: int, cpu: int, mem: int
) -> tuple[int, int, int]:
    """What a task takes of a node where it fits: all of it, if the job has nodes to itself."""
    machine = floor[node]
    return (machine.whole, machine.cpu, machine.mem) if ask.exclusive else (gpus, cpu, mem)


def _preferred(floor: Floor, able: Sequence[int], placement: Placement) -> int | None:
    if not able:
        return None
    if placement is Placement.FIRST_FIT:
        return able[0]
    if placement is Placement.WORST_FIT:
        return min(able, key=lambda node: (-floor[node].whole, node))
    return min(able, key=lambda node: (floor[node].whole, node))


def _share(floor: Floor, ask: Ask, policy: Policy, used: set[int]) -> Piece | None:
    """On a GPU that is shared already, the fullest that has room; else on a free one of the node
    with the least free GPUs. By count alone, first-fit and worst-fit choose the node before."""
    kind = policy.sharing.kind
    able = [
        node
        for node in ask.nodes
        if floor[node].down == 0 and floor[node].cpu >= ask.cpu and floor[node].mem >= ask.mem
        if node not in ask.closed and node not in used
    ]
    if kind is Sharing.MIG:
        return _sliced(floor, ask, able)
    opened, fresh = [], []
    for node in able:
        for at, gpu in enumerate(floor[node].gpus):
            if gpu.shares and gpu.left >= ask.milli:
                apart = kind is not Sharing.ASKED and gpu.latency != ask.latency
                if not apart and (kind is Sharing.ASKED or len(gpu.shares) < policy.sharing.most):
                    opened.append((floor[node].whole, node, gpu.left, at))
            elif gpu.free:
                fresh.append((floor[node].whole, node, bool(gpu.cuts), at))
    if not opened and not fresh:
        return None
    _, node, _, at = _by_placement(opened, fresh, policy)
    return take_share(floor, node, at, ask.job, ask.milli, ask.cpu, ask.mem, ask.latency)


def _by_placement(
    opened: list[tuple[int, int, int, int]], fresh: list[tuple[int, int, bool, int]], policy: Policy
) -> tuple[int, int, int, int]:
    """Of (free GPUs, node, room on the GPU, GPU), the one that the placement rule takes."""
    kind = policy.placement
    if policy.sharing.kind is not Sharing.ASKED or kind not in (
        Placement.FIRST_FIT,
        Placement.WORST_FIT,
    ):
        return min(opened or fresh)
    both = [*opened, *((whole, node, WHOLE, at) for whole, node, _, at in fresh)]
    if kind is Placement.FIRST_FIT:
        return min(both, key=lambda one: one[1:])
    return min(both, key=lambda one: (-one[0], *one[1:]))


def _sliced(floor: Floor, ask: Ask, able: Sequence[int]) -> Piece | None:
    """An idle slice of the profile; else a GPU that is cut already; else a free one."""
    found = []
    for node in able:
        wanted = profile_for(floor, node, ask)
        if wanted is None:
            continue
        for at, gpu in enumerate(floor[node].gpus):
            if gpu.whole is None and not gpu.shares:
                idle = any(cut.job is None and cut.profile == wanted for cut in gpu.cuts)
                rank = 0 if idle and gpu.busy else 1 if idle else 2 if gpu.busy else 3
                found.append((rank, floor[node].whole, node, at))
    for _, _, node, at in sorted(found):
        wanted = profile_for(floor, node, ask)
        assert wanted is not None  # filtered above
        piece = take_slice(floor, node, at, ask.job, wanted, ask.cpu, ask.mem)
        if piece is not None:
            return piece
    return None


def profile_for(floor: Floor, node: int, ask: Ask) -> Profile | None:
    """The slice that serves the job on this node; None where its GPUs cannot be cut for it."""
    return serving(floor[node].profiles, ask.milli)


def demand_of(ask: Ask) -> Demand:
    """What is known of a job that asks for a part: that part, of everything."""
    return Demand.of_share(ask.milli, ask.latency)


def _by_network(
    floor: Floor, ask: Ask, tasks: int, tree: Tree, guard: Guard | None
) -> list[int] | None:
    rooms: dict[int, int] = {}
    free: dict[int, int] = {}
    for node in ask.nodes:
        machine = floor[node]
        if machine.down:
            continue
        free[node] = machine.whole
        room = free[node] // ask.gpus
        if ask.cpu:
            room = min(room, machine.cpu // ask.cpu)
        if ask.mem:
            room = min(room, machine.mem // ask.mem)
        if ask.exclusive:
            room = min(room, 1)
        if node in ask.closed or (ask.exclusive and machine.tasks):
            room = 0
        taken = taken_of(floor, node, ask, ask.gpus, ask.cpu, ask.mem)
        if room > 0 and guard is not None and not guard.safe(node, *taken):
            room = 0
        rooms[node] = min(room, 1) if ask.distinct else room
    return gang_nodes(site_of(tree, free), rooms, tasks, ask.need)


def site_of(tree: Tree, free: Mapping[int, int]) -> Site:
    """The nodes as the search by network sees them."""
    return Site(
        free,
        {node: int(tree.leaf[node]) for node in free},
        {node: int(tree.spine[node]) for node in free},
        {node: int(tree.rack[node]) for node in free},
    )


def _rest_node(
    floor: Floor,
    ask: Ask,
    policy: Policy,
    tree: Tree,
    pieces: Sequence[Piece],
    guard: Guard | None,
) -> int | None:
    cpu, mem = ask.rest_part(ask.cpu), ask.rest_part(ask.mem)
    able = [node for node in ask.nodes if _fits(floor, node, ask, ask.rest, cpu, mem)]
    if ask.distinct:
        able = [node for node in able if node not in {piece.node for piece in pieces}]
    if guard is not None:
        rest = (ask.rest, cpu, mem)
        able = [node for node in able if guard.safe(node, *taken_of(floor, node, ask, *rest))]
    if not _networked(ask, policy):
        return _preferred(floor, able, policy.placement)
    last, used = pieces[-1].node, {piece.node for piece in pieces}
    found = []
    for node in able:
        far = 1 if tree.leaf[node] == tree.leaf[last] else 2
        far = far if tree.spine[node] == tree.spine[last] else 3
        inside = {
            "node": node in used,
            "leaf": far == 1,
            "spine": far <= 2,
            "block": tree.rack[node] == tree.rack[last],
        }
        if inside.get(ask.need, True):
            found.append((0 if node in used else far, floor[node].whole, node))
    return min(found)[2] if found else None
