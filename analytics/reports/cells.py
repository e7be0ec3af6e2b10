"""The one query behind every figure: sums over ledger rows, exact, by any keys.

All integers: GPU time in micro-GPU-seconds x parts per million of an owner's share, cost in
micro-currency x that. Division happens when a figure is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from analytics.errors import ReportError
from analytics.ledger.classes import LedgerClass, Overlay
from analytics.org import WHOLE_PPM, OrgMap
from analytics.reports.calendar import hour_labels
from analytics.reports.keys import CLASS_KEY, HOLDER_KEYS, TIME_KEYS
from analytics.reports.source import Source
from analytics.window import Window
from collector.store import Work

MOST_CELLS = 500_000
_DOUBT = 1.2
"""An estimate of groups may be so far off."""
_MANY = {"job": "run_key", "node": "pool_key"}
"""Keys of which there are as many as of these columns' values."""
UTC_DAY = "utc_day"
_COLUMNS = (*LedgerClass, *Overlay)
_ORG = ("team", "project", "cost_center")
_HOLDER_COLUMNS = {"user": "user_name", "account": "account", "queue": "queue"}


@dataclass(frozen=True, slots=True)
class Cell:
    """Sums of one group in one currency (None = not priced) over one epoch of the who-pays
    table."""

    keys: tuple[str | None, ...]
    currency: str | None
    at: datetime
    time: dict[str, int]
    cost: dict[str, int]


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
    """A question in a unit of work, and what its rows are called: hours in the report's calendar,
    owners as they were at an instant."""

    def __init__(self, work: Work, question: Question, org: OrgMap | None = None) -> None:
        self.work, self.question, self._org = work, question, org
        self._owners_at: datetime | None = None
        keys = [key for key in question.keys if key in TIME_KEYS]
        if keys:
            labels = hour_labels(question.window, keys)
            kinds = {name: "TIMESTAMP" if name == "starts" else "VARCHAR" for name in labels}
            _make_table(work, "report_calendar", kinds, labels)

    def name_owners(self, at: datetime) -> None:
        """The owners of every holder at one instant, one row per share."""
        if self._owners_at == at or not set(self.question.keys) & set(_ORG):
            return
        self._owners_at = at
        work, org = self.work, self._org or OrgMap.load(self.work)
        columns: dict[str, list[Any]] = {"holder_key": [], "ppm": [], **{name: [] for name in _ORG}}
        for holder in work.rows("SELECT * FROM ledger_holder ORDER BY holder_key"):
            for owner in org.owners(holder, at):
                columns["holder_key"].append(holder["holder_key"])
                columns["ppm"].append(owner.ratio_ppm)
                for name in _ORG:
                    columns[name].append(getattr(owner, name))
        kinds = {"holder_key": "INTEGER", "ppm": "HUGEINT", **dict.fromkeys(_ORG, "VARCHAR")}
        _make_table(work, "report_owner", kinds, columns)


def _make_table(
    work: Work, name: str, kinds: Mapping[str, str], columns: Mapping[str, Any]
) -> None:
    """A temporary table of lists. They go in as parameters: Arrow imports pandas for a list, which
    takes longer than most questions."""
    picked = ", ".join(f"unnest(CAST(? AS {kinds[key]}[])) AS {key}" for key in columns)
    work.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {picked}",
        [list(column) for column in columns.values()],
    )


