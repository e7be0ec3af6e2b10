"""Stopping jobs for others in the parts' driver: whom, how long it takes, who gets the room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler_advisor.engine.groups import tiers
from scheduler_advisor.engine.live.settings import Eligible, Rank, Reach, Reclaim, Stop, Victims
from scheduler_advisor.engine.parts.ask import lift
from scheduler_advisor.engine.parts.floor import Piece, take_whole
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.settings import Defrag
from scheduler_advisor.engine.policy import Preemption

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.fluid import Fluid

HOUR_S = 3600
KIB = 1 << 20  # KiB in a GiB
NEVER = 1 << 62
BY_RANK, BY_RECLAIM = 1, 2


@dataclass
class Claim:
    """A job whose room is being made: where it will run, whom it waits for, what is kept for it
    beyond what they hold."""

    job: int
    pieces: list[Piece]
    victims: list[int]
    extras: list[Piece]
    believed: int
    left: int


class Stops:
    """Victims, guards, claims and checkpoints on their way out."""

    def __init__(self, fluid: Fluid) -> None:
        jobs, policy = fluid.jobs, fluid.policy
        self._fluid, self._part, self._quota = fluid, policy.eviction, policy.quota
        by_tier = self._part.by is Rank.TIER
        standing = tiers(jobs, fluid.cluster) if by_tier else jobs.priority
        self._standing: list[int] = standing.tolist()
        every = self._part.eligible is Eligible.ALL
        self.may_stop = [every or bool(flag) for flag in jobs.preemptible.tolist()]
        self.by_rank = policy.preemption is Preemption.PRIORITY
        self.reclaims = self._quota.reclaim is not Reclaim.NONE
        self.claims: list[Claim] = []
        self.claim_of: dict[int, Claim] = {}
        self._deadline: dict[int, int] = {}
        self._gone: dict[int, tuple[list[Piece], bool]] = {}
        self._writing: dict[int, int] = {}
        self._wrote_at = 0
        self._stopped_at: dict[int, int] = {}
        self.count = [0] * len(jobs)
        self.by, self.asked_at = [0] * len(jobs), [-1] * len(jobs)
        self._hour, self._in_hour = -1, 0
        self._by_leaf: dict[object, tuple[int, int]] = {}
        self.budget_out = False

    def restore_s(self, job: int) -> int:
        """What reading a checkpoint back over the storage takes beside the job's own restore."""
        if not self._part.gib_per_gpu:
            return 0
        return -(-self._kib(job) // (self._part.storage_gib_s * KIB))

    def _kib(self, job: int) -> int:
        return max(1, self._fluid.queues.size[job] * self._part.gib_per_gpu * KIB // WHOLE)

    # Whom

    def make_room(self, job: int, by_rank: bool, reclaim: bool) -> bool:
        """Stops as few jobs as this order of victims needs so that the job can start; it starts at
        once, or when they have left. False: nothing has changed."""
        fluid = self._fluid
        found = self._candidates(job, by_rank, reclaim)
        lifted: list[int] = []
        pieces = None
        for other, reclaimed in found:
            if reclaimed and not self._above(job, other):
                continue
            if not self._within_budget(other, lifted):
                self.budget_out = True
                continue
            fluid.lift_off(other)
            lifted.append(other)
            if (pieces := fluid.would_fit(job)) is not None:
                break
        if pieces is not None:
            pieces = self._fewer(job, lifted, pieces)
        for other in lifted:
            fluid.put_back(other)
        if pieces is None or not lifted:
            return False
        ranked = {other for other, reclaimed in found if not reclaimed}
        self.by[job] = BY_RANK if ranked & set(lifted) else BY_RECLAIM
        self.asked_at[job] = fluid.now
        self._note(lifted)
        self._claim(job, pieces, lifted)
        return True

    def _fewer(self, job: int, lifted: list[int], pieces: list[Piece]) -> list[Piece]:
        """Last one first, each goes back if the job fits all the same."""
        fluid = self._fluid
        for other in list(reversed(lifted)):
            fluid.put_back(other)
            found = fluid.would_fit(job)
            if found is None:
                fluid.lift_off(other)
            else:
                lifted.remove(other)
                pieces = found
        return fluid.would_fit(job) or pieces

    def _candidates(self, job: int, by_rank: bool, reclaim: bool) -> list[tuple[int, bool]]:
        fluid, part = self._fluid, self._part
        found = []
        for other, runner in fluid.running.items():
            if (
                other in self.claim_of
                or not self.may_stop[other]
                or runner.until is not None
                or fluid.component[other] != fluid.component[job]
                or fluid.now - runner.started < part.min_run_s
                or (part.max_per_job and self.count[other] >= part.max_per_job)
            ):
                continue
            same = fluid.queues.leaf(other) is fluid.queues.leaf(job)
            ranked = by_rank and self._standing[other] < self._standing[job]
            ranked = ranked and (same or part.reach is not Reach.QUEUE)
            mine = reclaim and not same and self._within(job, other)
            if mine or ranked:
                found.append((other, mine and not ranked))
        return sorted(found, key=lambda pair: (not pair[1], *self._order(pair[0])))

    def _order(self, job: int) -> tuple[int, ...]:
        ties = (-self._fluid.running[job].started, -job)
        if self._part.victims is Victims.YOUNGEST:
            return ties
        if self._part.victims is Victims.LEAST_LOST:
            return (self._lost(job), self._standing[job], *ties)
        return (self._standing[job], *ties)

    def _lost(self, job: int) -> int:
        """GPU-milliseconds that stopping the job now would lose."""
        runner, progress = self._fluid.running[job], self._fluid.progress[job]
        runner.settle(self._fluid.now)
        lost = progress.would_lose(runner.done, self._part.mode)
        return lost * self._fluid.queues.size[job]

    def _within(self, job: int, other: int) -> bool:
        queues = self._fluid.queues
        found = queues.parting(job, other)
        return found is not None and found[0].used + queues.size[job] <= queues.entitled(found[0])

    def _above(self, job: int, other: int) -> bool:
        queues = self._fluid.queues
        found = queues.parting(job, other)
        assert found is not None  # only other queues' jobs are reclaimed
        theirs = found[1]
        if self._quota.reclaim is Reclaim.STRICT:
            held = self._fluid.counted(other)
            return theirs.used - held >= queues.entitled(theirs)
        return theirs.used > queues.entitled(theirs)

    def _within_budget(self, other: int, lifted: list[int]) -> bool:
        part, hour, fluid = self._part, self._fluid.now // HOUR_S, self._fluid
        so_far = self._in_hour if self._hour == hour else 0
        if part.max_per_hour and so_far + len(lifted) + 1 > part.max_per_hour:
            return False
        leaf = fluid.queues.leaf(other)
        at, gone = self._by_leaf.get(leaf, (hour, 0))
        gone = gone if at == hour else 0
        gone += sum(fluid.counted(one) for one in lifted if fluid.queues.leaf(one) is leaf)
        most = part.max_team_gpus_per_hour * WHOLE
        return not most or gone + fluid.counted(other) <= most

    def _note(self, victims: list[int]) -> None:
        hour = self._fluid.now // HOUR_S
        if self._hour != hour:
            self._hour, self._in_hour = hour, 0
        self._in_hour += len(victims)
        for job in victims:
            self.count[job] += 1
            leaf = self._fluid.queues.leaf(job)
            at, gone = self._by_leaf.get(leaf, (hour, 0))
            gone = gone if at == hour else 0
            self._by_leaf[leaf] = (hour, gone + self._fluid.counted(job))

    # How long it takes

    def _claim(self, job: int, pieces: list[Piece], victims: list[int]) -> None:
        fluid = self._fluid
        if not self._part.takes_time:
            for other in victims:
                fluid.stop(other, self._part.mode)
                fluid.stopped.append(other)
            again = fluid.find(fluid.asks[job], fluid.asks[job].tasks)
            assert again is not None  # it fitted a moment ago
            fluid.begin(fluid.asks[job], fluid.asks[job].tasks, again)
            return
        extras = self._extras(job, pieces, victims)
        believed = fluid.now + self._part.grace_s + fluid.believed_s(job)
        claim = Claim(job, pieces, victims, extras, believed, len(victims))
        self.claims.append(claim)
        size = fluid.queues.size[job]
        fluid.queues.holds(job, size, 1, fluid.now)
        fluid.keep(sum(len(piece.gpus) for piece in extras) * WHOLE)
        for other in victims:
            self.claim_of[other] = claim
            self._deadline[other] = fluid.now + self._part.grace_s

    def _extras(self, job: int, pieces: list[Piece], victims: list[int]) -> list[Piece]:
        fluid, extras = self._fluid, []
        theirs = [piece for other in victims for piece in fluid.running[other].pieces]
        for node in sorted({piece.node for piece in pieces}):
            need = [piece for piece in pieces if piece.node == node]
            left = [piece for piece in theirs if piece.node == node]
            gpus = sum(len(one.gpus) for one in need) - sum(len(one.gpus) for one in left)
            cpu = sum(one.cpu for one in need) - sum(one.cpu for one in left)
            mem = sum(one.mem for one in need) - sum(one.mem for one in left)
            extras.append(
                take_whole(fluid.floor, node, job, max(0, gpus), max(0, cpu), max(0, mem))
            )
        return extras

    def leaves(self, job: int, pieces: list[Piece], held: int) -> bool:
        """A victim has left: what it held is kept for whom it made room. False: it is none."""
        if job not in self.claim_of:
            return False
        self.claim_of[job].left -= 1
        self._gone[job] = (pieces, self._fluid.over[job])
        self._deadline.pop(job, None)
        self._fluid.keep(held)
        return True

    def next(self) -> int:
        """The next instant at which somebody has to be gone, or may be stopped at last."""
        return min([*self._deadline.values(), *self._written(), *self._wakes()], default=NEVER)

    def _written(self) -> list[int]:
        rate = self._rate()
        return [self._wrote_at + max(0, -(-left // rate)) for left in self._writing.values()]

    def _rate(self) -> int:
        return max(1, self._part.storage_gib_s * KIB // max(1, len(self._writing)))

    def _wakes(self) -> list[int]:
        fluid, part = self._fluid, self._part
        wakes = []
        moves = fluid.policy.defrag.kind is Defrag.PENDING
        if part.min_run_s and (self.by_rank or self.reclaims or moves):
            for job, runner in fluid.running.items():
                at = runner.started + part.min_run_s
                if self.may_stop[job] and job not in self.claim_of and at > fluid.now:
                    wakes.append(at)
        if self.budget_out and fluid.running:
            wakes.append((fluid.now // HOUR_S + 1) * HOUR_S)
        return wakes

    def write_on(self) -> None:
        """Those who write share the bandwidth up to now."""
        rate = self._rate()
        for job in self._writing:
            self._writing[job] -= rate * (self._fluid.now - self._wrote_at)
        self._wrote_at = self._fluid.now

    def happen(self) -> None:
        """Grace ends, checkpoints are written, rooms change hands: what is due now."""
        fluid, part = self._fluid, self._part
        for job in sorted(job for job, at in self._deadline.items() if at <= fluid.now):
            del self._deadline[job]
            if part.mode is Stop.CHECKPOINT and part.gib_per_gpu:
                fluid.settle(job, part.mode)
                fluid.running[job].version = -1  # no end of its own any more
                self._writing[job] = self._kib(job)
                self._stopped_at[job] = fluid.now
            else:
                fluid.stop(job, part.mode)
        for job in sorted(job for job, left in self._writing.items() if left <= 0):
            del self._writing[job]
            fluid.progress[job].overhead += fluid.now - self._stopped_at[job]
            fluid.leave(job)
        for claim in sorted(self.claims, key=lambda one: one.job):
            if not claim.left:
                self._resolve(claim)

    def _resolve(self, claim: Claim) -> None:
        """The last victim has left: the job starts, they queue again."""
        fluid, job = self._fluid, claim.job
        self.claims.remove(claim)
        lift(fluid.floor, claim.extras, job)
        fluid.keep(-sum(len(piece.gpus) for piece in claim.extras) * WHOLE)
        for other in claim.victims:
            del self.claim_of[other]
            pieces, over = self._gone.pop(other)
            lift(fluid.floor, pieces, other)
            fluid.keep(-sum(fluid.speeds.held_milli(fluid.asks[other], one) for one in pieces))
            if not over:
                fluid.enqueue(other)
        fluid.queues.holds(job, fluid.queues.size[job], -1, fluid.now)
        if fluid.not_wanted(job):  # a replica whose time went by while others left for it
            fluid.expired[job] = True
            return
        pieces = [
            take_whole(fluid.floor, one.node, job, len(one.gpus), one.cpu, one.mem)
            for one in claim.pieces
        ]
        fluid.begin(fluid.asks[job], fluid.asks[job].tasks, pieces)
