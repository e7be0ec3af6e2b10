"""The one query behind every figure: sums over ledger rows, exact, by any keys.

All integers: GPU time in micro-GPU-seconds x parts per million of an owner's share, cost in
micro-currency x that. Division happens when a figure is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from analytics.errors import ReportError
from analytics.ledger.classes import LedgerClass, Overlay
from analytics.reports.asked import UTC_DAY, Asked, Key, Question
from analytics.reports.price_book import PriceBook
from analytics.reports.source import Source

MOST_CELLS = 500_000
_DOUBT = 1.2
"""An estimate of groups may be so far off."""
_MANY = {"job": "run_key", "node": "pool_key"}
"""Keys of which there are as many as of these columns' values."""
_COLUMNS = tuple(column.value for column in (*LedgerClass, *Overlay))
_CLASSES = tuple(name.value for name in LedgerClass)
_CAUSE = ("class", "role", "rule")
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Cell:
    """Sums of one group in one currency (None = not priced) over one epoch of the who-pays
    table."""

    keys: Key
    currency: str | None
    at: datetime
    time: dict[str, int]
    cost: dict[str, int]


def epochs(question: Question, changes: Sequence[datetime]) -> list[Span]:
    """The window cut at the instants where mapping, who-pays table or rates change."""
    window = question.window
    inside = sorted({t for t in changes if window.since < t < window.until})
    edges = [window.since, *inside, window.until]
    return list(itertools.pairwise(edges))


def cells(asked: Asked, spans: Sequence[Span], source: Source, book: PriceBook) -> Iterator[Cell]:
    """Sums of ``ledger_hour`` (or rows like it), one list of cells per epoch.

    Raises ReportError for more than half a million cells.
    """
    _refuse_far_more(asked, source)
    for since, until in spans:
        rows = _summed(asked, (since, until), source.over(since, until).hours, _COLUMNS)
        for (key, currency, micro), sums in _by_name(asked, book, rows).items():
            cost = {n: sums[n] * micro for n in _CLASSES if n in sums} if micro else {}
            yield Cell(key, currency, since, sums, cost)


def _by_name(
    asked: Asked, book: PriceBook, rows: Iterable[dict[str, Any]]
) -> dict[tuple[Key, str | None, int], dict[str, int]]:
    """Sums per key, currency and price: different numbers can have a name in common."""
    found: dict[tuple[Key, str | None, int], dict[str, int]] = {}
    for row in rows:
        time = [(name, row[name]) for name in _COLUMNS if row[name]]
        price = book.money(row["price_key"])
        for key, ppm in asked.named(row):
            sums = found.setdefault((key, *price), {})
            for name, amount in time:
                sums[name] = sums.get(name, 0) + amount * ppm
    _refuse_more(found)
    return found


def cause_cells(
    asked: Asked, spans: Sequence[Span], source: Source, book: PriceBook
) -> Iterator[Cell]:
    """Sums of ``ledger_cause``: per group of the run that caused or waited, columns
    ``class/role/rule``. Raises ReportError for more than half a million."""
    for since, until in spans:
        causes = source.over(since, until).causes
        rows = _summed(asked, (since, until), causes, ("gpu_us",), _CAUSE)
        for (key, currency, name), (time, money) in _causes_by_name(asked, book, rows).items():
            cost = {} if currency is None else {name: money}
            yield Cell(key, currency, since, {name: time}, cost)


def _causes_by_name(
    asked: Asked, book: PriceBook, rows: Iterable[dict[str, Any]]
) -> dict[tuple[Key, str | None, str], tuple[int, int]]:
    """Time and cost per key, currency and ``class/role/rule``."""
    found: dict[tuple[Key, str | None, str], tuple[int, int]] = {}
    for row in rows:
        name = "/".join([row[column] for column in _CAUSE])
        currency, micro = book.money(row["price_key"])
        for key, ppm in asked.named(row):
            time, money = found.get((key, currency, name), (0, 0))
            amount = row["gpu_us"] * ppm
            found[key, currency, name] = (time + amount, money + amount * micro)
    _refuse_more(found)
    return found


