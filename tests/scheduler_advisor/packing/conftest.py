"""Builders of small packing questions, openb, and a slow reference written from the definitions."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from scheduler_advisor.engine.packing import Nodes, Pods


def ints(values):
    return np.array(list(values), dtype=np.int64)


@pytest.fixture(scope="session")
def build_pods():
    """Pods from tuples (cpu, mem, gpus, gpu_milli, models)."""

    def build(*rows):
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5
        return Pods([f"p{i}" for i in range(len(rows))], *map(ints, columns[:4]), list(columns[4]))

    return build


@pytest.fixture(scope="session")
def build_nodes():
    """Nodes from tuples (cpu, mem, gpus, model), named n0, n1, ..."""

    def build(*rows):
        columns = list(zip(*rows, strict=True))
        return Nodes([f"n{i}" for i in range(len(rows))], *map(ints, columns[:3]), list(columns[3]))

    return build


def read_rows(path):
    with path.open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.fixture(scope="session")
def openb(shared_data):
    """``openb.pods(list)``, ``openb.nodes`` and the oracle's rows, read without our readers."""
    folder = shared_data / "traces" / "openb"
    oracle = shared_data / "oracles" / "fgd_seed42"

    def pods(variant):
        rows = read_rows(folder / f"openb_pod_list_{variant}.csv")
        names = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
        columns = [ints(int(row[name]) for row in rows) for name in names]
        return Pods([row["name"] for row in rows], *columns, [row["gpu_spec"] for row in rows])

    rows = read_rows(folder / "openb_node_list_gpu_node.csv")
    columns = [ints(int(row[name]) for row in rows) for name in ("cpu_milli", "memory_mib", "gpu")]
    nodes = Nodes([row["sn"] for row in rows], *columns, [row["model"] for row in rows])
    ranks = sorted(read_rows(oracle / "node_rank.csv"), key=lambda row: int(row["tie_rank"]))
    return SimpleNamespace(
        pods=pods,
        nodes=nodes,
        decisions=read_rows(oracle / "placements.csv"),
        curves=read_rows(oracle / "curves.csv"),
        tie_order=[row["node"] for row in ranks],
    )


@dataclass
class Machine:
    name: str
    cpu: int
    mem: int
    free: list
    model: str
    shapes: set


@dataclass(frozen=True)
class Task:
    cpu: int
    mem: int
    gpus: int
    milli: int
    models: frozenset