def epochs(question: Question, changes: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """The window cut at the instants where mapping, who-pays table or rates change."""
    window = question.window
    inside = sorted({t for t in changes if window.since < t < window.until})
    edges = [window.since, *inside, window.until]
    return list(itertools.pairwise(edges))


def cells(
    asked: Asked, spans: Sequence[tuple[datetime, datetime]], source: Source
) -> Iterator[Cell]:
    """Sums of ``ledger_hour`` (or rows like it), one list of cells per epoch.

    Raises ReportError for more than half a million cells.
    """
    work, question = asked.work, asked.question
    _refuse_far_more(work, question, source)
    names, keys = [column.value for column in _COLUMNS], question.keys
    classes = [name.value for name in LedgerClass]
    for since, until in spans:
        asked.name_owners(question.org_at or since)
        inner = ", ".join(f"CAST(sum({name}) AS HUGEINT) AS {name}" for name in names)
        outer = ", ".join(f"sum({name} * ppm) AS {name}" for name in names)
        # One row per price: its product is made here, as the engine takes long to plan so many.
        sql = _sql(question, source.over(since, until).hours, inner, outer, priced=("micro",))
        rows = work.rows(sql, question.params(since, until))
        _refuse_more(rows)
        for row in rows:
            time = {name: row[name] for name in names if row[name]}
            micro = row["micro"]
            cost = {} if not micro else {n: time[n] * micro for n in classes if n in time}
            yield Cell(tuple(row[k] for k in keys), row["currency"], since, time, cost)


def cause_cells(
    asked: Asked, spans: Sequence[tuple[datetime, datetime]], source: Source
) -> Iterator[Cell]:
    """Sums of ``ledger_cause``: per group of the run that caused or waited, columns
    ``class/role``. Raises ReportError for more than half a million."""
    work, question = asked.work, asked.question
    keys = question.keys
    for since, until in spans:
        asked.name_owners(question.org_at or since)
        inner = "CAST(sum(gpu_us) AS HUGEINT) AS gpu_us"
        outer = "class, role, rule, sum(gpu_us * ppm) AS gpu_us, sum(gpu_us * ppm * micro) AS cost"
        causes = source.over(since, until).causes
        sql = _sql(question, causes, inner, outer, extra=("class", "role", "rule"))
        rows = work.rows(sql, question.params(since, until))
        _refuse_more(rows)
        for row in rows:
            name = f"{row['class']}/{row['role']}/{row['rule']}"
            cost = {} if row["cost"] is None else {name: row["cost"]}
            place = tuple(row[k] for k in keys)
            yield Cell(place, row["currency"], since, {name: row["gpu_us"]}, cost)


def _refuse_far_more(work: Work, question: Question, source: Source) -> None:
    """Runs or nodes by time over more than a week can be so many groups that adding them up would
    outlast patience and memory: they and their causes are estimated first, from the columns that
    tell them apart. Runs of one job count each, so that only twenty times too many are refused by
    an estimate."""
    keys, window = set(question.keys), question.window
    columns = [column for key, column in _MANY.items() if key in keys]
    times = [f"label_{key}" for key in question.keys if key in TIME_KEYS]
    if not columns or not times or window.until - window.since <= timedelta(days=7):
        return
    apart = ", ".join([*columns, *times])
    about = sum(
        work.value(
            f"SELECT approx_count_distinct(hash({names})) FROM {rows} "  # noqa: S608 - our own names
            "JOIN report_calendar ON starts = hour WHERE since >= ? AND until <= ?",
            [window.since, window.until],
        )
        for names, rows in ((apart, source.hours), (f"{apart}, class, role, rule", source.causes))
    )
    if about > MOST_CELLS * (20 if "job" in keys else _DOUBT):
        raise ReportError(
            f"about {about:,} groups and causes within them: at most {MOST_CELLS:,} are reported; "
            "group by less or shorten the window"
        )


def _refuse_more(rows: list[dict[str, Any]]) -> None:
    if len(rows) > MOST_CELLS:
        raise ReportError(
            f"more than {MOST_CELLS} groups: at most so many are reported; group by less or "
            "shorten the window"
        )


def _sql(
    question: Question, source: str, inner: str, outer: str, *,
    extra: tuple[str, ...] = (), priced: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """Sum first by small integer keys, then name and price the few rows that are left."""
    keys = question.keys
    small, joins = _small(keys)
    where = "since >= ? AND until <= ?"
    if question.cluster is not None:
        where += " AND pool_key IN (SELECT pool_key FROM ledger_pool WHERE cluster = ?)"
    times = set(keys) & set(TIME_KEYS)
    labelled = f"{source} JOIN report_calendar ON starts = hour" if times else source
    group = ", ".join(sorted({*small, "price_key", *extra}))
    picked = group.replace(UTC_DAY, f"date_trunc('day', hour) AS {UTC_DAY}")
    ppm = f"coalesce(report_owner.ppm, {WHOLE_PPM})" if set(keys) & set(_ORG) else str(WHOLE_PPM)
    named = "".join(f", {_column(key)} AS key_{key}" for key in keys)
    shown = ", ".join([*(f"key_{key} AS {key}" for key in keys), "currency", *priced])
    last = ", ".join([*(f"key_{key}" for key in keys), "currency", *priced, *extra])
    return (
        f"WITH summed AS (SELECT {picked}, {inner} FROM {labelled} "  # noqa: S608 - our own names; values are parameters
        f"WHERE {where} GROUP BY {group}), "
        "named AS (SELECT summed.*, price.currency, "
        "CAST(price.amount * 1000000 AS HUGEINT) AS micro, "
        f"{ppm} AS ppm {named} FROM summed LEFT JOIN price USING (price_key) {' '.join(joins)}) "
        f"SELECT {shown}, {outer} FROM named GROUP BY {last} ORDER BY ALL LIMIT {MOST_CELLS + 1}"
    )


def _small(keys: Sequence[str]) -> tuple[set[str], list[str]]:
    """The columns of a ledger row that the keys are found by, and where their names are."""
    asked = set(keys)
    small = {f"label_{key}" for key in asked & set(TIME_KEYS)} | (asked & {UTC_DAY})
    joins = []
    if asked & {"node", "gpu_model", "cluster"}:
        small.add("pool_key")
        joins.append("JOIN ledger_pool USING (pool_key)")
    if "job" in asked:
        small.add("run_key")
        joins.append("LEFT JOIN ledger_run run USING (run_key)")
    if asked & set(HOLDER_KEYS):
        small.add("holder_key")
        joins.append("LEFT JOIN ledger_holder holder USING (holder_key)")
    if asked & set(_ORG):
        joins.append("LEFT JOIN report_owner USING (holder_key)")
    return small, joins


def _column(key: str) -> str:
    if key in _ORG:
        return f"report_owner.{key}"
    if key in _HOLDER_COLUMNS:
        column = _HOLDER_COLUMNS[key]
        return (
            f"CASE WHEN summed.holder_key IS NOT NULL THEN coalesce(holder.{column}, 'unknown') END"
        )
    if key == "job":
        return "run.job_id"
    if key == UTC_DAY:
        return f"CAST(summed.{UTC_DAY} AS VARCHAR)"
    if key in TIME_KEYS:
        return f"summed.label_{key}"
    return f"ledger_pool.{key}"
