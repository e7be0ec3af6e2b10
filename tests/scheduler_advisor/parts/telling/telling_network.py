"""Placement by the network and what it costs, for the slow telling: the four steps and the formula
of docs/simulator-parts.md. Nodes of one NVLink island each."""

from __future__ import annotations

import csv
from fractions import Fraction
from importlib.resources import files
from math import ceil, log2

PPM = 1_000_000
STEPS = ("island", "node", "leaf", "spine", "core")


def links_of(models):
    """GB/s and microseconds of each step; the slowest of the models."""
    text = files("scheduler_advisor.engine.parts").joinpath("links.csv").read_text("utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["gpu_model"] in models]
    assert len(rows) == len(models)
    return (
        [min(float(row[f"{step}_gb_s"]) for row in rows) for step in STEPS],
        [max(float(row[f"{step}_us"]) for row in rows) for step in STEPS],
    )


def fewest(rooms, tasks):
    """Of so many nodes the tasks need at least; None: all together are too few."""
    held = 0
    for count, room in enumerate(sorted(rooms, reverse=True), 1):
        held += room
        if held >= tasks:
            return count
    return None


class Network:
    """Where a gang goes, and how slow it is there."""

    def domain(self, node, level):
        """A domain is told by its first node."""
        cluster = self.cluster
        names = {
            "leaf": [(cluster.spine[one], cluster.leaf[one]) for one in self.nodes],
            "spine": [cluster.spine[one] for one in self.nodes],
            "block": [cluster.rack[one] for one in self.nodes],
            "": [0 for _ in self.nodes],
        }[level]
        return names.index(names[node])

    def need(self, at):
        """The level that the job must stay within."""
        if self.policy.placement != "topology":
            return ""
        text, part = self.table.topology[at], self.policy.topology
        if text:
            kind, _, level = text.rpartition(":")
            return level if kind == "required" else ""
        return str(part.level) if part.binding == "required" else ""

    def gang(self, room, fits, tasks, need):
        """The node of each of so many equal tasks; `fits`: node -> how many of them."""
        if need != "block":
            return self.gang_within(room, fits, tasks, need)
        found = []
        for block in sorted({self.domain(node, "block") for node in room}):
            here = {node: have for node, have in room.items()
                    if self.domain(node, "block") == block}  # fmt: skip
            nodes = self.gang_within(here, fits, tasks, "")
            if nodes is not None:
                leaves = {self.domain(node, "leaf") for node in nodes}
                free = sum(gpus for gpus, *_ in here.values())
                found.append((len(set(nodes)), len(leaves), free, block, nodes))
        return min(found)[4] if found else None

    def gang_within(self, room, fits, tasks, need):
        able = {node: fits[node] for node in room if fits.get(node, 0) > 0}
        free = {node: gpus for node, (gpus, *_) in room.items()}
        one = [node for node, count in able.items() if count >= tasks]
        if one:
            return [min(one, key=lambda n: (free[n], self.idle_in(free, n, "leaf"), n))] * tasks
        if need == "node":
            return None
        levels = ["leaf", "spine", ""]
        levels = levels[: levels.index(need if need in levels else "") + 1]
        widest = self.split(able, levels[-1]).values()
        least = min((n for part in widest if (n := fewest(part.values(), tasks))), default=None)
        for level in levels if least else ():
            found = []
            for domain, part in self.split(able, level).items():
                if (fewest(part.values(), tasks) or least + 1) <= least:
                    nodes = self.fill(free, part, tasks, least)
                    leaves = {self.domain(node, "leaf") for node in nodes}
                    idle = self.idle_in(free, domain, level)
                    found.append((len(leaves), idle, domain, nodes))
            if found:
                return min(found)[3]
        return None

    def split(self, able, level):
        parts = {}
        for node, count in able.items():
            parts.setdefault(self.domain(node, level), {})[node] = count
        return parts

    def idle_in(self, free, node, level):
        domain = self.domain(node, level)
        return sum(gpus for one, gpus in free.items() if self.domain(one, level) == domain)

    def fill(self, free, able, tasks, nodes_left):
        """Leaf by leaf, each given what the nodes that are left would take of it."""
        leaves, placed = self.split(able, "leaf"), []
        while len(placed) < tasks:
            left = tasks - len(placed)
            takes = {
                leaf: min(left, sum(sorted(part.values(), reverse=True)[:nodes_left]))
                for leaf, part in leaves.items()
            }
            leaf = min(leaves, key=lambda one: (-takes[one], self.idle_in(free, one, "leaf"), one))
            part, here = leaves.pop(leaf), []
            while len(here) < takes[leaf]:
                more = takes[leaf] - len(here)
                enough = [count for count in part.values() if count >= more]
                count = min(enough) if enough else max(part.values())
                able_here = [node for node in part if part[node] == count]
                node = min(able_here, key=lambda one: (free[one], one))
                here += [node] * min(count, more)
                del part[node]
            placed += here
            nodes_left = nodes_left - len(set(here)) or len(able)
        return placed

    def beside(self, room, able, found, need):
        """The node for the smaller last task: step 4."""
        last, used = found[-1].node, {piece.node for piece in found}
        ways = []
        for node in able:
            same = {level: self.domain(node, level) == self.domain(last, level)
                    for level in ("leaf", "spine", "block")}  # fmt: skip
            far = 1 if same["leaf"] else 2 if same["spine"] else 3
            if {**same, "node": node in used}.get(need, True):
                ways.append((0 if node in used else far, room[node][0], node))
        return min(ways)[2] if ways else None

    # How slow

    def slowdown(self, job, count):
        """In millionths, of so many tasks where the job's first ones lie."""
        part, at = self.policy.topology, job.at
        milli = int(self.table.comm_milli[at])
        if not milli:
            milli = min(500, part.comm_milli * int(log2(max(1, int(self.table.gpus[at])))))
        if not part.slowdown or not milli:
            return PPM
        here = self.reduce_s([(piece.node, piece.gpus) for piece in job.pieces[:count]])
        best = self.best_s(at, count)
        if best <= 0 or here <= best:
            return PPM
        return PPM + int(milli * 1000 * (here / best - 1.0) + 0.5)

    def best_s(self, at, count):
        """The same on the empty cluster, by the network."""
        key = (at, count)
        if key not in self.best:
            room = {
                node: [int(self.cluster.gpus[node]), int(self.cluster.cpu_milli[node]), 0]
                for node in self.nodes
            }
            tasks = self.tasks(at)
            if not self.table.rest_gpus[at]:
                tasks = tasks[:1] * count
            pieces = self.find_by_network(at, room, tasks, self.named(at), None)
            self.best[key] = self.reduce_s([(one.node, one.gpus) for one in pieces or ()])
        return self.best[key]

    def reduce_s(self, lies):
        """Seconds of one all-reduce."""
        if sum(gpus for _, gpus in lies) <= 1:
            return 0.0
        part = self.policy.topology
        rates, hops = links_of({self.cluster.gpu_model[node] for node, _ in lies})
        rates = [rate / part.oversubscription if step > 2 else rate
                 for step, rate in enumerate(rates)]  # fmt: skip
        by_node = {}
        for node, gpus in lies:
            by_node[node] = by_node.get(node, 0) + gpus
        leaves = {self.domain(node, "leaf") for node in by_node}
        spines = {self.domain(node, "spine") for node in by_node}
        members = [
            list(by_node.values()),
            [1],
            [sum(self.domain(n, "leaf") == leaf for n in by_node) for leaf in leaves],
            [sum(self.domain(leaf, "spine") == spine for leaf in leaves) for spine in spines],
            [len(spines)],
        ]
        share, total, crossed, near = part.message_mib * 2.0**20, 0.0, [], None
        for step, counts in enumerate(members):
            if step == 2:
                near = total, share
            if max(counts) > 1:
                ring = self.ring(max(counts), share, rates[step], hops[step])
                levels = ceil(log2(max(counts)))
                tree = 2 * levels * hops[step] * 1e-6 + 2 * share / (rates[step] * 1e9)
                total += min(ring, tree)
                crossed.append(step)
            share /= min(counts)
        far = [step for step in crossed if step >= 2]
        if not far:
            return total
        slow = min(far, key=lambda step: (rates[step], -step))
        return min(total, near[0] + self.ring(len(by_node), near[1], rates[slow], hops[slow]))

    @staticmethod
    def ring(count, share, rate, hop):
        steps = 2 * (count - 1)
        return steps * hop * 1e-6 + steps / count * share / (rate * 1e9)

    def network_speed(self, job, count):
        return Fraction(PPM, self.slowdown(job, count))
