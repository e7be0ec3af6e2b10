"""Queues as docs/policies.md tells them, for the slow telling: counted anew whenever somebody asks,
from who holds what. Shares no code with the engine; jobs, cluster and policy are input."""

from __future__ import annotations

GPU = 1000  # thousandths
DECAY = 1 << 20


class Queue:
    def __init__(self, name, above, rule):
        self.name, self.above, self.below = name, above, []
        self.weight = 1 if rule is None else rule.weight
        self.maximum = None if rule is None or rule.maximum is None else rule.maximum * GPU
        self.lends = None if rule is None or rule.lend is None else rule.lend * GPU
        self.stated = 0 if rule is None else rule.guarantee * GPU
        self.fair = 0
        self.used_s, self.part = 0, 0  # decayed whole periods; the period that runs
        if above is not None:
            above.below.append(self)

    def line(self):
        """From below the root down to here."""
        return [] if self.above is None else [*self.above.line(), self]

    @property
    def guarantee(self):
        return self.stated or sum(one.guarantee for one in self.below)


class Tree:
    """`holders`: pairs of a job and what it holds; `waiting`: jobs that wait."""

    def __init__(self, jobs, cluster, policy):
        self.jobs, self.cluster, self.policy = jobs, cluster, policy
        rules = {rule.name: rule for rule in policy.quota.queues}
        names = sorted(set(jobs.team) | set(rules) | {r.parent for r in rules.values() if r.parent})
        self.root = Queue(None, None, None)
        self.by_name = {}
        for name in sorted(
            names, key=lambda one: (bool(rules.get(one) and rules[one].parent), one)
        ):
            rule = rules.get(name)
            above = self.by_name[rule.parent] if rule and rule.parent else self.root
            self.by_name[name] = Queue(name, above, rule)
        for one in [self.root, *self.by_name.values()]:
            one.below.sort(key=lambda queue: queue.name)
        self.holders, self.waiting = [], []
        task = jobs.gpus_per_task * GPU + jobs.gpu_milli
        self.size = (jobs.tasks * task + jobs.rest_gpus * GPU).tolist()
        part = [
            -(-int(cpu) * int(rest) // max(1, int(per)))
            for cpu, rest, per in zip(
                jobs.cpu_milli, jobs.rest_gpus, jobs.gpus_per_task, strict=True
            )
        ]
        self.cpu = [
            int(a) * int(b) + c for a, b, c in zip(jobs.tasks, jobs.cpu_milli, part, strict=True)
        ]
        self.by_queue = policy.order in ("fair-share", "drf")

    def leaf(self, job):
        return self.by_name[self.jobs.team[job]]

    def _below(self, queue, job):
        return queue is self.root or queue in self.leaf(job).line()

    def used(self, queue):
        return sum(milli for job, milli in self.holders if self._below(queue, job))

    def demand(self, queue):
        return self.used(queue) + sum(
            self.size[job] for job in self.waiting if self._below(queue, job)
        )

    # Time

    def second(self, now):
        """One second has gone by, up to `now`."""
        fair = self.policy.fair
        if not fair.half_life_s:
            return
        keeps = int(DECAY * 0.5 ** (fair.period_s / fair.half_life_s))
        for queue in self.by_name.values():
            queue.part += self.used(queue)
            if now % fair.period_s == 0:
                queue.used_s = queue.used_s * keeps // DECAY + queue.part // GPU
                queue.part = 0

    # Two-step fair shares

    def share_out(self):
        if "two-step" in (self.policy.fair.entitlement, self.policy.quota.reclaim_to):
            self.root.fair = self.cluster.total_gpus * GPU
            self._share_below(self.root)

    def _share_below(self, queue):
        wants = {one: self.demand(one) for one in queue.below}
        for one in queue.below:
            one.fair = min(one.guarantee, wants[one])
        left = queue.fair - sum(one.fair for one in queue.below)
        hungry = [one for one in queue.below if wants[one] > one.fair and one.weight > 0]
        while left > 0 and hungry:
            weights = sum(one.weight for one in hungry)
            part = {one: left * one.weight // weights for one in hungry}
            sated = [one for one in hungry if wants[one] - one.fair <= part[one]]
            for one in sated:
                left -= wants[one] - one.fair
                one.fair = wants[one]
            if not sated:
                for one in hungry:
                    one.fair += part[one]
                break
            hungry = [one for one in hungry if one not in sated]
        for one in queue.below:
            self._share_below(one)

    # Whose turn it is

    def pick(self, able):
        """The leaf whose turn it is, of those with somebody in `able` (leaf -> jobs)."""
        queue = self.root
        if not self._filled(queue, able):
            return None
        while queue.below:
            some = [one for one in queue.below if self._filled(one, able)]
            queue = min(some, key=lambda one: (self._served(one), one.name))
        return queue

    def _filled(self, queue, able):
        if queue.below:
            return any(self._filled(one, able) for one in queue.below)
        return bool(able.get(queue))

    def _served(self, queue):
        fair = self.policy.fair
        if self.policy.order == "drf":
            cores = sum(self.cpu[job] for job, _ in self.holders if self._below(queue, job))
            all_cores = int(self.cluster.cpu_milli.sum())
            parts = [self.used(queue) / float(GPU * self.cluster.total_gpus)]
            if all_cores:
                parts.append(cores / float(all_cores))
            return max(parts) / float(max(1, queue.weight * GPU))
        right = {
            "weight": queue.weight * GPU,
            "guarantee": queue.guarantee,
            "two-step": queue.fair,
        }[fair.entitlement]
        return float(queue.used_s if fair.half_life_s else self.used(queue)) / float(max(1, right))

    # Who may start

    def admits(self, job, size, free):
        leaf = self.leaf(job)
        for queue in leaf.line():
            if queue.maximum is not None and self.used(queue) + size > queue.maximum:
                return False
        if self.used(leaf) + size <= leaf.guarantee:
            return True
        kept = 0
        for other in self.by_name.values():
            if other is not leaf and not other.below and other.lends is not None:
                kept += max(0, other.guarantee - other.lends - self.used(other))
        return kept == 0 or free - size >= kept

    def over_a_limit(self, job):
        for limit in self.cluster.limits:
            same = [one for one, _ in self.holders if self._counts(limit, one, job)]
            total = self.size[job] + sum(self.size[one] for one in same)
            if limit.max_gpus is not None and total > limit.max_gpus * GPU:
                return True
            if limit.max_jobs is not None and len(same) + 1 > limit.max_jobs:
                return True
        return False

    def _counts(self, limit, one, job):
        jobs = self.jobs
        if limit.scope == "all":
            return True
        if limit.scope == "user":
            return jobs.user[one] == jobs.user[job]
        return limit.scope == "account" and jobs.account[one] == jobs.account[job]

    # Reclaim

    def part_at(self, job, other):
        """The queues of two jobs where their lines part."""
        for mine, theirs in zip(self.leaf(job).line(), self.leaf(other).line(), strict=False):
            if mine is not theirs:
                return mine, theirs
        return None

    def right(self, queue):
        return queue.fair if self.policy.quota.reclaim_to == "two-step" else queue.guarantee
