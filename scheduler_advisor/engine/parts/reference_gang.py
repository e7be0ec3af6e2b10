"""The gang's nodes, told slowly: written from the four steps in gang.py, not from its code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

Rooms = Mapping[int, int]


@dataclass(frozen=True)
class Site:
    """Free GPUs and place of each node that a job may use."""

    free: Mapping[int, int]
    leaf: Mapping[int, int]
    spine: Mapping[int, int]
    rack: Mapping[int, int]


def gang_nodes(site: Site, rooms: Rooms, tasks: int, need: str = "") -> list[int] | None:
    """The node of each equal task, in the order in which they are placed; None: it does not fit."""
    if need != "block":
        return _within(site, rooms, tasks, need)
    found = []
    for rack in sorted(set(site.rack.values())):
        inside = {node: room for node, room in rooms.items() if site.rack[node] == rack}
        free_here = {node: gpus for node, gpus in site.free.items() if site.rack[node] == rack}
        nodes = _within(replace(site, free=free_here), inside, tasks, "")
        if nodes is not None:
            free = sum(free_here.values())
            leaves = len({site.leaf[node] for node in nodes})
            found.append((len(set(nodes)), leaves, free, rack, nodes))
    return min(found)[4] if found else None


def _within(site: Site, rooms: Rooms, tasks: int, need: str) -> list[int] | None:
    usable = {node: room for node, room in rooms.items() if room > 0}
    levels: list[Callable[[int], int]] = [
        lambda node: site.leaf[node],
        lambda node: site.spine[node],
    ]
    levels.append(lambda node: 0)
    last = {"leaf": 0, "spine": 1}.get(need, 2)
    sizes = [_fewest(part.values(), tasks) for part in _split(usable, levels[last]).values()]
    fewest = min((size for size in sizes if size), default=0)
    if fewest == 0 or (need == "node" and fewest > 1):
        return None
    if fewest == 1:
        leaf_free = _free_by(site, usable)
        able = [node for node, room in usable.items() if room >= tasks]
        node = min(able, key=lambda n: (site.free[n], leaf_free[site.leaf[n]], n))
        return [node] * tasks
    for level in levels[: last + 1]:
        found = []
        for domain, part in _split(usable, level).items():
            if 0 < _fewest(part.values(), tasks) <= fewest:
                nodes = _fill(site, part, tasks, fewest)
                free = sum(site.free[node] for node in site.free if level(node) == domain)
                found.append((len({site.leaf[node] for node in nodes}), free, domain, nodes))
        if found:
            return min(found)[3]
    return None


def _split(rooms: Rooms, level: Callable[[int], int]) -> dict[int, dict[int, int]]:
    parts: dict[int, dict[int, int]] = defaultdict(dict)
    for node, room in rooms.items():
        parts[level(node)][node] = room
    return parts


def _free_by(site: Site, rooms: Rooms) -> dict[int, int]:
    free: dict[int, int] = defaultdict(int)
    for node, gpus in site.free.items():
        free[site.leaf[node]] += gpus
    return free


def _fewest(rooms: Iterable[int], tasks: int) -> int:
    """The fewest nodes that hold the tasks; 0: all together do not."""
    held = 0
    for count, room in enumerate(sorted(rooms, reverse=True), start=1):
        held += room
        if held >= tasks:
            return count
    return 0


def _fill(site: Site, rooms: Rooms, tasks: int, nodes_left: int) -> list[int]:
    """Leaves in turn, each given as much as it takes on the nodes that are left."""
    leaf_free = _free_by(site, rooms)
    leaves = _split(rooms, lambda node: site.leaf[node])
    placed: list[int] = []
    while len(placed) < tasks:
        left = tasks - len(placed)
        holds = {
            leaf: min(left, sum(sorted(part.values(), reverse=True)[:nodes_left]))
            for leaf, part in leaves.items()
        }
        leaf = min(leaves, key=lambda one: (-holds[one], leaf_free[one], one))
        nodes = _fill_leaf(site, leaves.pop(leaf), holds[leaf])
        placed += nodes
        nodes_left -= len(set(nodes))
        if nodes_left <= 0:
            nodes_left = len(rooms)
    return placed


def _fill_leaf(site: Site, rooms: dict[int, int], tasks: int) -> list[int]:
    placed: list[int] = []
    while len(placed) < tasks:
        left = tasks - len(placed)
        enough = [room for room in rooms.values() if room >= left]
        room = min(enough) if enough else max(rooms.values())
        node = min((n for n in rooms if rooms[n] == room), key=lambda n: (site.free[n], n))
        placed += [node] * min(room, left)
        del rooms[node]
    return placed
