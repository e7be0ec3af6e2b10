"""The parts' driver told slowly: second by second, every speed worked out anew in each of them.

Only what lies on the floor and the rules of single decisions (`plan_moves`, `next_to_grow`, ...,
each with tests of its own) are shared with the driver; time, queue, pauses, ends and who is told of
whose change are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from scheduler_advisor.engine.parts.ask import Ask, lift, place
from scheduler_advisor.engine.parts.floor import Piece, take_whole
from scheduler_advisor.engine.parts.fluid import Fluid
from scheduler_advisor.engine.parts.fluid_moves import houses_of, move_cost_s
from scheduler_advisor.engine.parts.fluid_resize import least_tasks, most_tasks
from scheduler_advisor.engine.parts.moves import plan_moves, scattered_share
from scheduler_advisor.engine.parts.resize import Span, next_to_grow, next_to_shrink
from scheduler_advisor.engine.parts.runner import Runner
from scheduler_advisor.engine.parts.settings import Defrag, Elastic
from scheduler_advisor.engine.policy import Backfill


@dataclass
class Slow:
    """One job on the floor: what is left of its work, seconds of pause, seconds run so far."""

    ask: Ask
    pieces: list[Piece]
    left: Fraction
    pause: int
    started: int
    resized: int

    @property
    def tasks(self) -> int:
        return len(self.pieces) - (1 if self.ask.rest else 0)


class SecondBySecond:
    """Uses a `Fluid` that never ran for its inputs, floor and speeds alone."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid, self.policy, self.floor = fluid, fluid.policy, fluid.floor
        self.on: dict[int, Slow] = {}
        self.waits: list[int] = []
        self.ends: dict[int, int] = {}
        self.starts: dict[int, list[int]] = {}
        self.moved: dict[int, int] = {}
        self.resized: dict[int, int] = {}
        self.moved_at = -(1 << 60)

    def run(self, unplaceable: list[bool], until: int) -> None:
        """Lets `until` seconds pass."""
        jobs = self.fluid.jobs
        outside = list(self.fluid.outside)
        for now in range(until):
            changed = self._end(now)
            while outside and outside[0][0] <= now:
                self._outside(*outside.pop(0)[1:], now=now)
                changed = True
            for job in range(len(jobs)):
                if jobs.eligible[job] == now:
                    self.waits += [] if unplaceable[job] else [job]
                    changed = True
            changed = self._give_up(now) or changed
            if changed or self._by_clock(now):
                self._pass(now)
                if self.policy.elastic.kind is Elastic.RESIZE and not self.waits:
                    self._grow(now)
                self._move(now)
            self._work()

    def _work(self) -> None:
        """One second goes by."""
        speeds = {job: self._speed(slow) for job, slow in self.on.items()}
        for job, slow in self.on.items():
            if slow.pause:
                slow.pause -= 1
            else:
                slow.left -= speeds[job]

    def _speed(self, slow: Slow) -> Fraction:
        return self.fluid.speeds.of(
            Runner(slow.ask, slow.tasks, slow.pieces, slow.started, 0, 0, 0)
        )

    def _until(self, job: int) -> int | None:
        jobs = self.fluid.jobs
        return int(jobs.submit[job] + jobs.run[job]) if jobs.service[job] else None

    def _end(self, now: int) -> bool:
        ended = []
        for job, slow in self.on.items():
            until = self._until(job)
            over = slow.left <= 0 and not slow.pause if until is None else now >= until
            if over:
                ended.append(job)
        for job in ended:
            self._off(job)
            self.ends[job] = now
            self.fluid.progress[job].finish()
        return bool(ended)

    def _off(self, job: int) -> None:
        lift(self.floor, self.on[job].pieces, job)
        del self.on[job]

    def _outside(self, kind: int, node: int, *, now: int) -> None:
        self.floor[node].down += -1 if kind == 0 else 1
        if kind != 1:
            return
        for job in [job for job, slow in self.on.items() if node in {p.node for p in slow.pieces}]:
            slow, progress = self.on[job], self.fluid.progress[job]
            progress.stop(now - slow.started, int(progress.work - slow.left))
            self._off(job)
            self.waits.append(job)

    def _give_up(self, now: int) -> bool:
        gone = [job for job in self.waits if (self._until(job) or now + 1) <= now]
        self.waits = [job for job in self.waits if job not in gone]
        return bool(gone)

    def _pass(self, now: int) -> None:
        for job in sorted(self.waits, key=lambda one: self.fluid.key[one]):
            before = [
                other
                for other in self.waits
                if self.fluid.key[other] < self.fluid.key[job]
                and self.fluid.component[other] == self.fluid.component[job]
            ]
            if before and self.policy.backfill is Backfill.NONE:
                continue
            found = self._room(job, now, head=not before)
            if found is not None:
                self.waits.remove(job)
                self._begin(job, found, now)

    def _begin(self, job: int, pieces: list[Piece], now: int) -> None:
        progress = self.fluid.progress[job]
        pause = progress.restoring
        if any(piece.recut for piece in pieces):
            pause += self.policy.sharing.reconfigure_s
        work = Fraction(progress.work)
        self.on[job] = Slow(self.fluid.asks[job], pieces, work, pause, now, now)
        self.starts.setdefault(job, []).append(now)

    def _room(self, job: int, now: int, *, head: bool) -> list[Piece] | None:
        ask = self.fluid.asks[job]
        least = ask.tasks
        if self.policy.elastic.kind is Elastic.RESIZE:
            least = least_tasks(self.fluid, ask)
        for tasks in range(ask.tasks, least - 1, -1):
            pieces = place(self.floor, ask, tasks, self.policy, self.fluid.tree)
            if pieces is not None:
                return pieces
        if self.policy.elastic.kind is not Elastic.RESIZE or not head:
            return None
        spans = self._spans(now)
        while (victim := next_to_shrink(spans)) is not None:
            spans[victim] = replace(spans[victim], tasks=spans[victim].tasks - 1)
            # Everybody off, then back with fewer tasks: would the job fit beside them?
            trial = {job: span.tasks for job, span in spans.items()}
            found = self._with_sizes(trial, ask, least, now)
            if found is not None:
                return found
        return None

    def _with_sizes(
        self, sizes: dict[int, int], ask: Ask, tasks: int, now: int
    ) -> list[Piece] | None:
        gone = {job: self.on[job].pieces[size:] for job, size in sizes.items()}
        for job, pieces in gone.items():
            for piece in pieces:
                lift(self.floor, [piece], job)
        found = place(self.floor, ask, tasks, self.policy, self.fluid.tree)
        for job, pieces in gone.items():
            if found is None:
                for piece in pieces:
                    for at in piece.gpus:
                        self.floor[piece.node].gpus[at].whole = job
                    self.floor[piece.node].cpu -= piece.cpu
                    self.floor[piece.node].mem -= piece.mem
                    self.floor[piece.node].tasks += 1
            elif pieces:
                self._changed(job, self.on[job].pieces[: sizes[job]], now)
        return found

    def _changed(self, job: int, pieces: list[Piece], now: int) -> None:
        slow = self.on[job]
        slow.pieces, slow.resized = pieces, now
        slow.pause += self.policy.elastic.resize_s
        self.resized[job] = self.resized.get(job, 0) + 1

    def _spans(self, now: int) -> dict[int, Span]:
        spans = {}
        for job, slow in sorted(self.on.items()):
            least, most = least_tasks(self.fluid, slow.ask), most_tasks(self.fluid, slow.ask)
            if (
                now - slow.resized >= self.policy.elastic.every_s
                and least < most
                and self._until(job) is None
            ):
                spans[job] = Span(slow.tasks, least, most)
        return spans

    def _grow(self, now: int) -> None:
        spans = self._spans(now)
        more: dict[int, list[Piece]] = {}
        while able := next_to_grow(spans):
            job = able[0]
            one = replace(self.on[job].ask, tasks=1)
            pieces = place(self.floor, one, 1, self.policy, self.fluid.tree)
            if pieces is None:
                del spans[job]
                continue
            more[job] = [*more.get(job, []), *pieces]
            spans[job] = replace(spans[job], tasks=spans[job].tasks + 1)
        for job, pieces in more.items():
            slow = self.on[job]
            larger = replace(slow, pieces=[*slow.pieces, *pieces])
            sooner = self.policy.elastic.resize_s + slow.left / self._speed(
                larger
            ) < slow.left / self._speed(slow)
            if sooner and not slow.pause:
                self._changed(job, larger.pieces, now)
            else:
                lift(self.floor, pieces, job)

    def _by_clock(self, now: int) -> bool:
        part = self.policy.defrag
        due = part.kind is Defrag.HOURS and now % 3600 == 0
        return due and now // 3600 % 24 in part.hours_of_day()

    def _move(self, now: int) -> None:
        part = self.policy.defrag
        if part.kind is Defrag.NONE or not self.on or self.moved_at == now:
            return
        if part.kind is Defrag.HOURS and not self._by_clock(now):
            return
        if part.kind is Defrag.THRESHOLD and now - self.moved_at < part.every_s:
            return
        self._show(now)
        houses = houses_of(self.fluid)
        if part.kind is Defrag.THRESHOLD and scattered_share(houses) <= part.threshold:
            return
        self.moved_at = now
        moves = plan_moves(houses, part.moves, part.horizon_s, part.min_gain)
        for move in moves:
            slow = self.on[move.job]
            for old in slow.pieces:
                if old.node == move.source:
                    lift(self.floor, [old], move.job)
            for at, old in enumerate(slow.pieces):
                if old.node == move.source:
                    slow.pieces[at] = take_whole(
                        self.floor, move.target, move.job, len(old.gpus), old.cpu, old.mem
                    )
            slow.pause += move_cost_s(self.fluid, move.job)
            self.moved[move.job] = self.moved.get(move.job, 0) + 1
        if moves and self.waits:
            self._pass(now)

    def _show(self, now: int) -> None:
        """Lets the houses be told from what is on the floor."""
        self.fluid.now = now
        self.fluid.running = {}
        for job, slow in self.on.items():
            quotient = slow.left / self._speed(slow)
            end = now + slow.pause - (-quotient.numerator // quotient.denominator)
            self.fluid.running[job] = Runner(
                slow.ask, slow.tasks, slow.pieces, slow.started, 0, 0, 0, end=end,
                until=self._until(job),
            )  # fmt: skip
