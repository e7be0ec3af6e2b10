"""Why the queue does not start."""

from __future__ import annotations

from collections import defaultdict

from reference.holding import Holding


class Queue(Holding):
    """Why the queue does not start."""

    def can(self, w, t, left, cpu=True, mem=True, leaf=True, host=None):
        host = host or self.resources
        per, full, rest = self.shape(w)
        groups = defaultdict(list)
        for node, free in left.items():
            if not free:
                continue
            (ct, cu), (mt, mu) = host(node, t)
            if cpu and ct is not None and ct - cu < self.each(w, w.cpus * 1000):
                continue
            if mem and mt is not None and mt - mu < self.each(w, w.mem):
                continue
            where = self.host(node, t).leaf if (leaf and w.leaf) else "any"
            if where is not None:
                groups[where].append(free)
        return any(
            sum(f >= per for f in g) >= full and (not rest or sum(f >= rest for f in g) > full)
            for g in groups.values()
        )

    def shape(self, w):
        per = -(-w.gpus // w.nodes)
        return per, w.gpus // per, w.gpus % per

    def each(self, w, amount):
        per, _, _ = self.shape(w)
        return -(-amount * per // w.gpus)

    def placeable(self, w, t):
        per, full, rest = self.shape(w)
        fit = []
        for name in self.names:
            if not self.installed(name, t):
                continue
            row = self.host(name, t)
            if row.cpus is not None and row.cpus * 1000 < self.each(w, w.cpus * 1000):
                continue
            if row.mem is not None and row.mem < self.each(w, w.mem):
                continue
            fit.append(self.installed(name, t))
        return sum(f >= per for f in fit) >= full and (
            not rest or sum(f >= rest for f in fit) > full
        )

    def why(self, w, t, left):
        total = sum(left.values())
        if total >= w.gpus and self.can(w, t, left):
            return "policy_blocked"
        if total < w.gpus:
            return "gang_wait"
        if w.leaf and self.can(w, t, left, leaf=False):
            return "stranded_topology"
        if self.can(w, t, left, cpu=False):
            return "stranded_cpu"
        if self.can(w, t, left, mem=False):
            return "stranded_mem"
        return "stranded_cpu" if self.can(w, t, left, cpu=False, mem=False) else "stranded_shape"

    def walk(self, t, left, on_node, fits):
        """Claims [(node, class, gpus, fits since)]; ``fits`` is carried from cut to cut."""
        claims, now, head = [], {}, None
        order = sorted((w for w in self.h.waits if w.t0 <= t < w.t1), key=lambda w: (w.t0, w.name))
        for w in order:
            if not sum(left.values()) or not self.placeable(w, t):
                continue
            why = self.why(w, t, left)
            if why == "policy_blocked":
                now[w.name] = fits.get(w.name, t)
            elif head is None:
                head = w
            need = w.gpus
            for node in sorted(left, key=lambda n: (on_node[n], n)):
                take = min(need, left[node])
                if take:
                    left[node] -= take
                    need -= take
                    claims.append((node, why, take, now.get(w.name), w.name))
        return claims, now, order[order.index(head) :] if head else []
