"""Moving running jobs, for the slow telling."""

from __future__ import annotations

from telling_jobs import Piece


class Moves:
    """Moves for one that waits, and passes that empty nodes."""

    def consolidates(self, job):
        part = self.policy.defrag
        if part.kind != "pending" or not self.headroom(self.tree.size[job.at]):
            return False
        since = max(part.every_s, self.policy.eviction.min_run_s)
        able = [
            other
            for other in self.running()
            if self.may_stop(other.at) and other.tells is None
            and self.serves_until(other.at) is None and not self.part(other.at)
            and self.now - other.began >= since
        ]  # fmt: skip
        gone, pieces = [], None
        for other in sorted(able, key=lambda one: (self.held(one), -one.began, -one.at)):
            gone.append(other)
            pieces = self.would(job, gone)
            if pieces is not None:
                break
        if pieces is not None:
            for other in list(reversed(gone)):
                rest = [one for one in gone if one is not other]
                if self.would(job, rest) is not None:
                    gone = rest
        self.count()
        if pieces is None or not gone or len(gone) > part.moves:
            return False
        room = self.room(gone)
        pieces, homes = self.find(job.at, room, self.tasks(job.at)), {}
        for other in sorted(gone, key=lambda one: (-self.held(one), one.at)):
            tasks = self.tasks(other.at)
            if not self.table.rest_gpus[other.at]:
                tasks = tasks[:1] * len(other.pieces)
            homes[other] = self.find(other.at, room, tasks)
            if homes[other] is None:
                return False
        for other in gone:
            self.settle(other, "requeue")
            self.leave(other, "stopped")
            other.moves += 1
        self.begin(job, pieces)
        for other, home in homes.items():
            self.begin(other, home)
        return True

    def tidy(self):
        """A pass of moves that empties nodes, where one is due; did anybody move?"""
        part = self.policy.defrag
        if (
            part.kind not in ("hours", "threshold")
            or not self.running()
            or self.moved_at == self.now
        ):
            return False
        if part.kind == "hours" and not self.on_the_hour():
            return False
        if part.kind == "threshold" and self.now - self.moved_at < part.every_s:
            return False
        room = self.room()
        idle = sum(gpus for gpus, *_ in room.values())
        beside = sum(gpus for node, (gpus, *_) in room.items() if gpus < self.cluster.gpus[node])
        if part.kind == "threshold" and (beside / idle if idle else 0.0) <= part.threshold:
            return False
        self.moved_at = self.now
        return Emptying(self, room).run() > 0


class Emptying:
    """One pass of moves over the nodes, the one with the fewest GPUs in use first."""

    def __init__(self, world, room):
        self.world, self.room = world, room
        self.first = {node: list(have) for node, have in room.items()}
        self.takes = {  # nodes that take the same jobs are of one kind
            node: (
                frozenset(job.at for job in world.jobs if node in world.named(job.at)),
                world.cluster.gpu_model[node],
            )
            for node in room
        }
        self.here = {
            node: [job for job in world.running() if any(p.node == node for p in job.pieces)]
            for node in room
        }

    def run(self):
        world, moved, took, left = self.world, set(), set(), set()
        count = 0
        total = world.cluster.gpus
        order = sorted(self.room, key=lambda node: (int(total[node]) - self.first[node][0], node))
        for node in order:
            here = self.here[node]
            if not here or self.first[node][0] == 0 or node in took or not self.worth(node):
                continue
            if any(job in moved for job in here):
                continue
            trial = {one: list(have) for one, have in self.room.items()}
            homes = {}
            for job in sorted(here, key=lambda one: (-self.part(one, node)[0], one.at)):
                gpus, cpu = self.part(job, node)
                away = world.away_from(job.at, world.goes_until(job))
                able = [
                    one for one in trial
                    if one != node and one not in left and self.here[one] and one not in away
                    and self.takes[one] == self.takes[node]
                    and trial[one][0] >= gpus and trial[one][1] >= cpu
                ]  # fmt: skip
                if not able:
                    homes = None
                    break
                homes[job] = min(able, key=lambda one: (trial[one][0], one))
                trial[homes[job]][0] -= gpus
                trial[homes[job]][1] -= cpu
            if homes is None or count + len(homes) > world.policy.defrag.moves:
                continue
            self.room = trial
            left.add(node)
            for job, home in homes.items():
                count += 1
                took.add(home)
                moved.add(job)
                self.move(job, node, home)
        return count

    def move(self, job, node, home):
        world, old = self.world, job.pieces
        job.pieces, new, rest = [one for one in old if one.node != node], [], 0
        for one in old:
            if one.node == node:
                one = Piece(home, one.gpus, one.cpu)
                if world.by_card:
                    cards = world.room()[home][3]
                    one.cards, one.recut = world.whole_cards(cards, one.gpus)
                job.pieces.append(one)
                rest = max(rest, world.lie(job, [one]))
            new.append(one)
        job.pieces = new
        job.nodes = [piece.node for piece in job.pieces]
        job.pause += self.cost(job) + rest
        job.moves += 1

    def cost(self, job):
        table = self.world.table
        return int(table.checkpoint_cost[job.at] + table.restore_cost[job.at])

    def part(self, job, node):
        here = [piece for piece in job.pieces if piece.node == node]
        return sum(one.gpus for one in here), sum(one.cpu for one in here)

    def worth(self, node):
        """Is what is won more than what it costs?"""
        world, part = self.world, self.world.policy.defrag
        longest, cost = 0, 0
        for job in self.here[node]:
            apart = len({piece.node for piece in job.pieces}) > 1
            tied = apart and bool(world.table.distinct_nodes[job.at] or world.need(job.at))
            safe = bool(world.table.preemptible[job.at]) or job.every > 0
            alone = bool(world.table.exclusive[job.at])
            tied = tied or alone
            tied = tied or bool(world.part(job.at))
            if tied or not safe or job.tells is not None or world.serves_until(job.at) is not None:
                return False
            longest = max(longest, world.goes_until(job) - world.now)
            cost += sum(piece.gpus for piece in job.pieces) * self.cost(job)
        lasts = min(part.horizon_s, longest)
        return lasts > 0 and self.first[node][0] * lasts >= part.min_gain * cost
