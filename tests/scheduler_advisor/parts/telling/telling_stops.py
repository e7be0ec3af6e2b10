"""Whom to stop for a job, for the slow telling."""

from __future__ import annotations

GPU = 1000
HOUR = 3600


class Stops:
    """Victims, guards, and how they are told."""

    def takes(self, job, head, first):
        """Stops others for the job if it may."""
        policy, part = self.policy, self.policy.eviction
        own = part.reach == "queue"
        ranked = policy.preemption == "priority" and (first if own else head is None)
        reclaims = policy.quota.reclaim != "none" and first
        if not ranked and not reclaims:
            return False
        found = self.victims(job, ranked, reclaims)
        gone, pieces = [], None
        for other, reclaimed in found:
            self.count(gone)
            if reclaimed and not self.above(job, other):
                continue
            if not self.guards(other, gone):
                self.spared = True
                continue
            gone.append(other)
            pieces = self.would(job, gone)
            if pieces is not None:
                break
        if pieces is None:
            self.count()
            return False
        for other in list(reversed(gone)):
            rest = [one for one in gone if one is not other]
            if self.would(job, rest) is not None:
                gone = rest
        pieces = self.would(job, gone)
        self.count()
        if not gone:
            return False
        job.by = 1 if any(not reclaimed for other, reclaimed in found if other in gone) else 2
        self.note(gone)
        self.told(job, gone, pieces)
        return True

    def victims(self, job, ranked, reclaims):
        part, found = self.policy.eviction, []
        for other in self.running():
            if (
                other.tells is not None
                or not self.may_stop(other.at)
                or self.serves_until(other.at) is not None
                or self.now - other.began < part.min_run_s
                or (part.max_per_job and other.stops >= part.max_per_job)
            ):
                continue
            same = self.tree.leaf(other.at) is self.tree.leaf(job.at)
            less = ranked and self.standing[other.at] < self.standing[job.at]
            less = less and (same or part.reach != "queue")
            lent = False
            if reclaims and not same:
                mine, _ = self.tree.part_at(job.at, other.at)
                lent = self.tree.used(mine) + self.tree.size[job.at] <= self.tree.right(mine)
            if less or lent:
                found.append((other, lent and not less))
        return sorted(found, key=lambda pair: (not pair[1], *self.order(pair[0])))

    def order(self, job):
        kind, ties = self.policy.eviction.victims, (-job.began, -job.at)
        if kind == "youngest":
            return ties
        if kind == "least-lost":
            progress, safe = job.achieved()
            lost = {"requeue": progress - safe, "scratch": progress + job.run - job.todo}
            cost = lost.get(str(self.policy.eviction.mode), 0) * self.tree.size[job.at]
            return (cost, self.standing[job.at], *ties)
        return (self.standing[job.at], *ties)

    def above(self, job, other):
        _, theirs = self.tree.part_at(job.at, other.at)
        held, right = self.tree.used(theirs), self.tree.right(theirs)
        if self.policy.quota.reclaim == "strict":
            return held - self.counted(other) >= right
        return held > right

    def guards(self, other, gone):
        part, hour = self.policy.eviction, self.now // HOUR
        so_far = self.in_hour if self.hour == hour else 0
        if part.max_per_hour and so_far + len(gone) + 1 > part.max_per_hour:
            return False
        team = self.tree.leaf(other.at)
        at, total = self.by_team.get(team, (hour, 0))
        total = total if at == hour else 0
        total += sum(self.counted(one) for one in gone if self.tree.leaf(one.at) is team)
        most = part.max_team_gpus_per_hour * GPU
        return not most or total + self.counted(other) <= most

    def note(self, gone):
        hour = self.now // HOUR
        if self.hour != hour:
            self.hour, self.in_hour = hour, 0
        self.in_hour += len(gone)
        for other in gone:
            other.stops += 1
            team = self.tree.leaf(other.at)
            at, total = self.by_team.get(team, (hour, 0))
            self.by_team[team] = hour, (total if at == hour else 0) + self.counted(other)

    def would(self, job, gone):
        """Where the job would go with those away."""
        self.count(gone)
        size, free = self.tree.size[job.at], self.free(gone)
        if not self.headroom(size, gone) or not self.tree.admits(job.at, size, free):
            return None
        return self.find(job.at, self.room(gone), self.tasks(job.at))

    def told(self, job, gone, pieces):
        part = self.policy.eviction
        if not part.grace_s and not (part.mode == "checkpoint" and part.gib_per_gpu):
            for other in gone:
                self.settle(other, part.mode)
                self.leave(other, "stopped")
                self.stopped.append(other)
            self.begin(job, pieces)
            return
        for other in gone:
            other.tells, other.until = job, self.now + part.grace_s
        job.state = "claims"
        self.claims[job] = (pieces, gone, self.now + part.grace_s + self.believed(job))
