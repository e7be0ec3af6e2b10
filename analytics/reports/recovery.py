"""What teams were charged against what the GPUs really cost: over- and under-recovery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from analytics.money import shown_parts
from analytics.months import Month
from analytics.overhead import overhead_rows
from analytics.reports.amounts import nine
from analytics.reports.asked import Question
from analytics.reports.cells import epochs
from analytics.reports.commitments import commitment_report, covers
from analytics.reports.cost import asked_clusters, cost_report
from analytics.reports.covered import Committed, replace_by_commitments
from analytics.reports.identity import Installed, installed_by_model
from analytics.reports.rates import Rates
from analytics.reports.report import Report, Row
from analytics.reports.table import TableReport
from analytics.window import Window
from collector.store import Store

ACTUAL = ("contracted", "amortized")
"""The kinds of price that say what is really paid; list and internal prices do not."""
_US_PER_HOUR = 3_600_000_000
_MONEY = ("charged_cost", "recovered_cost", "platform_cost", "actual_cost", "over_recovery_cost")


def recovery_report(
    store: Store, window: Window, *, cluster: str | None = None, currency: str | None = None
) -> TableReport:
    """Per GPU model, then unused commitments, then overhead of the months that begin in the window.

    ``charged``: GPU time at the ledger's prices; ``recovered``: the part that teams pay;
    ``platform``: the part that stays; ``actual``: installed GPU time at the price of the
    commitment that covers it, else at contracted, else amortized prices; ``over_recovery``:
    recovered less actual, below 0 where teams pay less than it costs.
    A model without an actual price has none, and the total says so.
    """
    charged = cost_report(store, window, ("gpu_model", "team"), cluster=cluster, currency=currency)
    unit = charged.currency
    with store.work() as work:
        asked, rates = asked_clusters(store, cluster), Rates.load(work)
        found = {row["currency"] for row in work.rows("SELECT DISTINCT currency FROM price")}
        question = Question(window, (), cluster)
        spans = epochs(question, rates.changes(found, unit))
        real = installed_by_model(work, asked, window, spans, ACTUAL)
        committed = replace_by_commitments(work, window, real, covers(store, window, cluster))
        overhead = [
            row for row in overhead_rows(work)
            if window.since <= Month.of(row["month"]).starts(window.time_zone) < window.until
            and cluster in (None, row["cluster"])
        ]  # fmt: skip
    rows = _models(charged, (real, committed), unit, rates)
    commitments = commitment_report(store, window, cluster=cluster, currency=unit)
    if commitments.rows:
        unused = Fraction(commitments.total["unused_cost"])
        hours = commitments.total["unused_gpu_hours"]
        rows.append(_row("unused commitments", hours, (Fraction(0), Fraction(0), unused)))
    teams = any(r["team"] is not None and r["held_gpu_hours"] for r in charged.rows)
    for row in overhead:
        at = Month.of(row["month"]).starts(window.time_zone)
        whole = Fraction(row["amount"]) * rates.rate(row["currency"], unit or row["currency"], at)
        rows.append(_row(f"overhead: {row['name']}", None,
                         (whole, whole if teams else Fraction(0), whole)))  # fmt: skip
    return _finish(charged, rows)


Exact = tuple[Fraction, Fraction, Fraction | None]
"""Charged, recovered and actual cost; None = no actual price."""


def _row(item: str, gpu_hours: Decimal | None, exact: Exact) -> Row:
    return {"item": item, "gpu_hours": gpu_hours, "exact": exact}


def _models(
    charged: Report,
    found: tuple[dict[tuple[str, str], Installed], dict[str, list[Committed]]],
    unit: str | None,
    rates: Rates,
) -> list[Row]:
    real, committed = found
    whole: dict[str, Fraction] = defaultdict(Fraction)
    teams: dict[str, Fraction] = defaultdict(Fraction)
    for row in charged.rows:
        cost = Fraction(row["cost"] or 0)
        whole[row["gpu_model"]] += cost
        teams[row["gpu_model"]] += cost if row["team"] is not None else 0
    rows = []
    for model in sorted({model for _, model in real} | set(whole)):
        parts = [part for (_, name), part in real.items() if name == model]
        known = unit is not None and not any(part.unpriced_us for part in parts)
        actual = (
            sum((part.money(unit, rates) for part in parts), Fraction(0))
            + sum((part.money(unit, rates) for part in committed.get(model, ())), Fraction(0))
            if unit is not None and known
            else None
        )
        hours = nine(Fraction(sum(part.gpu_us for part in parts), _US_PER_HOUR))
        rows.append(_row(model, hours, (whole[model], teams[model], actual)))
    return rows


def _finish(charged: Report, rows: list[Row]) -> TableReport:
    """Shown so that every column adds up, and every row across."""
    columns = [
        shown_parts([_exact(row["exact"][nth]) for row in rows]) for nth in range(3)
    ]  # fmt: skip
    shown = [_shown(row, tuple(column[nth] for column in columns)) for nth, row in enumerate(rows)]
    lacking = [row["item"] for row in shown if row["actual_cost"] is None]
    total: Row = {"gpu_hours": _sum(row["gpu_hours"] for row in shown)}
    for name in _MONEY:
        values = [row[name] for row in shown]
        total[name] = None if None in values else sum(values, Decimal(0))
    remarks = list(charged.remarks)
    if lacking:
        remarks.append(
            f"no contracted or amortized price for {', '.join(lacking)}: what they really cost is "
            "not known (price load; price calculate works out an amortized rate)"
        )
    return TableReport(charged.window, charged.currency, shown, total, remarks)


def _exact(value: Fraction | None) -> Fraction:
    return Fraction(0) if value is None else value


def _sum(values: Iterable[Decimal | None]) -> Decimal:
    return sum((value for value in values if value is not None), Decimal(0))


def _shown(row: Row, parts: tuple[Decimal, ...]) -> Row:
    charged, recovered, actual = parts
    known = row["exact"][2] is not None
    return {
        "item": row["item"], "gpu_hours": row["gpu_hours"], "charged_cost": charged,
        "recovered_cost": recovered, "platform_cost": charged - recovered,
        "actual_cost": actual if known else None,
        "over_recovery_cost": recovered - actual if known else None,
    }  # fmt: skip
