"""What a run holds on each of its nodes, from its totals.

sacct gives totals per run. The rule, in this order: CPUs and memory are split evenly, the rest
going to the first nodes; GPUs are split evenly among the nodes that have any, never above what a
node has while another has room. On a node with one GPU type the type is the inventory's; on a
node with several, the types that AllocTRES names are filled first, then the node's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.slurm.tres import Tres

Inventory = Mapping[str, Mapping[str | None, int]]
"""GPUs by type, by node name."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one run holds on one node of one GPU type."""

    node: str
    gpu_model: str | None
    gpus: int
    cpus: int | None
    mem_mib: int | None


def shares(held: Tres, nodes: Sequence[str], inventory: Inventory) -> list[Share]:
    """One share per node, or per node and GPU type; the sums equal ``held`` exactly."""
    if len(nodes) == 1 and len(inventory.get(nodes[0], ())) == 1:
        (kind,) = inventory[nodes[0]]
        return [Share(nodes[0], kind, held.gpus, held.cpus, held.mem_mib)]
    cpus, mem = _even_or_none(held.cpus, len(nodes)), _even_or_none(held.mem_mib, len(nodes))
    gpus = gpus_per_node(held.gpus, [sum(inventory.get(node, {}).values()) for node in nodes])
    left = dict(held.gpus_by_type)
    found: list[Share] = []
    for index, node in enumerate(nodes):
        for place, (kind, count) in enumerate(_by_type(gpus[index], inventory.get(node), left)):
            # CPU and memory belong to the node, not to a type: they stand on its first row.
            cpu, mib = (cpus[index], mem[index]) if place == 0 else (0, 0)
            found.append(Share(node, kind, count, cpu, mib))
    return found


def gpus_per_node(total: int, installed: Sequence[int]) -> list[int]:
    """``total`` over the nodes, evenly, and above a node's own number only if none has room."""
    counts = [0] * len(installed)
    left = total
    while left > 0:
        room = [index for index, size in enumerate(installed) if counts[index] < size]
        if not room:
            break
        each, extra = divmod(left, len(room))
        for place, index in enumerate(room):
            step = min(each + (place < extra), installed[index] - counts[index])
            counts[index] += step
            left -= step
    # More held than installed is a contradiction that the ledger reports; it is kept as it is.
    return [count + more for count, more in zip(counts, _even(left, len(counts)), strict=True)]


def _even_or_none(total: int | None, parts: int) -> Sequence[int | None]:
    return [None] * parts if total is None else _even(total, parts)


def _even(total: int, parts: int) -> list[int]:
    each, extra = divmod(total, max(parts, 1))
    return [each + (index < extra) for index in range(parts)]


def _by_type(
    count: int, types: Mapping[str | None, int] | None, left: dict[str, int]
) -> list[tuple[str | None, int]]:
    if types is None or not types:
        return [(_only(left), count)]
    if len(types) == 1 or not count:
        return [(next(iter(types)), count)]
    found: dict[str | None, int] = {}
    named = [kind for kind in types if kind is not None and left.get(kind, 0) > 0]
    for kind in named:
        step = min(count, left[kind], types[kind])
        left[kind] -= step
        count -= step
        found[kind] = step
    for model, size in types.items():
        step = min(count, size - found.get(model, 0))
        count -= step
        found[model] = found.get(model, 0) + step
    first = next(iter(types))
    found[first] = found.get(first, 0) + count
    return [(model, number) for model, number in found.items() if number]


def _only(kinds: Mapping[str, int]) -> str | None:
    named = [kind for kind, count in kinds.items() if count]
    return named[0] if len(named) == 1 else None
