"""Who holds what, and what a piece of held time is."""

from __future__ import annotations

from collections import defaultdict

from reference.history import (
    INF,
    MEMORY,
    PROFILES,
    F,
)
from reference.instant import Instant


class Holding(Instant):
    """Who holds what, and what a piece of held time is."""

    def holders(self, node, t):
        """[(run, gpu, share or count)] that is believed, the named GPUs first, then by start."""
        left = self.installed(node, t)
        live = sorted(
            (r for r in self.h.runs if node in r.nodes and r.t0 <= t < r.t1),
            key=lambda r: (r.t0, r.name),
        )
        result = []
        for gpu in sorted({r.gpu for r in live if r.gpu}):
            if left == 0:
                break
            left -= 1
            rest = F(1)
            for r in live:
                if r.gpu == gpu and rest > 0:
                    share = min(rest, r.share)
                    rest -= share
                    result.append((r, gpu, share))
        for r in live:
            if r.gpu is None and left > 0:
                take = min(r.gpus, left)
                left -= take
                result.append((r, None, F(take)))
        return result, left

    def held_posts(self, node, a, b, post):
        down = self.in_state(node, a) & {"down", "failed"}
        believed, _ = self.holders(node, a)
        bad = self.broken_now(node, a)
        for r, gpu, amount in believed:
            if down:
                failed = amount
            elif gpu is not None:
                failed = amount if any(g == gpu for g, _, _ in bad) else F(0)
            else:
                mine = [x for x in bad if self.blames(x, r, node)]
                failed = min(amount, F(len(mine)))
            live = amount - failed
            row = post[node, gpu, r.name]
            row["failed_held"] += failed * (b - a)
            if live:
                self.activity(node, r, gpu, live, believed, (a, b), row)

    def blames(self, breakage, r, node):
        gpu, run, at = breakage
        if any(
            x.gpu == gpu
            for x in self.h.runs
            if gpu and node in x.nodes and x.t0 < INF and self.overlaps(x, at)
        ):
            return False
        return run == r.name and r.t0 <= at < r.t1

    def overlaps(self, r, at):
        return r.t1 > at

    def activity(self, node, r, gpu, live, believed, span, row):
        a, b = span
        time = active = F(0)
        near = [x for x, g, _ in believed if g == gpu and x.instance == r.instance]
        shared = gpu is not None and len({x.name for x in near}) > 1
        unit = r.instance or gpu
        for n, device, run, s, e, ppm in self.cover:
            if n != node or shared or (device != unit if gpu is not None else run != r.name):
                continue
            covered = max(0, min(b, e) - max(a, s))
            weight = live if gpu is not None else 1
            time += covered * weight
            active += F(covered * weight * ppm, 1_000_000)
        gone = r.state == "PREEMPTED" and self.after_durable(r, a)
        row["lost" if gone else "used"] += active
        row["allocated_idle"] += time - active
        row["allocated_unmeasured"] += live * (b - a) - time

    def after_durable(self, r, a):
        inside = [m for m in r.marks if r.t0 <= m <= r.t1]
        return bool(inside) and a >= max(inside)

    def base(self, node, t):
        """(class -> whole GPUs) by the first rules, what is left, remainders of shared GPUs."""
        believed, free = self.holders(node, t)
        counts = defaultdict(int)
        states = self.in_state(node, t)
        known = any(a <= t < b for a, b in self.h.known)
        bad = self.broken_now(node, t)
        loose = sum(1 for x in bad if not self.is_held(node, x, t))
        down = bool(states & {"down", "failed"})
        counts["failed"] = free if down else min(loose, free)
        free -= counts["failed"]
        kept = self.kept(node, t)
        rest = {}
        for gpu in {g for _, g, _ in believed if g}:
            left = 1 - sum(share for _, g, share in believed if g == gpu)
            whole_node = any(
                n == node and g is None and a <= t < b for n, g, _, a, b in self.h.kept
            )
            name = (
                "failed"
                if down or any(g == gpu for g, _, _ in bad)
                else "drained"
                if states
                else "unknown"
                if not known
                else "reserved"
                if whole_node
                else "free"
            )
            here = [x for x, g, _ in believed if g == gpu]
            stuck = min(left, F(self.stuck(here), 7)) if name == "free" else F(0)
            rest[gpu] = [(name, left - stuck), ("stranded_shape", stuck)]
        if states:
            counts["drained"], free = free, 0
        elif not known:
            counts["unknown"], free = free, 0
        counts["reserved"] = min(kept, free)
        return counts, free - counts["reserved"], rest

    def stuck(self, holders):
        """Slices of a board that are not held and that no profile can use, by trying everything."""
        held = {r.mig for r in holders if r.mig}
        free = 7 - sum(slices for slices, _ in held)
        taken = {start + i for slices, start in held for i in range(MEMORY[slices])}
        if not held or free < 0:
            return 0

        def most(free, taken):
            best = 0
            for compute, size, starts in PROFILES:
                for start in starts:
                    mine = {start + i for i in range(size)}
                    if compute <= free and not mine & taken:
                        best = max(best, compute + most(free - compute, taken | mine))
            return best

        return free - most(free, taken)

    def is_held(self, node, breakage, t):
        """Whether the run that held the GPU when it broke holds it still."""
        gpu, run, at = breakage
        named = [r for r in self.h.runs if gpu and r.gpu == gpu and node in r.nodes and r.t1 > at]
        if named:
            return any(r.t0 <= t < r.t1 for r in named)
        return any(
            r.name == run and r.gpu is None and r.t0 <= at < r.t1 and t < r.t1
            for r in self.h.runs
            if node in r.nodes
        )

    def kept(self, node, t):
        total = 0
        for n, gpus, account, a, b in self.h.kept:
            if n == node and a <= t < b:
                if gpus is None:
                    return INF
                used = sum(
                    (1 if r.gpu else r.gpus)
                    for r in self.h.runs
                    if node in r.nodes and r.t0 <= t < r.t1 and account in (None, r.account)
                )
                total += max(0, gpus - used)
        return total

    def resources(self, node, t):
        """(total, used) CPU in thousandths and memory; total None = not known."""
        row = self.host(node, t)
        live = [r for r in self.h.runs if node in r.nodes and r.t0 <= t < r.t1]
        cpu = (None if row.cpus is None else row.cpus * 1000, sum(r.cpus for r in live) * 1000)
        return cpu, (row.mem, sum(r.mem for r in live))

    def usable(self, node, free, t):
        by = []
        for (total, used), own in zip(self.resources(node, t), self.h.profile, strict=True):
            need = (
                own
                if own is not None
                else None
                if total is None
                else total // self.installed(node, t)
            )
            by.append(INF if total is None or not need else max(0, total - used) // need)
        use = min(free, *by)
        return use, "stranded_cpu" if by[0] <= by[1] else "stranded_mem"
