"""How much GPU time and money a piece of advice is about, cell by cell, so that overlaps show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

MICRO_GPU_S_PER_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The amount of one claim on one UTC day.

    ``claim`` names what is won back (``run:<cluster>/<run>``, ``free:<cluster>/<node>``,
    ``drained:<cluster>/<node>``, ...): two recommendations with the same claim win it back once.
    ``micro_gpu_s`` is GPU time in millionths of a second, ``cost`` its price or None where the
    model has none; ``cash`` = the capacity can be given back to whoever sold it.
    """

    claim: str
    day: date
    micro_gpu_s: int
    cost: Decimal | None
    cash: bool = False
    cluster: str | None = None
    run_id: str | None = None
    node: str | None = None
    gpu_model: str | None = None

    def scaled(self, ratio: float) -> Part:
        """The same part with ``ratio`` (0 to 1) of its amount, rounded to whole micro-units."""
        micro = round(self.micro_gpu_s * ratio)
        cost = None
        if self.cost is not None:
            cost = self.cost * micro / self.micro_gpu_s if self.micro_gpu_s else Decimal(0)
        return Part(
            claim=self.claim, day=self.day, micro_gpu_s=micro, cost=cost, cash=self.cash,
            cluster=self.cluster, run_id=self.run_id, node=self.node, gpu_model=self.gpu_model,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """GPU-hours with their cost; ``cost`` None = no part of it has a price."""

    gpu_hours: float
    cost: Decimal | None
    cash: Decimal
    unpriced_gpu_hours: float = 0.0

    @property
    def capacity(self) -> Decimal:
        """The part of the cost that frees capacity but gives no money back."""
        return (self.cost or Decimal(0)) - self.cash

    def times(self, factor: float) -> Amount:
        """The amount scaled by ``factor``, such as 1 / weeks."""
        by = Decimal(repr(factor))
        return Amount(
            gpu_hours=self.gpu_hours * factor, cost=None if self.cost is None else self.cost * by,
            cash=self.cash * by, unpriced_gpu_hours=self.unpriced_gpu_hours * factor,
        )  # fmt: skip


def total(parts: Iterable[Part]) -> Amount:
    """The plain sum of ``parts``; use `joint` for parts of more than one recommendation."""
    micro = unpriced = 0
    cost, cash, priced = Decimal(0), Decimal(0), False
    for part in parts:
        micro += part.micro_gpu_s
        if part.cost is None:
            unpriced += part.micro_gpu_s
            continue
        priced = True
        cost += part.cost
        cash += part.cost if part.cash else 0
    return Amount(
        gpu_hours=micro / MICRO_GPU_S_PER_HOUR, cost=cost if priced or not unpriced else None,
        cash=cash, unpriced_gpu_hours=unpriced / MICRO_GPU_S_PER_HOUR,
    )  # fmt: skip


def joint(several: Iterable[Iterable[Part]]) -> Amount:
    """What several recommendations win together: each claim counts once, at its largest.

    Two changes that win back the same GPU-hours of one run win them back once; the larger of the
    two amounts is what both together can win.
    """
    best: dict[str, Amount] = {}
    for parts in several:
        by_claim: dict[str, list[Part]] = defaultdict(list)
        for part in parts:
            by_claim[part.claim].append(part)
        for claim, own in by_claim.items():
            amount = total(own)
            if claim not in best or amount.gpu_hours > best[claim].gpu_hours:
                best[claim] = amount
    return added(best.values())


def added(amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts that do not overlap."""
    hours = unpriced = 0.0
    cost, cash, priced = Decimal(0), Decimal(0), False
    for amount in amounts:
        hours += amount.gpu_hours
        unpriced += amount.unpriced_gpu_hours
        cash += amount.cash
        cost += amount.cost or 0
        priced = priced or amount.cost is not None
    return Amount(
        gpu_hours=hours, cost=cost if priced or not unpriced else None, cash=cash,
        unpriced_gpu_hours=unpriced,
    )  # fmt: skip


def claims(parts: Iterable[Part]) -> set[str]:
    """What the parts would win back."""
    return {part.claim for part in parts}
