"""A slow, obvious ledger, written from its design and sharing no code with it.

Time is cut wherever anything changes; in each piece of time every GPU is looked at. Amounts are
fractions and are rounded once per row, at the end. Times are microseconds.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - obvious matters more here than short

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import floor

MIN = 60_000_000
HOUR = 60 * MIN
INF = 10**18
F = Fraction
ONE = Fraction(1)
HELD = ("used", "lost", "allocated_idle", "allocated_unmeasured", "failed_held")
FREE = (
    "failed",
    "drained",
    "unknown",
    "reserved",
    "gang_wait",
    "stranded_cpu",
    "stranded_mem",
    "stranded_shape",
    "stranded_topology",
    "policy_blocked",
    "free",
)


MEMORY = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
PROFILES = [
    (1, 1, range(7)), (2, 2, (0, 2, 4)), (3, 4, (0, 4)), (4, 4, (0,)), (7, 8, (0,)),
]  # fmt: skip
"""Of an A100: compute slices, memory slices, where an instance may begin."""


@dataclass
class Node:
    name: str
    gpus: int
    t0: int
    t1: int
    cpus: int | None = None
    mem: int | None = None
    leaf: str | None = None
    owned: bool = True


@dataclass
class Run:
    """A run that holds ``gpus`` of each node, or ``share`` of one named GPU."""

    name: str
    nodes: list[str]
    t0: int
    t1: int
    gpus: int = 1
    cpus: int = 0
    mem: int = 0
    gpu: str | None = None
    share: F = ONE
    state: str = "COMPLETED"
    account: str = "lab"
    marks: list[int] = field(default_factory=list)
    limit: int | None = None
    mig: tuple[int, int] | None = None
    """Compute slices and first memory slice of the instance of ``gpu`` that it holds."""

    @property
    def instance(self):
        return self.mig and f"MIG-{self.gpu}-{self.mig[0]}-{self.mig[1]}"


@dataclass
class Wait:
    name: str
    t0: int
    t1: int
    gpus: int
    nodes: int = 1
    cpus: int = 0
    mem: int = 0
    leaf: bool = False
    limit: int | None = None


@dataclass
class History:
    nodes: list[Node]
    known: list[tuple[int, int]]
    runs: list[Run]
    waits: list[Wait] = field(default_factory=list)
    states: list[tuple[str, str, int, int]] = field(default_factory=list)
    kept: list[tuple[str, int | None, str | None, int, int]] = field(default_factory=list)
    broken: list[tuple[str, str | None, str | None, int]] = field(default_factory=list)
    samples: list[tuple[str, str, str, int, int, int]] = field(default_factory=list)
    """(node, device, run, ts, step, active ppm)"""
    price_changes: list[int] = field(default_factory=list)
    headroom: int = 0
    profile: tuple[int | None, int | None] = (None, None)
    """CPU (thousandths) and memory (MiB) per GPU that the operator set."""


def half_up(x: F) -> int:
    return floor(x + F(1, 2))


def taken_late(taken):
    """Jobs that fill and do not end in time: the head must fit beside them."""
    return [(w, spot) for w, spot, in_time in taken if not in_time]


def share_out(amount, weights):
    """Exactly ``amount`` by largest remainder, ties in the order of the names."""
    total = sum(w for _, w in weights)
    exact = [F(amount * w) / total for _, w in weights]
    parts = [floor(x) for x in exact]
    order = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in order[: amount - sum(parts)]:
        parts[i] += 1
    return [(name, part) for (name, _), part in zip(weights, parts, strict=True)]


class Reference:
    def __init__(self, h: History) -> None:
        self.h = h
        self.names = sorted({n.name for n in h.nodes})
        self.back = [self.returns(b) for b in h.broken]
        self.cover = self.coverage_of_samples()

    # --- facts at one instant ------------------------------------------------------------------

    def node(self, name, t):
        """The inventory row in force: the latest that has begun, unless it ended."""
        rows = [n for n in self.h.nodes if n.name == name and n.t0 <= t]
        if not rows:
            return None
        row = max(rows, key=lambda n: n.t0)
        return row if t < row.t1 else None

    def host(self, name, t):
        """CPU and memory of the last row that has begun."""
        rows = [n for n in self.h.nodes if n.name == name and n.t0 <= t]
        return max(rows, key=lambda n: n.t0)

    def in_state(self, name, t):
        return {s for n, s, a, b in self.h.states if n == name and a <= t < b}

    def installed(self, name, t):
        row = self.node(name, t)
        if row is None or (not row.owned and "powered_down" in self.in_state(name, t)):
            return 0
        return row.gpus

    def returns(self, b):
        node, gpu, _, t = b
        ends = [e for n, _, _, e in self.h.states if n == node and t < e < INF]
        ends += [r.t0 for r in self.h.runs if gpu is not None and r.gpu == gpu and r.t0 > t]
        return min(ends, default=INF)

    def broken_now(self, node, t):
        """Breakages in force; a GPU that is broken already does not break again."""
        live, until = [], {}
        for i in sorted(range(len(self.h.broken)), key=lambda i: self.h.broken[i][3]):
            n, gpu, run, at = self.h.broken[i]
            key = (n, gpu if gpu is not None else at)
            if at < until.get(key, 0):
                continue
            until[key] = self.back[i]
            if n == node and at <= t < self.back[i]:
                live.append((gpu, run, at))
        return live

    def coverage_of_samples(self):
        devices = defaultdict(dict)
        for node, device, run, ts, step, ppm in sorted(self.h.samples, key=lambda s: s[5]):
            devices[node, device].setdefault(ts, (run, step, ppm))
        spans = []
        for (node, device), by_ts in devices.items():
            before = -INF
            for ts in sorted(by_ts):
                run, step, ppm = by_ts[ts]
                if not self.was_broken(device, ts):
                    spans.append((node, device, run, max(before, ts - 2 * step), ts, ppm))
                before = ts
        return spans

    def was_broken(self, device, ts):
        """Whether a GPU speaks for time in which it is known to be out of order."""
        return any(
            gpu == device and at < ts <= back
            for (_, gpu, _, at), back in zip(self.h.broken, self.back, strict=True)
        )

    # --- who holds -----------------------------------------------------------------------------

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

    # --- one piece of time ---------------------------------------------------------------------

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

    # --- the queue -----------------------------------------------------------------------------

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

    # --- what of the waiting GPUs could be filled ----------------------------------------------

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

    # --- who is to blame -----------------------------------------------------------------------

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
        for (node, gpu, run, slot), row in self.posted.items():
            if gpu is not None and run is None and row.get("stranded_shape"):
                mine = sorted(self.stuck_by[node, gpu, slot].items())
                for who, part in share_out(row["stranded_shape"], mine):
                    result[node, slot, "stranded_shape", "causer", "mig-geometry", who] += part
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

    # --- all of it -----------------------------------------------------------------------------

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
