"""A pass over the queue, and jobs that are resized, for the slow telling."""

from __future__ import annotations

from fractions import Fraction

from telling_promise import Promise

GPU = 1000


class Passes:
    """Who starts, at which size."""

    def one_pass(self):
        policy = self.policy
        self.spared = False
        self.count()
        self.tree.share_out()
        lines, head, promise, behind, blocked = {}, None, None, 0, set()
        for job in self.queue:
            lines.setdefault(self.tree.leaf(job.at) if self.tree.by_queue else None, []).append(job)
        while True:
            self.count()
            line = self.tree.pick(lines) if self.tree.by_queue else None
            if not lines.get(line):
                break
            job = lines[line].pop(0)
            if head is not None:
                if policy.backfill == "none" and not policy.quota.strict:
                    break
                if policy.backfill_depth and behind >= policy.backfill_depth:
                    break
                behind += 1
                most = policy.backfill_max_limit_s
                if most and self.table.limit[job.at] > most:
                    continue
            leaf = self.tree.leaf(job.at)
            if (policy.quota.strict and leaf in blocked) or self.tree.over_a_limit(job.at):
                continue
            if self.held_back(job.at):
                continue
            admitted = self.tree.admits(job.at, self.tree.size[job.at], self.free())
            if admitted and self.starts(job, head, promise):
                continue
            first = leaf not in blocked
            if (admitted and first and self.consolidates(job)) or self.takes(job, head, first):
                if job in self.queue:
                    self.queue.remove(job)
                if promise is not None:
                    promise = Promise(self, head)
                continue
            blocked.add(leaf)
            if admitted and head is None:
                head = job
                promise = Promise(self, head) if policy.backfill == "easy" else None
        for job in self.stopped:
            self.wait(job)
        self.stopped = []

    def headroom(self, size, gone=()):
        return self.free(gone) - size >= self.cluster.headroom_gpus * GPU

    def starts(self, job, head, promise):
        size, elastic = self.tree.size[job.at], self.policy.elastic.kind == "resize"
        if not elastic and not self.headroom(size):
            return False
        bound = (
            promise if promise is not None and self.now + self.believed(job) > promise.at else None
        )
        if bound is not None:
            keep = self.cluster.headroom_gpus * GPU
            if bound.free - size - self.tree.size[head.at] < keep:
                return False
        pieces = self.find(job.at, self.room(), self.tasks(job.at), bound)
        if pieces is None and bound is None and elastic:
            pieces = self.smaller(job, head is None)
        if pieces is None:
            return False
        if bound is not None:
            bound.free -= sum(piece.held for piece in pieces)
        self.begin(job, pieces)
        return True

    # Elastic jobs

    def smaller(self, job, is_head):
        """The most tasks that fit; for the head others give way until its fewest do."""
        tasks, (least, _) = self.tasks(job.at), self.bends(job.at)
        if self.table.rest_gpus[job.at]:
            least = len(tasks)
        for count in range(len(tasks) - 1, least - 1, -1):
            pieces = self.find(job.at, self.room(), tasks[:count])
            if pieces is not None:
                return pieces
        return self.gives_way(job, tasks[:least]) if is_head else None

    def bending(self):
        """Running jobs that may be resized now."""
        return [
            job
            for job in self.running()
            if job.state == "runs" and job.tells is None and self.serves_until(job.at) is None
            and self.now - job.resized >= self.policy.elastic.every_s
            and self.bends(job.at)[0] < self.bends(job.at)[1]
        ]  # fmt: skip

    def gives_way(self, job, tasks):
        had = {other: list(other.pieces) for other in self.bending()}
        while True:
            able = [one for one in had if len(one.pieces) > self.bends(one.at)[0]]
            if not able:
                break
            other = min(able, key=lambda one: (self.bends(one.at)[0] - len(one.pieces), one.at))
            other.pieces = other.pieces[:-1]
            pieces = self.find(job.at, self.room(), tasks)
            if pieces is not None:
                for one, before in had.items():
                    if len(one.pieces) < len(before):
                        self.resized(one)
                return pieces
        for other, before in had.items():
            other.pieces = before
        return None

    def resized(self, job, rest=0):
        job.pause += self.policy.elastic.resize_s + rest
        job.resized = self.now
        job.resizes += 1
        job.nodes = [piece.node for piece in job.pieces]

    def grow(self):
        if self.policy.elastic.kind != "resize" or self.queue:
            return
        self.count()
        had = {job: list(job.pieces) for job in self.bending()}
        able = {job for job in had if len(job.pieces) < self.bends(job.at)[1]}
        stays = {job: self.goes_until(job) for job in had}  # at the size that it has now
        free, more = self.free(), 0
        while able:
            part = {job: Fraction(len(job.pieces), self.bends(job.at)[1]) for job in able}
            job = min(able, key=lambda one: (part[one], one.at))
            task = self.tasks(job.at)[0]
            found = None
            if self.tree.admits(job.at, (more + task[0]) * GPU, free):
                used = {piece.node for piece in job.pieces}
                found = self.find(job.at, self.room(), [task], used=used, until=stays[job])
            if found is None:
                able.discard(job)
                continue
            job.pieces = job.pieces + found
            more += sum(piece.gpus for piece in found)
            if len(job.pieces) >= self.bends(job.at)[1]:
                able.discard(job)
        for job, before in had.items():
            if len(job.pieces) > len(before):
                more = job.pieces[len(before) :]
                rest = self.policy.sharing.reconfigure_s * any(piece.recut for piece in more)
                later = self.policy.elastic.resize_s + rest + job.left / self.speed(job)
                if not job.pause and later < job.left / self.speed(job, len(before)):
                    self.resized(job, self.lie(job, more))
                else:
                    job.pieces = before
