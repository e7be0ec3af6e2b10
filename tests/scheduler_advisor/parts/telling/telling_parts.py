"""Parts of GPUs for the slow telling: who lies on which GPU, where slices are, how fast neighbours
run. What is cut stays cut: `cut` is all that the world remembers of a GPU beside its jobs."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.resources import files

from telling_jobs import Piece

GPU = 1000
MODELS = {"H100": "H100-80GB", "NVIDIA A100-SXM4-80GB": "A100-80GB", "NVIDIA A30": "A30-24GB"}


@dataclass(frozen=True)
class Slice:
    """A profile of the hardware table; `compute` and `memory`: its part of the GPU."""

    name: str
    compute: Fraction
    memory: Fraction
    width: int
    starts: tuple[int, ...]

    def spans(self, start):
        return set(range(start, start + self.width))


def slices_of(model):
    """Smallest first."""
    table = files("scheduler_advisor.engine.parts").joinpath("mig.csv").read_text("utf-8")
    rows = [row for row in csv.DictReader(table.splitlines())
            if row["gpu_model"] == MODELS.get(model)]  # fmt: skip
    found = [
        Slice(
            row["profile"],
            Fraction(int(row["compute"]), int(row["of_compute"])),
            Fraction(int(row["slices"]), int(row["of_slices"])),
            int(row["slices"]),
            tuple(int(one) for one in row["starts"].split("|")),
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (one.width, one.compute, one.name))


@dataclass
class Card:
    """One GPU now. `shares`: (job, thousandths, latency-sensitive); `used`, `cut`: slices as
    (slice, start) that a job has, and all of them, the oldest first."""

    taken: bool = False
    shares: list = field(default_factory=list)
    used: list = field(default_factory=list)
    cut: list = field(default_factory=list)

    @property
    def free(self):
        return not self.taken and not self.shares and not self.used

    def room(self):
        return GPU - sum(milli for _, milli, _ in self.shares)


class Parts:
    """What a job with a part of a GPU gets, and how it runs there."""

    def part(self, at):
        """Thousandths of one GPU that each task asks for and gets as a part."""
        whole = self.policy.sharing.kind == "none" or self.table.exclusive[at]
        return 0 if whole else int(self.table.gpu_milli[at])

    def served(self, at, node):
        """The smallest slice of the node's GPUs with so much of the multiprocessors."""
        for one in self.slices[node]:
            if -(-one.compute * GPU // 1) >= self.part(at):
                return one
        return None

    def sizes(self):
        """What each job counts in its queues."""
        for at in range(len(self.table)):
            part, kind = int(self.table.gpu_milli[at]), self.policy.sharing.kind
            if not part:
                continue
            if kind == "none":
                part = GPU
            elif kind == "mig" and not self.table.exclusive[at]:
                able = [one for node in self.named(at) if (one := self.served(at, node))]
                part = max((int(one.memory * GPU) for one in able), default=part)
            self.tree.size[at] = int(self.table.tasks[at]) * part

    # What lies where

    def cards(self, pieces):
        """node -> its GPUs with those pieces on them."""
        found = {node: [Card(cut=list(cut)) for cut in self.cut[node]] for node in self.nodes}
        for at, piece in pieces:
            for one in piece.cards:
                self.put_on(found[piece.node][one], at, piece)
        return found

    def put_on(self, card, at, piece):
        if piece.slice is not None:
            profile, start = piece.slice
            if piece.slice not in card.cut:
                card.cut = [(old, first) for old, first in card.cut
                            if not old.spans(first) & profile.spans(start)]  # fmt: skip
                card.cut.append(piece.slice)
            card.used.append(piece.slice)
        elif piece.milli:
            card.shares.append((at, piece.milli, bool(self.table.latency_sensitive[at])))
            card.cut = []
        else:
            card.taken = True
            card.cut = []

    def lie(self, job, pieces):
        """The pieces are the job's for good: what they cut is cut. Seconds of rest."""
        rests = any(piece.recut for piece in pieces)
        for piece in pieces:
            for one in piece.cards:
                card = Card(cut=self.cut[piece.node][one])
                self.put_on(card, job.at, piece)
                self.cut[piece.node][one] = card.cut
        return self.policy.sharing.reconfigure_s if rests else 0

    def whole_cards(self, cards, count):
        """The lowest free GPUs, those without slices first; has one of them any?"""
        free = sorted((bool(card.cut), at) for at, card in enumerate(cards) if card.free)[:count]
        assert len(free) == count
        return tuple(sorted(at for _, at in free)), any(cut for cut, _ in free)

    # Where a part would go

    def place_part(self, at, room, cpu, able):
        """A piece for one task that asks for a part of a GPU."""
        part, sharing = self.part(at), self.policy.sharing
        if sharing.kind == "mig":
            return self.place_slice(at, room, cpu, able)
        latency, opened, fresh = bool(self.table.latency_sensitive[at]), [], []
        for node in able:
            cards = room[node][3]
            idle = sum(card.free for card in cards)
            for one, card in enumerate(cards):
                if card.free:
                    fresh.append((idle, node, GPU, one))
                elif card.shares and card.room() >= part:
                    apart = any(other != latency for *_, other in card.shares)
                    if sharing.kind == "asked" or (not apart and len(card.shares) < sharing.most):
                        opened.append((idle, node, card.room(), one))
        if not opened and not fresh:
            return None
        rule = str(self.policy.placement)
        if sharing.kind == "asked" and rule != "best-fit":
            sign = -1 if rule == "worst-fit" else 0
            _, node, _, one = min(opened + fresh, key=lambda two: (sign * two[0], *two[1:]))
        else:
            _, node, _, one = min(opened or fresh)
        return Piece(node, 1, cpu, milli=part, cards=(one,))

    def place_slice(self, at, room, cpu, able):
        found = []
        for node in able:
            wanted, cards = self.served(at, node), room[node][3]
            idle = sum(card.free for card in cards)
            for one, card in enumerate(cards):
                if wanted is None or card.taken or card.shares:
                    continue
                ready = [cut for cut in card.cut if cut[0] == wanted and cut not in card.used]
                rank = (0 if card.used else 1) if ready else (2 if card.used else 3)
                start = None if ready else self.cut_at(card, wanted, self.slices[node])
                if ready or start is not None:
                    slice_ = ready[0] if ready else (wanted, start)
                    found.append((rank, idle, node, one, slice_, not ready))
        if not found:
            return None
        *_, node, one, slice_, recut = min(found, key=lambda one: one[:4])
        return Piece(node, 1, cpu, milli=int(slice_[0].memory * GPU), cards=(one,), slice=slice_,
                     recut=recut)  # fmt: skip

    @staticmethod
    def cut_at(card, wanted, profiles):
        """Beside all that is cut, else beside what is used: where most stays possible."""
        for there in (card.cut, card.used):
            taken = {place for one, start in there for place in one.spans(start)}
            able = []
            for start in wanted.starts:
                if taken & wanted.spans(start):
                    continue
                then = taken | wanted.spans(start)
                open_ = sum(not then & one.spans(first) for one in profiles for first in one.starts)
                able.append((-open_, start))
            if able:
                return min(able)[1]
        return None

    # How fast it runs there

    def part_speed(self, job):
        """The slowest of its tasks."""
        kind, part = self.policy.sharing.kind, self.part(job.at)
        if not part or kind not in ("mig", "mps", "time-slice"):
            return Fraction(1)
        if kind == "mig":
            return min(
                min(Fraction(1), one.compute * GPU / part, one.memory * GPU / part)
                for one, _ in (piece.slice for piece in job.pieces)
            )
        speeds = []
        for piece in job.pieces:
            company = [
                other.milli
                for _, other in self.lying_by()
                if other is not piece and other.node == piece.node and other.cards == piece.cards
            ]
            # parts of one GPU never add up to more than it: each has what it asks for
            assert sum(company) + part <= GPU
            if kind == "mps":
                crowding = Fraction(self.policy.sharing.crowding_milli, GPU)
                speeds.append(1 / (1 + Fraction(sum(company), GPU) * crowding))
            else:
                switch = Fraction(self.policy.sharing.switch_milli, GPU)
                speeds.append(1 / (1 + switch * len(company)))
        return min(speeds)