class Reference:
    """Packing as the definitions say it, one node after another, nothing remembered."""

    def __init__(self, pods, nodes, score, ties, seed):
        self.score, self.ties = score, ties
        self.most_cpu = max(1, int(nodes.cpu_milli.max()))
        self.most_gpu = int(nodes.gpus.max()) * 1000
        self.machines = sorted(
            (
                Machine(name, int(cpu), int(mem), [1000] * int(gpus), model, set())
                for name, cpu, mem, gpus, model in zip(
                    nodes.name, nodes.cpu_milli, nodes.mem_mib, nodes.gpus, nodes.gpu_model,
                    strict=True,
                )
            ),
            key=lambda machine: machine.name,
        )  # fmt: skip
        self.tasks = [
            Task(
                int(pods.cpu_milli[i]),
                int(pods.mem_mib[i]),
                int(pods.gpus[i]),
                int(pods.gpu_milli[i]) if pods.gpus[i] else 0,
                frozenset(filter(None, pods.gpu_models[i].split("|"))),
            )
            for i in range(len(pods))
        ]
        self.typical = self._typical()
        self.draws = np.random.Generator(np.random.PCG64([seed, 1])).random((len(pods), 2))

    def _typical(self):
        counts = {}
        bits = {m: i for i, m in enumerate(sorted({m for t in self.tasks for m in t.models}))}
        for task in self.tasks:
            key = (task.cpu, task.milli, task.gpus, sum(1 << bits[m] for m in task.models))
            models, count = counts.get(key, (task.models, 0))
            counts[key] = (models, count + 1)
        falling = sorted(counts.items(), key=lambda item: (item[1][1], item[0]), reverse=True)
        chosen, covered = [], 0
        for (cpu, milli, gpus, _), (models, count) in falling:
            if covered >= 0.95 * len(self.tasks):
                break
            chosen.append((Task(cpu, 0, gpus, milli, models), count))
            covered += count
        return chosen

    def unusable(self, cpu, free, model):
        total = 0
        for task, count in self.typical:
            allowed = not task.models or model in task.models
            able = allowed and task.cpu <= cpu
            fitting = [idle for idle in free if idle >= task.milli]
            if task.gpus == 0 or not able or len(fitting) < task.gpus:
                total += count * sum(free)
            else:
                total += count * sum(idle for idle in free if idle < task.milli)
        return total

    def popularity(self):
        return sum(count for _, count in self.typical)

    def fragmentation(self):
        total = sum(self.unusable(m.cpu, m.free, m.model) for m in self.machines)
        return total / self.popularity()

    def fits(self, task, machine):
        if task.cpu > machine.cpu or task.mem > machine.mem:
            return False
        if task.models and machine.model not in task.models:
            return False
        return sum(idle >= task.milli for idle in machine.free) >= task.gpus or task.gpus == 0

    def tight(self, task, machine):
        fitting = [g for g, idle in enumerate(machine.free) if idle >= task.milli]
        return sorted(fitting, key=lambda g: (machine.free[g], g))[: task.gpus]

    def after(self, task, machine, chosen):
        free = [idle - task.milli * (g in chosen) for g, idle in enumerate(machine.free)]
        return self.unusable(machine.cpu - task.cpu, free, machine.model)

    def fgd(self, task, machine):
        """(score, chosen GPUs), the first of equal scores."""
        shared = task.gpus == 1 and task.milli < 1000
        if shared:
            choices = [[g] for g, idle in enumerate(machine.free) if idle >= task.milli]
        else:
            choices = [self.tight(task, machine)]
        before = self.unusable(machine.cpu, machine.free, machine.model)

        def value(chosen):
            fall = before - self.after(task, machine, chosen)
            if self.score == "fgd-exact":
                return fall
            return int(100 / (1 + math.exp(-fall / self.popularity() / 1000)))

        best = max(choices, key=value)
        return value(best), best

    def value(self, task, machine):
        idle, asked = sum(machine.free), task.gpus * task.milli
        if self.score in ("fgd", "fgd-exact"):
            return self.fgd(task, machine)[0]
        if self.score == "best-fit":
            over = (machine.cpu - task.cpu) / self.most_cpu * 0.5
            over += (idle - asked) / self.most_gpu * 0.5
            return int((1 - over) * 100)
        if self.score == "dot-product":
            dot = machine.cpu / self.most_cpu * (task.cpu / self.most_cpu)
            dot += idle / self.most_gpu * (asked / self.most_gpu)
            return int(100 * (1 - dot / 2))
        if self.score == "gpu-packing":
            return self.packing(task, machine)
        if self.score == "gpu-clustering":
            return self.clustering(task, machine, idle)
        return 0

    def packing(self, task, machine):
        if task.gpus == 0:
            return 0
        whole = machine.free.count(1000)
        if whole == len(machine.free):
            return max(33 - whole, whole)
        taken = [machine.free[g] for g in self.tight(task, machine)]
        if 1000 in taken:
            return max(50 - taken.count(1000), 33)
        return max(100 - sum(idle * 100 // 1000 for idle in taken) // 10, 50)

    def clustering(self, task, machine, idle):
        if task.gpus == 0:
            return 0
        used = 25 * (self.most_gpu - idle) // self.most_gpu
        shape = self.shape(task)
        if shape in machine.shapes:
            return used + (75 if machine.shapes == {shape} else 50)
        return used + (0 if machine.shapes else 25)

    def shape(self, task):
        return "share" if task.gpus == 1 and task.milli < 1000 else task.gpus

    def choose(self, task, draw):
        able = [machine for machine in self.machines if self.fits(task, machine)]
        if not able:
            return None

        def key(machine):
            idle = sum(machine.free)
            fullness = {"most-packed": -idle, "emptiest": idle}.get(self.ties, 0)
            return self.value(task, machine), fullness

        best = max(map(key, able))
        tied = [machine for machine in able if key(machine) == best]
        at_random = self.ties == "random" or self.score == "random"
        return tied[int(draw * len(tied))] if at_random else tied[0]

    def devices(self, task, machine, draw):
        if task.gpus == 0:
            return []
        if self.shape(task) == "share":
            if self.score == "random":
                fitting = [g for g, idle in enumerate(machine.free) if idle >= task.milli]
                return [fitting[int(draw * len(fitting))]]
            if self.score.startswith("fgd"):
                return self.fgd(task, machine)[1]
        return self.tight(task, machine)

    def run(self):
        """Rows (node or None, GPUs, F after)."""
        for task, (node_draw, gpu_draw) in zip(self.tasks, self.draws, strict=True):
            machine = self.choose(task, node_draw)
            if machine is None:
                yield None, [], self.fragmentation()
                continue
            chosen = sorted(self.devices(task, machine, gpu_draw))
            for g in chosen:
                machine.free[g] -= task.milli
            machine.cpu -= task.cpu
            machine.mem -= task.mem
            if task.gpus:
                machine.shapes.add(self.shape(task))
            yield machine.name, chosen, self.fragmentation()


@pytest.fixture(scope="session")
def reference_packing():
    """``reference_packing(pods, nodes, score, ties, seed)`` -> rows (node, GPUs, F after)."""
    return lambda pods, nodes, score, ties, seed: list(
        Reference(pods, nodes, score, ties, seed).run()
    )
