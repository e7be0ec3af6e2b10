"""What the steps of one computation share."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.ledger.facts import Facts
from analytics.ledger.fleet import Fleet
from analytics.ledger.held import Held
from analytics.ledger.kernel import Array
from analytics.ledger.pricing import PriceTimes
from collector.store import Work


@dataclass(slots=True)
class Frame:
    """One window of one cluster; ``bounds`` are the bounds of its slices in microseconds."""

    work: Work
    facts: Facts
    fleet: Fleet
    held: Held
    bounds: Array
    prices: PriceTimes
