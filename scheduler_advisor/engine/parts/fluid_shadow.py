"""EASY's promise to the head in the parts' driver: when it will fit, and what must not be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler_advisor.engine.parts.ask import Ask
from scheduler_advisor.engine.parts.floor import Piece
from scheduler_advisor.engine.parts.mig import WHOLE

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.fluid import Fluid

TASKS = 3  # column of what is left: tasks that lie there
MANY = 1 << 16  # tasks that ask for nothing
Left = dict[int, list[int]]


@dataclass
class Promise:
    """The instant at which the head will fit if all ends as believed, and what its nodes have free
    then; `free`: thousandths of all GPUs."""

    at: float
    head: Ask
    left: Left
    free: int

    def safe(self, node: int, gpus: int, cpu: int, mem: int) -> bool:
        """Does the head still fit if one more such task is on the node at that instant?"""
        if node not in self.left:
            return True
        self.take(node, gpus, cpu, mem, 1)
        fits = enough(self.head, self.left)
        self.take(node, gpus, cpu, mem, -1)
        return fits

    def take(self, node: int, gpus: int, cpu: int, mem: int, sign: int) -> None:
        """A task that outlasts the instant is on the node, or is not after all."""
        if node in self.left:
            for at, amount in enumerate((gpus, cpu, mem, -1)):
                self.left[node][at] -= sign * amount


def promise_to(fluid: Fluid, head: Ask, size: int) -> Promise:
    """What the head is promised, as things stand."""
    left = {
        node: [machine.whole, machine.cpu, machine.mem, machine.tasks]
        for node in head.nodes
        if not (machine := fluid.floor[node]).down
    }
    free, keep = fluid.free_milli(), fluid.cluster.headroom_gpus * WHOLE
    ends: dict[int, list[tuple[list[Piece], int]]] = {}
    for believed, pieces, held in fluid.believed_ends():
        ends.setdefault(believed, []).append((pieces, held))
    for at in sorted(ends):
        for pieces, held in ends[at]:
            free += held
            for piece in pieces:
                if piece.node in left:
                    amounts = (len(piece.gpus), piece.cpu, piece.mem, -1)
                    for column, amount in enumerate(amounts):
                        left[piece.node][column] += amount
        until = at + int(fluid.jobs.limit[head.job])
        able = {node: left[node] for node in fluid.windows.open_to(head.job, [*left], at, until)}
        if enough(head, able) and free - size >= keep:
            return Promise(at, head, able, free)
    return Promise(float("inf"), head, {}, 0)


def enough(head: Ask, left: Left) -> bool:
    """Do all tasks of the head fit into what is left, node by node?"""
    tasks = _count(head, left, head.gpus, head.cpu, head.mem)
    if tasks < head.tasks:
        return False
    if not head.rest:
        return True
    rest = _count(head, left, head.rest, head.rest_part(head.cpu), head.rest_part(head.mem))
    return rest >= head.tasks + 1


def _count(head: Ask, left: Left, gpus: int, cpu: int, mem: int) -> int:
    total = 0
    for here in left.values():
        room = MANY
        for have, need in zip(here, (gpus, cpu, mem), strict=False):
            if need:
                room = min(room, have // need)
        if head.exclusive and here[TASKS]:
            continue
        total += max(0, min(room, 1) if head.distinct or head.exclusive else room)
    return total
