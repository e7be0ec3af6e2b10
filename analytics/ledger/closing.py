"""Closed days: fixed with what they were made of; facts that come later are correction rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from analytics.errors import ClosedDayError
from analytics.ledger.classes import RULES_VERSION, LedgerClass, Overlay
from analytics.ledger.freshness import stale_hours
from analytics.org import map_version
from analytics.window import Window
from collector.store import Store, Work

DEFAULT_GRACE = timedelta(days=3)
DEFAULT_COVERAGE = Decimal("0.95")
_AMOUNTS = tuple(name.value for name in (*LedgerClass, *Overlay))
_PLACE = "hour, since, until, pool_key, gpu_uuid, run_key, holder_key, price_key"
_OF_DAY = (
    "hour >= ? AND hour < ? AND pool_key IN (SELECT pool_key FROM ledger_pool WHERE cluster = ?)"
)


@dataclass(frozen=True, slots=True)
class ClosedDay:
    """A day that is fixed; the hashes name its rows, prices and owners."""

    cluster: str
    day: date
    coverage_ratio: Decimal
    ledger_hash: str

    def to_dict(self) -> dict[str, str]:
        return {
            "cluster": self.cluster, "day": self.day.isoformat(),
            "coverage_ratio": str(self.coverage_ratio), "ledger_hash": self.ledger_hash,
        }  # fmt: skip


def day_window(day: date) -> Window:
    """The UTC day."""
    since = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Window(since, since + timedelta(days=1))


def is_closed(work: Work, cluster: str, day: date) -> bool:
    return bool(
        work.value(
            "SELECT count(*) FROM closed_day WHERE cluster = ? AND day = ? AND reopened_at IS NULL",
            [cluster, day],
        )
    )


def closed_at(work: Work, cluster: str, day: date) -> datetime | None:
    """When a day was closed; None while it is open."""
    found: datetime | None = work.value(
        "SELECT max(closed_at) FROM closed_day WHERE cluster = ? AND day = ? "
        "AND reopened_at IS NULL",
        [cluster, day],
    )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A day to close, by whom, and what it must come up to."""

    cluster: str
    day: date
    now: datetime
    actor: str
    grace: timedelta = DEFAULT_GRACE
    least_coverage: Decimal = DEFAULT_COVERAGE


def close_day(store: Store, cluster: str, day: date, **more: Any) -> ClosedDay:
    """`close_in` in a transaction of its own; ``more``: the other fields of `Closing`."""
    with store.work() as work, work.transaction():
        return close_in(work, Closing(cluster=cluster, day=day, **more))


def close_in(work: Work, closing: Closing) -> ClosedDay:
    """Close a day that stands in the ledger, within the caller's transaction.

    Raises ClosedDayError, saying why, when it is closed already, too young, not built in full, or
    covered below the billing threshold: it stays open then.
    """
    cluster, day, now = closing.cluster, closing.day, closing.now
    window = day_window(day)
    coverage = _coverage(work, cluster, window)
    problem = _problem(work, closing, coverage)
    if coverage is None or problem is not None:
        raise ClosedDayError(f"{day} of {cluster} {problem}")
    digest = ledger_hash(work, cluster, window)
    row = _row(work, cluster, (day, now, closing.actor, coverage, digest))
    work.append("closed_day", row)
    _audit(work, now, closing.actor, "day.close", f"{cluster} {day}", digest)
    return ClosedDay(cluster, day, coverage, digest)


def _problem(work: Work, closing: Closing, coverage: Decimal | None) -> str | None:
    """Why the day cannot be closed; None = it can."""
    window = day_window(closing.day)
    if is_closed(work, closing.cluster, closing.day):
        return "is closed already"
    if closing.now < window.until + closing.grace:
        return (
            f"stays open until {window.until + closing.grace:%Y-%m-%d %H:%M} UTC, "
            "for facts that come late"
        )
    if coverage is None:
        return "is not in the ledger in full: build it first"
    if coverage < closing.least_coverage:
        return (
            f"stays open: its coverage {coverage:.4f} is below "
            f"{closing.least_coverage}; see report coverage for what is missing"
        )
    if stale_hours(work, closing.cluster, window.since, window.until):
        return (
            "stays open: facts, prices or settings changed since it was built; build it again first"
        )
    return None


def _coverage(work: Work, cluster: str, window: Window) -> Decimal | None:
    built = work.value(
        "SELECT count(*) FROM ledger_build WHERE cluster = ? AND hour >= ? AND hour < ?",
        [cluster, window.since, window.until],
    )
    every = " + ".join(name.value for name in LedgerClass)
    row = work.rows(
        f"SELECT CAST(sum({every}) AS BIGINT) AS whole, "  # noqa: S608 - our own names
        "CAST(sum(unknown + allocated_unmeasured + contested) AS BIGINT) AS dark "
        f"FROM ledger_hour WHERE {_OF_DAY}",
        [window.since, window.until, cluster],
    )[0]
    if built < 24 or not row["whole"]:
        return None
    return (1 - Decimal(row["dark"]) / Decimal(row["whole"])).quantize(Decimal("0.00000001"))


