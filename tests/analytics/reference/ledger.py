"""A slow, obvious ledger, written from its design and sharing no code with it.

Time is cut wherever anything changes; in each piece of time every GPU is looked at. Amounts are
fractions and are rounded once per row, at the end.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - obvious matters more here than short

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import floor

from reference.blame import Blame
from reference.history import (
    FREE,
    HELD,
    HOUR,
    MIN,
    F,
    half_up,
)


class Reference(Blame):
    """All of it."""

    def cuts(self, since, until):
        h = self.h
        times = {since, until, *h.price_changes, *(t for pair in h.known for t in pair)}
        for n in h.nodes:
            times |= {n.t0, n.t1}
        for r in h.runs:
            times |= {r.t0, r.t1, *r.marks}
        for w in h.waits:
            times |= {w.t0, w.t1}
        for s in [*h.states, *h.kept]:
            times |= set(s[-2:])
        times |= {b[3] for b in h.broken} | set(self.back)
        times |= set(range(since // HOUR * HOUR, until, HOUR))
        start = since - 10 * MIN
        return sorted({t for t in times if start <= t <= until} | {start})

    def ledger(self, since, until):
        """(node, gpu, run, slice) -> class -> micro-GPU-seconds, without zeros."""
        edges = sorted(
            {since, until, *range(since // HOUR * HOUR, until, HOUR), *self.h.price_changes}
        )
        edges = [e for e in edges if since <= e <= until]
        exact = defaultdict(lambda: defaultdict(F))
        fits = {}
        self.blame, self.waited = {}, defaultdict(int)
        self.stuck_by = defaultdict(lambda: defaultdict(F))
        times = self.cuts(since, until)
        for a, b in pairwise(times):
            fits = self.one_piece(a, b, fits, edges, exact, since)
        self.posted = self.rounded(exact, edges)
        # Slices that fit no profile, before the time in which nobody holds the board joins them:
        # who strands that is told by the rule that the queue gave it.
        self.geometry = {
            (node, gpu, slot): row["stranded_shape"]
            for (node, gpu, run, slot), row in self.posted.items()
            if gpu is not None and run is None and row.get("stranded_shape")
        }
        self.name_boards(edges, [t for t in times if t >= since])
        return self.posted

    def name_boards(self, edges, times):
        """Boards that are cut into instances have rows of their own while nobody holds them."""
        for node, gpu in sorted({(r.nodes[0], r.gpu) for r in self.h.runs if r.mig}):
            for slot in edges[:-1]:
                idle = 0
                for a, b in pairwise(times):
                    if max(e for e in edges if e <= a) == slot:
                        held = any(g == gpu for _, g, _ in self.holders(node, a)[0])
                        idle += 0 if held else b - a
                pool = self.posted.get((node, None, None, slot), {})
                for name in reversed(FREE):
                    part = min(idle, pool.get(name, 0))
                    if part:
                        idle -= part
                        pool[name] -= part
                        own = self.posted.setdefault((node, gpu, None, slot), {})
                        own[name] = own.get(name, 0) + part
        for key in list(self.posted):
            self.posted[key] = {name: n for name, n in self.posted[key].items() if n}
            if not self.posted[key]:
                del self.posted[key]

    def one_piece(self, a, b, fits, edges, exact, since):
        slot = max((e for e in edges if e <= a), default=None)
        post = defaultdict(lambda: defaultdict(F))
        left, on_node = {}, {}
        avail = {}
        for node in self.names:
            if self.node(node, a) is None:
                continue
            counts, free, rest = self.base(node, a)
            avail[node] = free
            self.held_posts(node, a, b, post)
            for name, gpus in counts.items():
                post[node, None, None][name] += gpus * (b - a)
            for gpu, parts in rest.items():
                for name, share in parts:
                    post[node, gpu, None][name] += share * (b - a)
                    if name == "stranded_shape" and share and a >= since:
                        for r, g, held in self.holders(node, a)[0]:
                            if g == gpu:
                                self.stuck_by[node, gpu, slot][r.name] += held * (b - a)
        room = self.h.headroom
        for node in self.names:
            take = min(room, avail.get(node, 0))
            if take:
                room -= take
                avail[node] -= take
                post[node, None, None]["reserved"] += take * (b - a)
        for node, free in avail.items():
            use, name = self.usable(node, free, a) if self.installed(node, a) else (0, "free")
            on_node[node], left[node] = free, use
            post[node, None, None][name] += (free - use) * (b - a)
            if a >= since and free > use:
                self.strand(node, slot, name, "profile", a, (free - use) * (b - a))
        usable = dict(left)
        claims, fits, queue = self.walk(a, left, on_node, fits)
        for node, name, gpus, since_fit, who in claims:
            usable[node] -= gpus
            young = F(0)
            if name == "policy_blocked":
                young = F(min(max(since_fit + MIN - a, 0), b - a))
            post[node, None, None][name] += gpus * (b - a - young)
            post[node, None, None]["free"] += gpus * young
            if a < since:
                continue
            if name in ("gang_wait", "policy_blocked"):
                rule = "waits" if name == "gang_wait" else "order"
                self.waited[node, slot, name, rule, who] += int(gpus * (b - a - young))
            else:
                rule = "request" if name in ("stranded_cpu", "stranded_mem") else "blocks-shape"
                self.strand(node, slot, name, rule, a, gpus * (b - a))
        for node, gpus in (self.fillable(a, claims, queue, avail) if queue else {}).items():
            post[node, None, None]["fillable"] += gpus * (b - a)
        for node, gpus in usable.items():
            post[node, None, None]["free"] += gpus * (b - a)
        if a >= since:
            for key, classes in post.items():
                for name, amount in classes.items():
                    exact[(*key, slot)][name] += amount
        return fits

    def strand(self, node, slot, name, rule, t, amount):
        key = (node, slot, name, rule, self.epoch(node, t))
        self.blame[key] = (self.blame.get(key, (0, t))[0] + int(amount), t)

    def rounded(self, exact, edges):
        result = {}
        shared = self.shared_gpus()
        boards = defaultdict(dict)
        for (node, gpu, run, slot), classes in exact.items():
            if gpu is not None and (node, gpu) in shared:
                boards[node, gpu, slot][run] = classes
            else:
                result[node, gpu, run, slot] = self.row(classes, run)
        for (node, gpu, slot), rows in boards.items():
            for run, posts in self.board(rows).items():
                result[node, gpu, run, slot] = posts
        return {
            key: {name: n for name, n in row.items() if n}
            for key, row in result.items()
            if any(row.values())
        }

    def shared_gpus(self):
        return {(n, r.gpu) for r in self.h.runs for n in r.nodes if r.gpu and r.share < 1}

    def row(self, classes, run):
        """A whole row: activity is rounded, the rest is what remains."""
        names = HELD if run else FREE
        posts, total, before = {}, F(0), 0
        for name in names:
            total += classes.get(name, F(0))
            posts[name] = half_up(total) - before
            before = half_up(total)
        if classes.get("fillable"):
            posts["fillable"] = int(classes["fillable"])
        return posts

    def board(self, rows):
        """A GPU held in parts: one running sum, then the rest by largest remainder."""
        result, total, before = {}, F(0), 0
        for run in sorted(run for run in rows if run):
            result[run] = {}
            for name in HELD:
                total += rows[run].get(name, F(0))
                result[run][name] = half_up(total) - before
                before = half_up(total)
        free = rows.get(None, {})
        whole = sum(sum(c.values(), F(0)) for c in rows.values())
        rest = int(whole) - before
        names = [n for n in FREE if free.get(n)]
        posts = {n: floor(free[n]) for n in names}
        if not names:
            posts = {"free": rest}
        ranked = sorted(names, key=lambda n: (-(free[n] - floor(free[n])), FREE.index(n)))
        i, step = 0, 1 if rest >= sum(posts.values()) else -1
        while names and sum(posts.values()) != rest:
            if posts[ranked[i % len(ranked)]] + step >= 0:
                posts[ranked[i % len(ranked)]] += step
            i += 1
        result[None] = posts
        return result
