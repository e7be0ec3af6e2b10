"""EASY's promise to the head of the queue, for the slow telling."""

from __future__ import annotations

GPU = 1000


class Promise:
    """When the head will fit if all ends as believed, and what its nodes have free then."""

    def __init__(self, world, head):
        self.world, self.head = world, head
        ends = {}
        for job in world.running():
            if job.tells is None:
                up = sum(piece.gpus for piece in job.pieces if not world.down[piece.node])
                ends.setdefault(world.goes_until(job), []).append((job.pieces, up * GPU))
        for pieces, _, believed in world.claims.values():
            gpus = sum(piece.gpus for piece in pieces)
            ends.setdefault(believed, []).append((pieces, gpus * GPU))
        room, self.free, self.at = world.room(), world.free(), float("inf")
        keep = world.cluster.headroom_gpus * GPU
        for at in sorted(ends):
            for pieces, milli in ends[at]:
                self.free += milli
                for piece in pieces:
                    if piece.node in room:
                        room[piece.node][0] += piece.gpus
                        room[piece.node][1] += piece.cpu
                        room[piece.node][2] -= 1
            self.room = self.usable(room, at)
            if self.fits() and self.free - world.tree.size[head.at] >= keep:
                self.at = at
                return
        self.room, self.free = {}, 0

    def usable(self, room, at):
        """The nodes that the head may use from then on."""
        world, head = self.world, self.head.at
        until, own = at + int(world.table.limit[head]), world.table.reservation[head]
        away = {
            world.cluster.index[node]
            for rule in world.cluster.reservations
            if rule.name != own and at < rule.end_at and until > rule.start_at
            for node in rule.nodes
        }
        return {node: room[node] for node in room if node in world.named(head) - away}

    def keeps(self, node, gpus, cpu):
        """Is the promise kept with one more such task on the node?"""
        if node not in self.room:
            return True
        self.room[node][0] -= gpus
        self.room[node][1] -= cpu
        self.room[node][2] += 1
        fits = self.fits()
        self.room[node][0] += gpus
        self.room[node][1] += cpu
        self.room[node][2] -= 1
        return fits

    def fits(self):
        """Is there room for all tasks of the head, node by node?"""
        world, at = self.world, self.head.at
        tasks = world.tasks(at)
        main, last = tasks[0], tasks[-1]
        equal = int(world.table.tasks[at])
        if self.times(*main) < equal:
            return False
        return len(tasks) == equal or self.times(*last) >= equal + 1

    def times(self, gpus, cpu):
        apart, total = bool(self.world.table.distinct_nodes[self.head.at]), 0
        alone = bool(self.world.table.exclusive[self.head.at])
        for have, cores, there in self.room.values():
            if alone and there:
                continue
            often = 1 << 16
            if gpus:
                often = min(often, have // gpus)
            if cpu:
                often = min(often, cores // cpu)
            total += max(0, min(often, 1) if apart or alone else often)
        return total
