"""What a report asks, and what the small numbers stand for that its rows are summed by.

Summing by one number per distinct answer, and naming the few sums that are left, costs a third of
joining names to rows or to sums in the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics.org import WHOLE_PPM, OrgMap, Owner
from analytics.reports.calendar import moments
from analytics.reports.keys import CLASS_KEY, HOLDER_KEYS, PLACE_KEYS, TIME_KEYS
from analytics.window import Window
from collector.store import Work

UTC_DAY = "utc_day"
_ORG = ("team", "project", "cost_center")
_HOLDER_COLUMNS = {"user": "user_name", "account": "account", "queue": "queue"}

Key = tuple[str | None, ...]
Shares = tuple[tuple[Key, int], ...]
"""What a holder is called and its share in ppm: one or, where a mapping splits it, several."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows, grouped how; ``org_at``: map owners as of this instant instead of row by row;
    ``spread``: cells also tell cluster and UTC day, within which unallocated cost is spread."""

    window: Window
    by: tuple[str, ...]
    cluster: str | None = None
    org_at: datetime | None = None
    spread: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that rows are grouped by in SQL; classes are columns there."""
        more = [name for name in ("cluster", UTC_DAY) if self.spread and name not in self.by]
        return tuple(name for name in (*self.by, *more) if name != CLASS_KEY)

    def params(self, since: datetime, until: datetime) -> list[object]:
        """What the placeholders of the query stand for."""
        return [since, until] if self.cluster is None else [since, until, self.cluster]


class Asked:
    """A question in a unit of work: the numbers of its rows, by owners as they were at an instant
    and hours in the report's calendar.

    The parts of a row's key are put together as holder, place, time, UTC day, job.
    """

    def __init__(
        self, work: Work, question: Question, org: OrgMap | None = None, *, days: bool = False
    ) -> None:
        """``days``: only whole UTC days are asked for."""
        self.work, self.question, self._org = work, question, org
        keys = question.keys
        self.holders = tuple(key for key in keys if key in HOLDER_KEYS and key != "job")
        self.places = tuple(key for key in keys if key in PLACE_KEYS)
        self.times = tuple(key for key in keys if key in TIME_KEYS)
        self.utc_day, self.job = UTC_DAY in keys, "job" in keys
        last = (UTC_DAY,) * self.utc_day + ("job",) * self.job
        told = (*self.holders, *self.places, *self.times, *last)
        self._order = None if told == keys else tuple(told.index(key) for key in keys)
        self._owners_at: datetime | None = None
        self._shares: dict[int, Shares] = {}
        self._nobody: Shares = (((None,) * len(self.holders), WHOLE_PPM),)
        self.who = self.moment = ""
        self._place_names = self._read_places()
        self._moments = self._write_moments(days=days)

    def name_holders(self, at: datetime) -> None:
        """Number the holders by what they are called and who owned them at one instant."""
        mapped = bool(set(self.holders) & set(_ORG))
        if not self.holders or (self._shares and (not mapped or self._owners_at == at)):
            return
        self._owners_at = at
        org = (self._org or OrgMap.load(self.work)) if mapped else OrgMap([])
        called: dict[int, Shares] = {}
        own = [column for name, column in _HOLDER_COLUMNS.items() if name in self.holders]
        found: dict[tuple[Any, ...], Shares] = {}
        for holder in self.work.rows(
            "SELECT holder_key, cluster, user_name, account, project, queue, labels "
            "FROM ledger_holder"
        ):
            alike = (org.looked_at(holder), *(holder[column] for column in own))
            if alike not in found:
                found[alike] = self._shares_of(holder, org.owners(holder, at))
            called[holder["holder_key"]] = found[alike]
        self.who, self._shares = self._numbered(
            called, ("report_holder", "holder_key INTEGER", "who INTEGER")
        )

    def named(self, row: Mapping[str, Any]) -> Iterator[tuple[Key, int]]:
        """Keys and shares of a row's numbers; nobody's time is whole and has no names."""
        rest: Key = ()
        order = self._order
        if self.places:
            rest += self._place_names[row["pool_key"]]
        if self.times:
            rest += self._moments[row[self.moment]]
        if self.utc_day:
            rest += (str(row[UTC_DAY]),)
        if self.job:
            rest += (row["job"],)
        if not self.holders:
            yield rest if order is None else tuple(rest[place] for place in order), WHOLE_PPM
            return
        for names, ppm in self._shares.get(row[self.who], self._nobody):
            every = names + rest
            yield every if order is None else tuple(every[place] for place in order), ppm

    def _shares_of(self, holder: dict[str, Any], owners: Sequence[Owner]) -> Shares:
        own = {
            name: "unknown" if holder[column] is None else holder[column]
            for name, column in _HOLDER_COLUMNS.items()
            if name in self.holders
        }
        return tuple(
            (tuple(own[n] if n in own else getattr(owner, n) for n in self.holders),
             owner.ratio_ppm)
            for owner in owners
        )  # fmt: skip

    def _read_places(self) -> dict[int, Key]:
        if not self.places:
            return {}
        rows = self.work.rows("SELECT pool_key, cluster, node, gpu_model FROM ledger_pool")
        return {row["pool_key"]: tuple(row[name] for name in self.places) for row in rows}

    def _write_moments(self, *, days: bool) -> dict[Any, Key]:
        if not self.times:
            return {}
        labels = dict(moments(self.question.window, self.times, days=days))
        self.moment, names = self._numbered(
            labels, ("report_calendar", "hour TIMESTAMP", "moment INTEGER")
        )
        return names

    def _numbered(
        self, names: dict[Any, Any], table: tuple[str, str, str]
    ) -> tuple[str, dict[Any, Any]]:
        """The column to sum by and what its values are called: ``names`` by the column they are
        for; a number per name from a table, where several values have one."""
        title, kind, number = table
        numbers: dict[Any, int] = {}
        which = [numbers.setdefault(name, len(numbers)) for name in names.values()]
        if len(numbers) == len(names):
            return kind.split()[0], dict(names)
        _make_table(self.work, title, (kind, number), (list(names), which))
        return number.split()[0], {nth: name for name, nth in numbers.items()}

    @property
    def numbers(self) -> str:
        """The joins that give rows their numbers."""
        joins = ["LEFT JOIN report_holder USING (holder_key)"] * (self.who == "who")
        joins += ["JOIN report_calendar USING (hour)"] * (self.moment == "moment")
        return " ".join(joins)


def _make_table(work: Work, name: str, kinds: Sequence[str], columns: Sequence[list[Any]]) -> None:
    """A temporary table of lists. They go in as parameters: Arrow imports pandas for a list, which
    takes longer than most questions."""
    pairs = (kind.split() for kind in kinds)
    picked = ", ".join(f"unnest(CAST(? AS {kind}[])) AS {column}" for column, kind in pairs)
    work.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {picked}", columns)