def _summed(
    asked: Asked, span: Span, source: str, sums: Sequence[str], extra: Sequence[str] = ()
) -> list[dict[str, Any]]:
    asked.name_holders(asked.question.org_at or span[0])
    sql = _sql(asked, source, ", ".join(f"sum({name}) AS {name}" for name in sums), extra)
    rows = asked.work.rows(sql, asked.question.params(*span))
    _refuse_more(rows)
    return rows


def _refuse_far_more(asked: Asked, source: Source) -> None:
    """Runs or nodes by time over more than a week can be so many groups that adding them up would
    outlast patience and memory: they and their causes are estimated first, from the columns that
    tell them apart. Runs of one job count each, so that only twenty times too many are refused by
    an estimate."""
    keys, window = asked.question.keys, asked.question.window
    columns = [column for key, column in _MANY.items() if key in keys]
    if not columns or not asked.times or window.until - window.since <= timedelta(days=7):
        return
    apart = ", ".join([*columns, asked.moment])
    joins = "JOIN report_calendar USING (hour)" if asked.moment == "moment" else ""
    about = sum(
        asked.work.value(
            f"SELECT approx_count_distinct(hash({names})) FROM {rows} "  # noqa: S608 - our own names
            f"{joins} WHERE since >= ? AND until <= ?",
            [window.since, window.until],
        )
        for names, rows in ((apart, source.hours), (f"{apart}, class, role, rule", source.causes))
    )
    if about > MOST_CELLS * (20 if asked.job else _DOUBT):
        raise ReportError(
            f"about {about:,} groups and causes within them: at most {MOST_CELLS:,} are reported; "
            "group by less or shorten the window"
        )


def _refuse_more(found: Sized) -> None:
    if len(found) > MOST_CELLS:
        raise ReportError(
            f"more than {MOST_CELLS} groups: at most so many are reported; group by less or "
            "shorten the window"
        )


def _sql(asked: Asked, source: str, sums: str, extra: Sequence[str]) -> str:
    """Sum by small integers; sums of runs, of which a job can have several, are added up by job
    once more."""
    where = "since >= ? AND until <= ?"
    if asked.question.cluster is not None:
        where += " AND pool_key IN (SELECT pool_key FROM ledger_pool WHERE cluster = ?)"
    columns = _columns(asked)
    group = ", ".join([*columns, "price_key", *extra])
    picked = group.replace(UTC_DAY, f"CAST(hour AS DATE) AS {UTC_DAY}")
    summed = f"SELECT {picked}, {sums} FROM {source} {asked.numbers} WHERE {where} GROUP BY {group}"  # noqa: S608 - our own names; values are parameters
    if asked.job:
        names = {"run_key": "run.job_id AS job", "pool_key": "place.lowest AS pool_key"}
        picked = ", ".join(names.get(column, column) for column in (*columns, "price_key", *extra))
        group = picked.replace("run.job_id AS ", "").replace("place.lowest AS pool_key", "lowest")
        summed = f"SELECT {picked}, {sums} FROM ({summed}) {_by_job(asked)} GROUP BY {group}"  # noqa: S608
    return f"{summed} ORDER BY {group} LIMIT {MOST_CELLS + 1}"


def _by_job(asked: Asked) -> str:
    joins = "LEFT JOIN ledger_run run USING (run_key)"
    if asked.places:
        alike = ", ".join(asked.places)
        joins += (
            " JOIN (SELECT pool_key, min(pool_key) OVER (PARTITION BY "  # noqa: S608 - our own names
            f"{alike}) AS lowest FROM ledger_pool) place USING (pool_key)"
        )
    return joins


def _columns(asked: Asked) -> list[str]:
    """What rows are summed by."""
    told = (
        (asked.holders, asked.who), (asked.places, "pool_key"), (asked.times, asked.moment),
        (asked.utc_day, UTC_DAY), (asked.job, "run_key"),
    )  # fmt: skip
    return [column for wanted, column in told if wanted]