def ledger_hash(work: Work, cluster: str, window: Window) -> str:
    """A hash of the day's original rows by natural keys: the same facts give the same bytes."""
    amounts = ", ".join(f"ledger_hour.{name}" for name in _AMOUNTS)
    rows = work.rows(
        f"SELECT p.node, p.gpu_model, run_id, gpu_uuid, since, until, price_id, {amounts} "  # noqa: S608 - our own names
        "FROM ledger_hour JOIN ledger_pool p USING (pool_key) "
        "LEFT JOIN ledger_run USING (run_key) LEFT JOIN price USING (price_key) "
        "WHERE hour >= ? AND hour < ? AND p.cluster = ? AND posting = 0 ORDER BY ALL",
        [window.since, window.until, cluster],
    )
    digest = hashlib.sha256()
    for row in rows:
        digest.update("|".join(str(value) for value in row.values()).encode() + b"\n")
    return digest.hexdigest()


def _row(
    work: Work, cluster: str, closed: tuple[date, datetime, str, Decimal, str]
) -> dict[str, list[object]]:
    day, now, actor, coverage, digest = closed
    prices = work.value(
        "SELECT string_agg(price_id ORDER BY price_id) FROM price WHERE retired_at IS NULL"
    )
    return {
        "cluster": [cluster], "day": [day], "closed_at": [now], "closed_by": [actor],
        "coverage_ratio": [coverage], "ledger_hash": [digest], "rules_version": [RULES_VERSION],
        "price_hash": [hashlib.sha256(str(prices).encode()).hexdigest()[:16]],
        "org_hash": [map_version(work)],
    }  # fmt: skip


def _audit(work: Work, now: datetime, actor: str, action: str, subject: str, text: str) -> None:
    work.append(
        "audit",
        {"ts": [now], "actor": [actor], "action": [action], "subject": [subject],
         "after_value": [text]},
    )  # fmt: skip


def set_aside(work: Work, cluster: str, span: tuple[datetime, datetime]) -> None:
    """Keep the rows of a closed day's hours while they are worked out again."""
    for table in ("ledger_hour", "ledger_cause"):
        work.execute(f"DROP TABLE IF EXISTS closed_{table}")
        work.execute(
            f"CREATE TEMP TABLE closed_{table} AS SELECT * FROM {table} WHERE {_OF_DAY}",  # noqa: S608 - our own names
            [*span, cluster],
        )


def post_corrections(work: Work, cluster: str, span: tuple[datetime, datetime]) -> int:
    """Turn the new rows into differences to the closed ones, which come back; returns how many."""
    params = [*span, cluster]
    keys, amounts = _PLACE, _AMOUNTS
    differ = _differences("ledger_hour", keys, amounts)
    causes = _differences(
        "ledger_cause",
        "hour, since, until, pool_key, price_key, class, role, rule, run_key, holder_key",
        ("gpu_us",),
    )
    work.execute(f"CREATE OR REPLACE TEMP TABLE correction AS {differ}", params)
    work.execute(f"CREATE OR REPLACE TEMP TABLE correction_cause AS {causes}", params)
    for table, new in (("ledger_hour", "correction"), ("ledger_cause", "correction_cause")):
        work.execute(f"DELETE FROM {table} WHERE {_OF_DAY}", params)  # noqa: S608 - our own names
        work.execute(f"INSERT INTO {table} BY NAME SELECT * FROM closed_{table}")  # noqa: S608 - our own names
        work.execute(f"INSERT INTO {table} BY NAME SELECT * FROM {new}")  # noqa: S608 - our own names
        work.execute(f"DROP TABLE closed_{table}")
    return int(work.value("SELECT count(*) FROM correction"))


def _differences(table: str, keys: str, amounts: tuple[str, ...]) -> str:
    """New less closed, per place; only where something differs. Postings count up."""
    sums = ", ".join(f"CAST(sum(sign * {name}) AS BIGINT) AS {name}" for name in amounts)
    some = " OR ".join(f"sum(sign * {name}) <> 0" for name in amounts)
    return (
        f"SELECT {keys}, (SELECT coalesce(max(posting), 0) + 1 FROM closed_{table}) AS posting, "  # noqa: S608 - our own names
        f"{sums} FROM (SELECT *, 1 AS sign FROM {table} WHERE {_OF_DAY} "
        f"UNION ALL BY NAME SELECT *, -1 AS sign FROM closed_{table}) GROUP BY {keys} HAVING {some}"
    )
