"""Facts at one instant."""

from __future__ import annotations

from collections import defaultdict

from reference.history import (
    INF,
    History,
)


class Instant:
    """Facts at one instant."""

    def __init__(self, h: History) -> None:
        self.h = h
        self.names = sorted({n.name for n in h.nodes})
        self.back = [self.returns(b) for b in h.broken]
        self.cover = self.coverage_of_samples()

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
                    start = max(before, ts - 2 * step, self.back_before(device, ts))
                    spans.append((node, device, run, start, ts, ppm))
                before = ts
        return spans

    def back_before(self, device, ts):
        """When a GPU last came back: of the time before it says nothing."""
        back = zip(self.h.broken, self.back, strict=True)
        return max((t for (_, gpu, _, _), t in back if gpu == device and t < ts), default=-INF)

    def was_broken(self, device, ts):
        """Whether a GPU speaks for time in which it is known to be out of order."""
        return any(
            gpu == device and at < ts <= back
            for (_, gpu, _, at), back in zip(self.h.broken, self.back, strict=True)
        )
