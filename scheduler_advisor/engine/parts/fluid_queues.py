"""Queues, quotas and limits in the parts' driver: who has what, whose turn it is, who may start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.engine.live.reference_tree import (
    DECAY_ONE,
    Node,
    entitlement,
    leaf_names,
    share_out,
    tree_of,
)
from scheduler_advisor.engine.live.settings import Entitlement, QuotaPart
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.settings import Defrag
from scheduler_advisor.engine.policy import Backfill, Order, Policy, Preemption

BY_QUEUE = (Order.FAIR_SHARE, Order.DRF)


def needs_queues(cluster: Cluster, policy: Policy) -> bool:
    """Whether more than one line in a fixed order decides who starts."""
    return (
        policy.order in BY_QUEUE
        or policy.backfill is Backfill.EASY
        or policy.preemption is not Preemption.NONE
        or policy.quota != QuotaPart()
        or policy.defrag.kind is Defrag.PENDING
        or bool(cluster.limits)
        or bool(cluster.reservations)
        or cluster.headroom_gpus > 0
    )


class Usage:
    """GPU-seconds of a queue, older ones counting less: whole periods, each decayed since."""

    def __init__(self, period: int, decay: int) -> None:
        self._period, self._decay = period, decay
        self._since: int | None = None
        self._held = self._part = self._used = 0

    def holds(self, now: int, held: int) -> None:
        """From now on it holds so many thousandths of GPUs."""
        self._pass_to(now)
        self._held = held

    def at(self, now: int) -> int:
        """As counted when the present period began."""
        self._pass_to(now)
        return self._used

    def _pass_to(self, now: int) -> None:
        if self._since is None:
            self._since = now
        while self._since < now:
            end = (self._since // self._period + 1) * self._period
            until = min(end, now)
            self._part += self._held * (until - self._since)
            self._since = until
            if until == end:
                self._used = self._used * self._decay // DECAY_ONE + self._part // WHOLE
                self._part = 0


class Queues:
    """The tree of queues with what each holds and waits for, in thousandths of GPUs; `size`: what
    each job counts."""

    def __init__(self, jobs: Jobs, cluster: Cluster, policy: Policy, size: list[int]) -> None:
        self._jobs, self._cluster, self._policy = jobs, cluster, policy
        tree = tree_of(jobs, policy)
        self._root = tree[None]
        self._leaf = [tree[name] for name in leaf_names(jobs, policy)]
        self._path = {node: node.path() for node in tree.values()}
        self._keeping = [
            node for node in tree.values() if not node.children and node.rule.lend is not None
        ]
        self.size = size
        per = jobs.gpus_per_task.clip(1)
        rest = jobs.rest_gpus > 0
        cpu = jobs.tasks * jobs.cpu_milli + rest * -(-jobs.cpu_milli * jobs.rest_gpus // per)
        mem = jobs.tasks * jobs.mem_mib + rest * -(-jobs.mem_mib * jobs.rest_gpus // per)
        self._beside = list(zip(cpu.tolist(), mem.tolist(), strict=True))
        self._waiting = dict.fromkeys(tree.values(), 0)
        self._other = {node: [0, 0] for node in tree.values()}
        fair = policy.fair
        decay = DECAY_ONE
        if fair.half_life_s:
            decay = int(DECAY_ONE * 0.5 ** (fair.period_s / fair.half_life_s))
        self._usage = {node: Usage(fair.period_s, decay) for node in tree.values()}
        self._holding: set[int] = set()
        self.by_queue = policy.order in BY_QUEUE
        self._two_step = Entitlement.TWO_STEP in (fair.entitlement, policy.quota.reclaim_to)

    def leaf(self, job: int) -> Node:
        """The job's own queue."""
        return self._leaf[job]

    # What is counted

    def waits(self, job: int, sign: int) -> None:
        """The job joins its queue, or leaves it."""
        for node in (self._root, *self._path[self._leaf[job]]):
            self._waiting[node] += sign * self.size[job]

    def holds(self, job: int, milli: int, sign: int, now: int) -> None:
        """The job takes so many thousandths of GPUs, or gives them back."""
        cpu, mem = self._beside[job]
        for node in (self._root, *self._path[self._leaf[job]]):
            node.used += sign * milli
            self._other[node][0] += sign * cpu
            self._other[node][1] += sign * mem
            if self._policy.fair.half_life_s:
                self._usage[node].holds(now, node.used)
        if sign > 0:
            self._holding.add(job)
        else:
            self._holding.discard(job)

    def share_out(self) -> None:
        """Two-step fair shares as things stand, where the policy asks for them."""
        if self._two_step:
            total = WHOLE * self._cluster.total_gpus
            share_out(self._root, total, lambda node: node.used + self._waiting[node])

    # Whose turn it is

    def next_leaf(self, filled: Callable[[Node], bool], now: int) -> Node | None:
        """Down the tree, the least served queue of those in which something waits."""

        def anything(node: Node) -> bool:
            return any(map(anything, node.children)) if node.children else filled(node)

        node = self._root
        if not anything(node):
            return None
        while node.children:
            able = [child for child in node.children if anything(child)]
            node = min(able, key=lambda one: (self._share(one, now), one.name))
        return node

    def _share(self, node: Node, now: int) -> float:
        """Usage over entitlement; a queue's largest share of anything under drf."""
        fair = self._policy.fair
        if self._policy.order is not Order.DRF:
            used = self._usage[node].at(now) if fair.half_life_s else node.used
            return float(used) / float(entitlement(node, fair.entitlement))
        cluster, (cpu, mem) = self._cluster, self._other[node]
        of = (
            (node.used, WHOLE * cluster.total_gpus),
            (cpu, int(cluster.cpu_milli.sum())),
            (mem, int(cluster.mem_mib.sum())),
        )
        most = max((float(held) / float(total) for held, total in of if total), default=0.0)
        return most / float(entitlement(node, Entitlement.WEIGHT))

    # Who may start

    def admits(self, job: int, size: int, free: int) -> bool:
        """Whether maxima above the job, and what other queues keep, leave it `size` more."""
        leaf = self._leaf[job]
        for node in self._path[leaf]:
            if node.maximum is not None and node.used + size > node.maximum:
                return False
        if leaf.used + size <= leaf.guarantee:
            return True
        kept = sum(
            max(0, node.guarantee - (node.rule.lend or 0) * WHOLE - node.used)
            for node in self._keeping
            if node is not leaf
        )
        return kept == 0 or free - size >= kept

    def over_a_maximum(self, job: int) -> bool:
        """Can the job never start?"""
        return any(
            node.maximum is not None and self.size[job] > node.maximum
            for node in self._path[self._leaf[job]]
        )

    def over_a_limit(self, job: int) -> bool:
        """Whether a limit of its user, account or QoS holds the job back."""
        return any(self._over(limit, job) for limit in self._cluster.limits)

    def _over(self, limit: Limit, job: int) -> bool:
        if not self._bound(limit, job):
            return False
        same = [other for other in self._holding if self._together(limit, other, job)]
        size = self.size[job] + sum(self.size[other] for other in same)
        if limit.max_gpus is not None and size > limit.max_gpus * WHOLE:
            return True
        return limit.max_jobs is not None and len(same) + 1 > limit.max_jobs

    def _bound(self, limit: Limit, job: int) -> bool:
        qos, account = self._jobs.qos[job], self._jobs.account[job]
        first = self._jobs.partitions[job].partition("|")[0]
        return (
            limit.qos in (None, qos)
            and (limit.account in (None, account) or account in limit.below)
            and limit.user in (None, self._jobs.user[job])
            and limit.partition in (None, first)
            and qos not in limit.but_qos
            and first not in limit.but_partitions
        )

    def _together(self, limit: Limit, one: int, other: int) -> bool:
        counts = replace(limit, but_qos=(), but_partitions=())
        if not self._bound(counts, one) or limit.scope is Scope.JOB:
            return False
        if limit.scope is Scope.ALL:
            return True
        column = self._jobs.user if limit.scope is Scope.USER else self._jobs.account
        return column[one] == column[other]

    # Who gives back to whom

    def parting(self, job: int, other: int) -> tuple[Node, Node] | None:
        """The two jobs' queues at the level at which they part; None: one queue."""
        mine, theirs = self._path[self._leaf[job]], self._path[self._leaf[other]]
        for one, two in zip(mine, theirs, strict=False):
            if one is not two:
                return one, two
        return None

    def entitled(self, node: Node) -> int:
        """What reclaim gives a queue back, and leaves it."""
        if self._policy.quota.reclaim_to is Entitlement.GUARANTEE:
            return node.guarantee
        return node.fair
