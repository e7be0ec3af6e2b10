"""Who is to blame."""

# ruff: noqa: C901 - obvious matters more here than short

from __future__ import annotations

from collections import defaultdict

from reference.filling import Filling
from reference.history import (
    MIN,
    share_out,
)


class Blame(Filling):
    """Who is to blame."""

    def epoch(self, node, t):
        """When the runs or the inventory of the node last changed."""
        times = [x for r in self.h.runs if node in r.nodes for x in (r.t0, r.t1)]
        times += [n.t0 for n in self.h.nodes if n.name == node]
        return max((x for x in times if x <= t), default=0)

    def weights(self, node, t, name, rule):
        live = sorted((r.name, r) for r in self.h.runs if node in r.nodes and r.t0 <= t < r.t1)
        if rule == "blocks-shape":
            pairs = [(name_, 1 if r.gpu else r.gpus) for name_, r in live]
        else:
            row = self.host(node, t)
            total = row.cpus if name == "stranded_cpu" else row.mem
            if total is None:
                return [(None, 1)]
            pairs = [
                (
                    n,
                    (r.cpus if name == "stranded_cpu" else r.mem) * row.gpus
                    - (1 if r.gpu else r.gpus) * total,
                )
                for n, r in live
            ]
        return [(n, w) for n, w in pairs if w > 0] or [(None, 1)]

    def causes(self, since, until):
        """(node, slice, class, role, rule, run) -> micro-GPU-seconds, after `ledger`."""
        result = defaultdict(int)
        for (node, slot, name, rule, _), (amount, t) in self.blame.items():
            for run, part in share_out(amount, self.weights(node, t, name, rule)):
                result[node, slot, name, "causer", rule, run] += part
        for (node, slot, name, rule, run), amount in self.waited.items():
            result[node, slot, name, "waiter", rule, run] += amount
        for (node, gpu, slot), amount in self.geometry.items():
            mine = sorted(self.stuck_by[node, gpu, slot].items())
            for who, part in share_out(amount, mine):
                result[node, slot, "stranded_shape", "causer", "mig-geometry", who] += part
        for (node, _, run, slot), row in self.posted.items():
            if row.get("lost"):
                takers = self.takers(node, run)
                rule = "preemptor" if takers else "unknown-or-hardware"
                for taker, part in share_out(row["lost"], takers or [(None, 1)]):
                    result[node, slot, "lost", "causer", rule, taker] += part
        return {key: n for key, n in result.items() if n}

    def takers(self, node, name):
        r = next(r for r in self.h.runs if r.name == name)
        if r.state != "PREEMPTED":
            return []
        return sorted(
            (x.name, 1 if x.gpu else x.gpus)
            for x in self.h.runs
            if x.name != name and node in x.nodes and r.t1 <= x.t0 <= r.t1 + 5 * MIN
        )
