"""Time is posted to its holder, cost to whom the who-pays table names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from analytics.ledger.classes import STRANDED, LedgerClass, Overlay
from analytics.org import WHOLE_PPM
from analytics.reports.amounts import Sum
from analytics.reports.asked import Key, Question
from analytics.reports.cells import Cell
from analytics.reports.identity import PER_UNIT
from analytics.reports.keys import CLASS_KEY, HOLDER_KEYS
from analytics.reports.rates import Rates
from analytics.reports.spread import Pool
from analytics.who_pays import Payer, Unallocated, WhoPays

_CLASSES = {name.value: name for name in LedgerClass}
CLASS_NAMES = frozenset(_CLASSES)
_BESIDE = {
    Overlay.POSSIBLY_LOST: "used",
    Overlay.SUSPECT_HANG: "used",
    Overlay.FILLABLE: "gang_wait",
    Overlay.STRANDED_LOW: "stranded_cpu",
    Overlay.STRANDED_HIGH: "stranded_cpu",
    Overlay.CONTESTED: "used",
    Overlay.VRAM_IDLE: "used",
}


@dataclass(slots=True)
class Books:
    """What the sums of one report are made with."""

    question: Question
    pays: WhoPays
    rates: Rates
    currency: str | None
    sums: dict[Key, Sum] = field(default_factory=lambda: defaultdict(Sum))
    pool: Pool = field(default_factory=Pool)
    _units: dict[tuple[Key, str, datetime], int] = field(default_factory=lambda: defaultdict(int))
    _places: tuple[tuple[int, bool], ...] = ()
    _alike: bool = False
    _prices: dict[tuple[str, datetime], Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Where in a cell's keys each of the report's is (-1: it is the class), and whether it
        names a holder."""
        keys = self.question.keys
        self._places = tuple(
            (-1 if name == CLASS_KEY else keys.index(name), name in HOLDER_KEYS)
            for name in self.question.by
        )
        self._alike = keys == self.question.by

    def key(self, cell: Cell, name: str, *, platform: bool = False) -> Key:
        """The row of a cell's amount; what the platform pays has no holder."""
        values = cell.keys
        if self._alike and not platform:
            return values
        return tuple(
            name if at < 0 else None if platform and holder else values[at]
            for at, holder in self._places
        )

    def post(self, cell: Cell, name: str, units: int, *, platform: bool = False) -> None:
        """``units`` of a cell's cost (as it stands in the cell) to a row, or to the pool of what
        is spread over those who pay."""
        key = self.key(cell, name, platform=platform)
        spread = self._spread(cell)
        if platform and spread is not None:
            self.pool.add(spread, key, cell, units)
            return
        row = self.sums[key]
        if spread is not None:
            money = self.money(cell, units)
            row.cost += money
            self.pool.weigh(spread, self._holder(key), money)
        elif cell.currency is not None:
            self._units[key, cell.currency, cell.at] += units

    def settle(self) -> None:
        """Turn what was posted as it stood in cells into money; once, after the last cell."""
        for (key, currency, at), units in self._units.items():
            self.sums[key].cost += self._worth(currency, at, units)
        self._units.clear()

    def money(self, cell: Cell, amount: int) -> Fraction:
        """An amount as it stands in a cell, in the report's currency."""
        return Fraction(0) if cell.currency is None else self._worth(cell.currency, cell.at, amount)

    def _worth(self, currency: str, at: datetime, amount: int) -> Fraction:
        if self.currency is None:
            return Fraction(0)
        price = self._prices.get((currency, at))
        if price is None:
            price = PER_UNIT * self.rates.rate(currency, self.currency, at) / WHOLE_PPM
            self._prices[currency, at] = price
        return amount * price

    def spread_pool(self) -> None:
        """Post what is spread: to the holders of its day and cluster, or to the platform where
        nobody was."""
        for key, holder, cell, units in self.pool.shares():
            row = key if holder is None else self._merged(key, holder)
            self.sums[row].cost += self.money(cell, units)
            self.sums[row].priced = True

    def _spread(self, cell: Cell) -> tuple[str | None, str | None] | None:
        """Cluster and UTC day that a cell's unallocated cost is spread within, if it is."""
        if not self.question.spread or self.pays.unallocated(cell.at) is not Unallocated.USE:
            return None
        values = dict(zip(self.question.keys, cell.keys, strict=True))
        return values["cluster"], values["utc_day"]

    def _holder(self, key: Key) -> Key:
        pairs = zip(self.question.by, key, strict=True)
        return tuple(value for name, value in pairs if name in HOLDER_KEYS)

    def _merged(self, key: Key, holder: Key) -> Key:
        values = iter(holder)
        pairs = zip(self.question.by, key, strict=True)
        return tuple(next(values) if name in HOLDER_KEYS else value for name, value in pairs)


def fill(books: Books, have: Iterable[Cell], causes: Iterable[Cell]) -> None:
    """Post time to holders, cost to payers."""
    for cell in have:
        payers = books.pays.at(cell.at)
        for name, amount in cell.time.items():
            row = books.sums[books.key(cell, _class_of(name))]
            row.time[name] += amount
            row.priced = row.priced or cell.currency is not None
            if cell.currency is None and name in CLASS_NAMES:
                row.unpriced += amount
        for name, amount in cell.cost.items():
            own = payers[_CLASSES[name]] is Payer.HOLDER
            books.sums[books.key(cell, name, platform=not own)].priced = True
            books.post(cell, name, amount, platform=not own)
    for cell in causes:
        _charge(books, cell, books.pays.at(cell.at))
    books.settle()
    books.spread_pool()


def _class_of(name: str) -> str:
    """The row of a measure where rows are classes: beside the class that it is a part of."""
    return name if name in CLASS_NAMES else _BESIDE[Overlay(name)]


def _charge(books: Books, cell: Cell, payers: Mapping[LedgerClass, Payer]) -> None:
    """Stranded time is told to its causer; its cost moves there only where the table says so."""
    for label, amount in cell.time.items():
        name, role, _ = label.split("/")
        row = books.sums[books.key(cell, name)]
        if role == "causer" and name in STRANDED:
            row.stranded += amount
        if payers[_CLASSES[name]].value == role and label in cell.cost:
            books.post(cell, name, cell.cost[label])
            books.post(cell, name, -cell.cost[label], platform=True)
