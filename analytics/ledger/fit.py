"""Claims on a limited amount over time: who holds, and what contradicts."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass

from analytics.ledger.fleet import Timeline


@dataclass(frozen=True, slots=True)
class Claim:
    """Somebody says that it holds ``amount`` over ``[t0, t1)``; the smaller ``order`` holds
    first."""

    order: tuple[int, str, int]
    t0: int
    t1: int
    amount: int


@dataclass(frozen=True, slots=True)
class Grant:
    """What claim number ``claim`` is believed to hold; ``contested`` of it somebody else claims
    too."""

    claim: int
    t0: int
    t1: int
    amount: int
    contested: int


@dataclass(frozen=True, slots=True)
class Excess:
    """What claim number ``claim`` says it holds beyond what there is."""

    claim: int
    t0: int
    t1: int
    amount: int


def fit(claims: list[Claim], capacity: Timeline) -> tuple[list[Grant], list[Excess]]:
    """Believe claims up to the capacity, the earliest first; nothing is scaled to fit."""
    if always_fits([(c.t0, c.t1, c.amount) for c in claims], capacity):
        return [Grant(i, c.t0, c.t1, c.amount, 0) for i, c in enumerate(claims)], []
    grants: list[Grant] = []
    excess: list[Excess] = []
    ranked = sorted(range(len(claims)), key=lambda i: claims[i].order)
    starts = [row[0] for row in capacity]
    cuts = sorted({t for c in claims for t in (c.t0, c.t1)} | {t for r in capacity for t in r[:2]})
    for t0, t1 in itertools.pairwise(cuts):
        live = [i for i in ranked if claims[i].t0 <= t0 < claims[i].t1]
        if live:
            row = capacity[bisect_right(starts, t0) - 1] if starts and t0 >= starts[0] else None
            there = row[2] if row is not None and t0 < row[1] else 0
            _share_out(claims, live, there, (t0, t1), (grants, excess))
    return _joined(grants), excess


def always_fits(claims: Timeline, capacity: Timeline) -> bool:
    """Whether there is room for all claims ``(t0, t1, amount)`` at all times."""
    steps = [(t0, n) for t0, _, n in claims] + [(t1, -n) for _, t1, n in claims]
    steps += [(t0, -n) for t0, _, n in capacity] + [(t1, n) for _, t1, n in capacity]
    steps.sort()
    total, place = 0, 0
    while place < len(steps):
        at = steps[place][0]
        while place < len(steps) and steps[place][0] == at:
            total += steps[place][1]
            place += 1
        if total > 0:
            return False
    return True


def _share_out(
    claims: list[Claim],
    live: list[int],
    there: int,
    span: tuple[int, int],
    out: tuple[list[Grant], list[Excess]],
) -> None:
    left, given = there, []
    over = 0
    for i in live:
        take = min(claims[i].amount, left)
        left -= take
        given.append((i, take))
        if take < claims[i].amount:
            over += claims[i].amount - take
            out[1].append(Excess(i, *span, claims[i].amount - take))
    for i, take in reversed(given):
        contested = min(over, take)
        over -= contested
        if take:
            out[0].append(Grant(i, *span, take, contested))


def _joined(grants: list[Grant]) -> list[Grant]:
    """Neighbouring grants of one claim that differ in nothing but time, as one."""
    result: list[Grant] = []
    for grant in sorted(grants, key=lambda g: (g.claim, g.t0)):
        last = result[-1] if result else None
        if (
            last is not None
            and (last.claim, last.t1, last.amount, last.contested)
            == (grant.claim, grant.t0, grant.amount, grant.contested)
        ):  # fmt: skip
            result[-1] = Grant(last.claim, last.t0, grant.t1, grant.amount, grant.contested)
        else:
            result.append(grant)
    return result
