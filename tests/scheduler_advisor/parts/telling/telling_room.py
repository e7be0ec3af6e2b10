"""What jobs ask for, what lies where, and where a job would go, for the slow telling."""

from __future__ import annotations

from fractions import Fraction
from math import log2

from telling_jobs import Piece

GPU = 1000
KIB = 1 << 20
PPM = 1_000_000


class Room:
    """Questions that are answered anew whenever they are asked."""

    def kib_of(self, at):
        return max(1, self.tree.size[at] * self.policy.eviction.gib_per_gpu * KIB // GPU)

    def reading(self, at):
        part = self.policy.eviction
        return -(-self.kib_of(at) // (part.storage_gib_s * KIB)) if part.gib_per_gpu else 0

    def tasks(self, at):
        """(GPUs, CPU) of each task, the smaller last one included."""
        jobs = self.table
        per, cpu, rest = (
            int(jobs.gpus_per_task[at]),
            int(jobs.cpu_milli[at]),
            int(jobs.rest_gpus[at]),
        )
        per = 1 if jobs.gpu_milli[at] else per
        found = [(per, cpu)] * int(jobs.tasks[at])
        return found + ([(rest, -(-cpu * rest // per))] if rest else [])

    def bends(self, at):
        jobs = self.table
        asked, fixed = int(jobs.tasks[at]), int(jobs.rest_gpus[at]) > 0
        least, most = int(jobs.min_tasks[at]), int(jobs.max_tasks[at])
        low = min(least, asked) if least and not fixed else asked
        return low, max(most, asked) if most and not fixed else asked

    def may_stop(self, at):
        return self.policy.eviction.eligible == "all" or bool(self.table.preemptible[at])

    def serves_until(self, at):
        jobs = self.table
        return int(jobs.submit[at] + jobs.run[at]) if jobs.service[at] else None

    def key(self, at):
        jobs = self.table
        first = {
            "priority": -int(jobs.priority[at]),
            "sjf-limit": int(jobs.limit[at]),
            "sjf-true": int(jobs.run[at]),
            "largest-first": -self.tree.size[at],
        }.get(str(self.policy.order), 0)
        return first, int(jobs.submit[at]), at

    def believed(self, job):
        """Seconds that an attempt from now is believed to last."""
        return max(int(self.table.limit[job.at]), job.reads + job.whole)

    def goes_until(self, job):
        """When the attempt is believed to end, as it goes now."""
        until = self.serves_until(job.at)
        seconds = job.left / self.speed(job)
        ends = self.now + job.pause - (-seconds.numerator // seconds.denominator)
        return max(ends if until is None else until, job.began + int(self.table.limit[job.at]))

    def speed(self, job, count=None):
        """1 at the size asked for; in millionths."""
        if self.part(job.at):
            return self.part_speed(job)
        count = len(job.pieces) if count is None else count
        asked = int(self.table.tasks[job.at])
        slow = self.network_speed(job, count)
        if self.table.rest_gpus[job.at] or count == asked:
            return slow
        ratio = count / asked
        keeps = self.policy.elastic.efficiency_milli / 1000
        return slow * Fraction(max(1, int(ratio * keeps ** log2(ratio) * PPM + 0.5)), PPM)

    # What lies where

    def running(self):
        """Jobs that run or leave, in the order of their starts."""
        found = [job for job in self.jobs if job.state in ("runs", "writes")]
        return sorted(found, key=lambda job: (job.began, job.at))

    def lying(self):
        """All pieces that take room."""
        for _, piece in self.lying_by():
            yield piece

    def lying_by(self):
        """The same, each with the job that it is for."""
        for job in self.jobs:
            if job.state in ("runs", "writes", "gone"):
                yield from ((job.at, piece) for piece in job.pieces)
        for job, claim in self.claims.items():
            yield from ((job.at, piece) for piece in self.beyond(job, claim))

    def beyond(self, job, claim):
        """What is kept for a job over what those hold who leave for it."""
        pieces, leaving, _ = claim
        for node in {piece.node for piece in pieces}:
            gpus = sum(piece.gpus for piece in pieces if piece.node == node)
            cpu = sum(piece.cpu for piece in pieces if piece.node == node)
            for other in leaving:
                gpus -= sum(piece.gpus for piece in other.pieces if piece.node == node)
                cpu -= sum(piece.cpu for piece in other.pieces if piece.node == node)
            yield Piece(node, max(0, gpus), max(0, cpu))

    def room(self, gone=()):
        """node -> [GPUs, CPU, tasks] free and there on nodes that are up, where some jobs ask for
        parts its GPUs one by one too; jobs of `gone` are away in thought."""
        room = {
            node: [int(self.cluster.gpus[node]), int(self.cluster.cpu_milli[node]), 0]
            for node in self.nodes
            if not self.down[node]
        }
        away = {id(piece) for job in gone for piece in job.pieces}
        for piece in self.lying():
            if id(piece) not in away and piece.node in room:
                room[piece.node][0] -= piece.gpus
                room[piece.node][1] -= piece.cpu
                room[piece.node][2] += 1
        if self.by_card:
            lies = [one for one in self.lying_by() if id(one[1]) not in away]
            for node, cards in self.cards(lies).items():
                if node in room:
                    room[node].append(cards)
                    room[node][0] = sum(card.free for card in cards)
        return room

    def free(self, gone=()):
        """Thousandths of GPUs that nobody holds, on nodes that are up."""
        away = {id(piece) for job in gone for piece in job.pieces}
        up = [node for node in self.nodes if not self.down[node]]
        return sum(int(self.cluster.gpus[node]) for node in up) * GPU - sum(
            piece.held for piece in self.lying() if id(piece) not in away and piece.node in up
        )

    def held(self, job):
        return sum(piece.held for piece in job.pieces)

    def counted(self, job):
        """In its queues: what it holds, or asks for where it has nodes to itself."""
        asks = self.table.exclusive[job.at] or self.part(job.at)
        return self.tree.size[job.at] if asks else self.held(job)

    def away_from(self, at, until):
        """Nodes that others have reserved for some of the time up to then."""
        own = self.table.reservation[at]
        return {
            self.cluster.index[node]
            for rule in self.cluster.reservations
            if rule.name != own and self.now < rule.end_at and until > rule.start_at
            for node in rule.nodes
        }

    def held_back(self, at):
        """By a reservation of its own that has not begun, or ends too soon."""
        own, limit = self.table.reservation[at], int(self.table.limit[at])
        return any(
            rule.name == own and (self.now < rule.start_at or self.now + limit > rule.end_at)
            for rule in self.cluster.reservations
        )

    def named(self, at):
        """The nodes of the job's own reservation; else all."""
        own = self.table.reservation[at]
        if not own:
            return set(self.nodes)
        return {
            self.cluster.index[node]
            for rule in self.cluster.reservations
            if rule.name == own
            for node in rule.nodes
        }

    def count(self, gone=()):
        """Tells the queues who holds what and who waits."""
        self.tree.holders = [
            (job.at, self.counted(job)) for job in self.running() if job not in gone
        ] + [(job.at, self.tree.size[job.at]) for job in self.claims]
        self.tree.waiting = [job.at for job in self.queue]

    def find(self, at, room, tasks, promise=None, used=(), until=None):
        """Pieces for the tasks, one after the other, or None; `room` and `promise` are changed."""
        apart, found = bool(self.table.distinct_nodes[at]), []
        alone, part = bool(self.table.exclusive[at]), self.part(at)
        until = self.now + int(self.table.limit[at]) if until is None else until
        able_at_all = self.named(at) - self.away_from(at, until)
        if self.policy.placement == "topology" and not part:
            return self.find_by_network(at, room, tasks, able_at_all, promise, used)
        for gpus, cpu in tasks:
            taken = {*used, *(piece.node for piece in found)} if apart else ()
            able = [
                node
                for node, (have, cores, there, *_) in room.items()
                if (part or have >= gpus) and cores >= cpu
                and node not in taken and node in able_at_all and not (alone and there)
                and (promise is None
                     or promise.keeps(node, have if alone else gpus, cores if alone else cpu))
            ]  # fmt: skip
            if part:
                piece = self.place_part(at, room, cpu, able)
                if piece is None:
                    return None  # nobody looks into this room again
                found.append(piece)
                self.put_in(room, at, piece)
                continue
            if not able:
                for piece in found if not self.by_card else ():
                    self.give(room, promise, piece, 1)
                return None
            rule = str(self.policy.placement)
            sign = {"first-fit": 0, "best-fit": 1, "worst-fit": -1}[rule]
            node = min(able, key=lambda one: (sign * room[one][0], one))
            found.append(Piece(node, *(room[node][:2] if alone else (gpus, cpu))))
            if self.by_card:
                piece = found[-1]
                piece.cards, piece.recut = self.whole_cards(room[node][3], piece.gpus)
                self.put_in(room, at, piece)
                continue
            self.give(room, promise, found[-1], -1)
        return found

    def find_by_network(self, at, room, tasks, able_at_all, promise, used=()):
        """The same by the network: all equal tasks together, then the smaller last one. One more
        task of a running job stays in the domain that it requires."""
        apart, alone = bool(self.table.distinct_nodes[at]), bool(self.table.exclusive[at])
        (gpus, cpu), need, found = tasks[0], self.need(at), []
        equal = tasks[:-1] if self.table.rest_gpus[at] and not used else tasks
        here = {node: have for node, have in room.items() if node in self.named(at)}
        if used:
            here = {node: have for node, have in here.items() if not (apart and node in used)}
            if need == "node":
                here = {node: have for node, have in here.items() if node in used}
            elif need:
                inside = {self.domain(node, need) for node in used}
                here = {node: have for node, have in here.items()
                        if self.domain(node, need) in inside}  # fmt: skip
        fits = {}
        for node, (have, cores, there, *_) in here.items():
            count = min(have // gpus, cores // cpu if cpu else have)
            wants = (have, cores) if alone else (gpus, cpu)
            if node not in able_at_all or (alone and there) or not count:
                continue
            if promise is None or promise.keeps(node, *wants):
                fits[node] = 1 if apart or alone else count
        nodes = self.gang(here, fits, len(equal), need)
        for node in nodes or ():
            wants = room[node][:2] if alone else (gpus, cpu)
            if promise is not None and not promise.keeps(node, *wants):
                nodes = None
                break
            found.append(Piece(node, *wants))
            self.give(room, promise, found[-1], -1)
        if nodes is not None and len(equal) < len(tasks):
            gpus, cpu = tasks[-1]
            taken = {piece.node for piece in found} if apart else ()
            able = [
                node for node, (have, cores, there, *_) in here.items()
                if have >= gpus and cores >= cpu and node in able_at_all and node not in taken
                and not (alone and there)
                and (promise is None or promise.keeps(
                    node, *((have, cores) if alone else (gpus, cpu))))
            ]  # fmt: skip
            node = self.beside(here, able, found, need)
            if node is None:
                nodes = None
            else:
                found.append(Piece(node, *(room[node][:2] if alone else (gpus, cpu))))
                self.give(room, promise, found[-1], -1)
        if nodes is None:
            for piece in found:
                self.give(room, promise, piece, 1)
            return None
        return found

    def put_in(self, room, at, piece):
        here = room[piece.node]
        for one in piece.cards:
            self.put_on(here[3][one], at, piece)
        here[0] = sum(card.free for card in here[3])
        here[1] -= piece.cpu
        here[2] += 1

    @staticmethod
    def give(room, promise, piece, sign):
        room[piece.node][0] += sign * piece.gpus
        room[piece.node][1] += sign * piece.cpu
        room[piece.node][2] -= sign
        if promise is not None and piece.node in promise.room:
            promise.room[piece.node][0] += sign * piece.gpus
            promise.room[piece.node][1] += sign * piece.cpu
            promise.room[piece.node][2] -= sign
