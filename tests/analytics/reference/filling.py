"""What of the waiting GPUs could be filled."""

# ruff: noqa: C901 - obvious matters more here than short

from __future__ import annotations

from collections import defaultdict
from math import floor

from reference.history import (
    taken_late,
)
from reference.queue import Queue


class Filling(Queue):
    """What of the waiting GPUs could be filled."""

    def fillable(self, t, claims, queue, avail):
        """GPUs per node that jobs behind the head could use without delaying it."""
        waiting = defaultdict(int)
        for node, why, gpus, _, _ in claims:
            if why != "policy_blocked":
                waiting[node] += gpus
        result, taken, deadline = defaultdict(int), [], None
        for w in queue[1:]:
            if not self.placeable(w, t):
                continue
            spot = self.spot(w, t, waiting, taken)
            if spot is None:
                continue
            if deadline is None:
                deadline = self.shadow(queue[0], t, avail)
                if deadline is None:
                    return {}
            in_time = w.limit is not None and t + w.limit <= deadline
            if in_time or self.head_fits(
                queue[0], t, deadline, avail, [*taken_late(taken), (w, spot)]
            ):
                taken.append((w, spot, in_time))
                for node, gpus in spot.items():
                    waiting[node] -= gpus
                    result[node] += gpus
        return result

    def spot(self, w, t, waiting, taken):
        """Where the job goes: nodes in name order, all in the first leaf that has enough."""
        per, full, rest = self.shape(w)
        leaves = defaultdict(list)
        for node in sorted(waiting):
            (ct, cu), (mt, mu) = self.resources(node, t)
            cu += sum(self.each(x, x.cpus * 1000) for x, there, _ in taken if node in there)
            mu += sum(self.each(x, x.mem) for x, there, _ in taken if node in there)
            where = self.host(node, t).leaf if w.leaf else "any"
            short_of_cpu = ct is not None and ct - cu < self.each(w, w.cpus * 1000)
            short_of_mem = mt is not None and mt - mu < self.each(w, w.mem)
            if waiting[node] and where is not None and not short_of_cpu and not short_of_mem:
                leaves[where].append(node)
        ready = {}
        for where, nodes in leaves.items():
            for nth in range(len(nodes)):
                some = [waiting[n] for n in nodes[: nth + 1]]
                enough = sum(g >= per for g in some) >= full
                if enough and (not rest or sum(g >= rest for g in some) > full):
                    ready[nodes[nth]] = where
                    break
        return self.fill_in(w, waiting, leaves[ready[min(ready)]]) if ready else None

    def fill_in(self, w, waiting, nodes):
        per, full, rest = self.shape(w)
        spot = {}
        for node in nodes:
            if full and waiting[node] >= per:
                spot[node] = per
                full -= 1
            elif rest and waiting[node] >= rest and (not full or waiting[node] < per):
                spot[node] = rest
                rest = 0
        return spot

    def shadow(self, head, t, avail):
        """The first instant at which the head fits if every run uses its limit; None = never."""
        ends = {r.t0 + r.limit for r in self.h.runs if r.limit is not None and r.t0 <= t < r.t1}
        for at in sorted({t} | {e for e in ends if e > t}):
            if self.head_fits(head, t, at, avail, []):
                return at
        return None

    def head_fits(self, head, t, at, avail, beside):
        """Whether the head fits once the runs that are due by ``at`` have ended."""
        left, used = dict(avail), {}
        for node in left:
            (_, cu), (_, mu) = self.resources(node, t)
            believed, _ = self.holders(node, t)
            down = self.in_state(node, t)
            bad = self.broken_now(node, t)
            for r in self.h.runs:
                due = r.limit is not None and r.t0 + r.limit <= at
                if due and node in r.nodes and r.t0 <= t < r.t1:
                    cu, mu = cu - r.cpus * 1000, mu - r.mem
            for r, gpu, amount in believed:
                due = r.limit is not None and r.t0 + r.limit <= at
                if gpu is not None:
                    broken = amount if any(g == gpu for g, _, _ in bad) else 0
                else:
                    broken = min(amount, len([x for x in bad if self.blames(x, r, node)]))
                if due and not down:
                    left[node] += floor(amount - broken)
            for w, spot in beside:
                if node in spot:
                    left[node] -= spot[node]
                    cu += self.each(w, w.cpus * 1000)
                    mu += self.each(w, w.mem)
            row = self.host(node, t)
            used[node] = (
                (None if row.cpus is None else row.cpus * 1000, cu),
                (row.mem, mu),
            )
        return self.can(head, t, left, host=lambda node, _: used[node])
