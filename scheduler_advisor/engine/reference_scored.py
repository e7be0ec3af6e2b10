"""Placement by score in the reference: fragmentation as its definition says, node by node."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scheduler_advisor.engine.chance import draw
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Placement, Policy, Ties

if TYPE_CHECKING:
    from scheduler_advisor.engine.reference_world import Job, Need, Space, Spaces

FULL = 1000
COVERED = 0.95  # of all tasks are typical


@dataclass(frozen=True)
class Task:
    """What tells typical tasks apart."""

    cpu: int
    milli: int
    gpus: int
    models: tuple[str, ...]


@dataclass(frozen=True)
class Scoring:
    """What scores are measured against."""

    cluster: Cluster
    policy: Policy
    typical: tuple[tuple[Task, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.typical)

    def unusable(self, space: Space, node: int) -> int:
        """F of the node, times the typical tasks in all."""
        lost = 0
        for task, count in self.typical:
            enough = [left for left in space.gpus if left >= task.milli]
            usable = (
                task.gpus > 0
                and len(enough) >= task.gpus
                and space.cpu >= task.cpu
                and (not task.models or self.cluster.gpu_model[node] in task.models)
            )
            lost += count * (sum(space.gpus) - (sum(enough) if usable else 0))
        return lost

    def best(self, space: Space, node: int, need: Need) -> tuple[int, int | None]:
        """The node's score, and the GPU for a share where the policy settles it."""
        if self.policy.placement is Placement.DOT_PRODUCT:
            return self._dot(space, need), None
        shared = need.milli and not need.exclusive
        choices = [at for at, left in enumerate(space.gpus) if left >= need.milli]
        grades = [(self._grade(space, node, need, at), at) for at in choices] if shared else []
        if grades:
            score = max(grade for grade, _ in grades)
            return score, next(at for grade, at in grades if grade == score)
        return self._grade(space, node, need, None), None

    def _grade(self, space: Space, node: int, need: Need, gpu: int | None) -> int:
        after = space.copy()
        after.take(need, gpu)
        fall = (self.unusable(space, node) - self.unusable(after, node)) / self.total
        return int(100 / (1.0 + math.exp(-fall / FULL)))

    def _dot(self, space: Space, need: Need) -> int:
        idle, cpu = sum(space.gpus), need.cpu
        asked = need.gpus * FULL + need.milli
        if need.exclusive:
            asked, cpu = idle, space.cpu
        most_cpu = max(1, int(self.cluster.cpu_milli.max()))
        most = max(1, int(self.cluster.gpus.max())) * FULL
        dot = (space.cpu / most_cpu) * (cpu / most_cpu) + (idle / most) * (asked / most)
        return int(100 * (1.0 - dot / 2.0))

    def choose(
        self, room: list[int], need: Need, spaces: Spaces, decision: tuple[int, int, int]
    ) -> int:
        scores = {node: self.best(spaces[node], node, need)[0] for node in room}
        tied = [node for node in room if scores[node] == max(scores.values())]
        if self.policy.placement_ties is Ties.RANDOM:
            return tied[draw(self.policy.seed, *decision, len(tied))]
        by_name = sorted(tied, key=lambda node: self.cluster.names[node])
        if self.policy.placement_ties is Ties.MOST_PACKED:
            return min(by_name, key=lambda node: sum(spaces[node].gpus))
        return by_name[0]


def scoring_of(jobs: Jobs, cluster: Cluster, policy: Policy, made: list[Job]) -> Scoring:
    """Typical tasks: the most frequent ones of all jobs until enough tasks are covered."""
    counts: Counter[Task] = Counter()
    for job in made:
        models = tuple(sorted({name for name in jobs.gpu_models[job.index].split("|") if name}))
        for need in job.needs:
            milli = need.milli or (FULL if need.gpus else 0)
            counts[Task(need.cpu, milli, need.gpus or (1 if need.milli else 0), models)] += 1
    known = {name for name in cluster.gpu_model if name} | {m for t in counts for m in t.models}
    number = {name: 1 << at for at, name in enumerate(sorted(known))}
    order = sorted(
        counts.items(),
        key=lambda one: (
            one[1],
            one[0].cpu,
            one[0].milli,
            one[0].gpus,
            sum(number[name] for name in one[0].models),
        ),
        reverse=True,
    )
    chosen, covered = [], 0
    for task, count in order:
        if covered >= COVERED * counts.total():
            break
        chosen.append((task, count))
        covered += count
    return Scoring(cluster, policy, tuple(chosen))


def with_scoring(jobs: Jobs, cluster: Cluster, policy: Policy, made: list[Job]) -> list[Job]:
    """The jobs, each knowing what its placement is scored against."""
    if policy.placement not in (Placement.FGD, Placement.DOT_PRODUCT):
        return made
    scoring = scoring_of(jobs, cluster, policy, made)
    return [replace(job, scoring=scoring) for job in made]
