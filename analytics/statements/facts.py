"""The reports of one month that all statements of it are cut from."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from analytics.adjustments import Adjustment, adjustments
from analytics.currencies import smallest
from analytics.errors import StatementError
from analytics.money import shown_parts
from analytics.months import Month
from analytics.overhead import overhead_rows
from analytics.reports.cost import asked_clusters, cost_report
from analytics.reports.energy import energy_report
from analytics.reports.rates import Rates
from analytics.reports.report import Report, Row
from analytics.reports.stranding import stranding_report
from analytics.statements.rules import rules_in_force
from analytics.statements.statement import Rules
from analytics.window import Window
from collector.store import Store, Work

Team = str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Which month, in which calendar, of which cluster (None: all), in which currency."""

    month: Month
    time_zone: str = "UTC"
    cluster: str | None = None
    currency: str | None = None

    def window(self, now: datetime) -> Window:
        """The month, or as much of it as is over; StatementError for one that has not begun."""
        whole = self.month.window(self.time_zone)
        hour = now.replace(minute=0, second=0, microsecond=0)
        if whole.since >= hour:
            raise StatementError(f"{self.month} has not begun: there is nothing to bill yet")
        return Window(whole.since, min(whole.until, hour), self.time_zone)


@dataclass(slots=True)
class MonthFacts:
    """What all of a month's statements have in common."""

    month: Month
    window: Window
    cluster: str | None
    currency: str
    coin: Decimal
    demo: bool
    closed_days: int
    days: int
    teams: Report
    classes: Report
    models: Report
    users: Report
    stranding: Report
    overhead: list[dict[str, Any]]
    """Rows of the month; ``coins`` is the amount in the statements' currency, ``held`` and
    ``cost`` what the rule weighs."""
    energy: list[Row]
    entries: list[Adjustment]
    rates: Rates
    rules: Rules
    remarks: list[str] = field(default_factory=list)

    def totals(self) -> dict[Team, Decimal]:
        """What each team pays for GPU time, in coins that add up to the fleet's total."""
        rows = self.teams.rows
        parts = shown_parts([Fraction(row["cost"] or 0) for row in rows], self.coin)
        return {row["team"]: part for row, part in zip(rows, parts, strict=True)}

    def converted(self, amount: Decimal, currency: str) -> Fraction:
        """By the rate of the month's first instant; PriceError where there is none."""
        at = self.month.starts(self.window.time_zone)
        return Fraction(amount) * self.rates.rate(currency, self.currency, at)


def month_facts(store: Store, asked: Asked, now: datetime) -> MonthFacts:
    """Ask everything once. StatementError where nothing of the month has a price."""
    month, cluster, window = asked.month, asked.cluster, asked.window(now)

    def cost(*by: str, of: str | None = cluster) -> Report:
        return cost_report(store, window, by, cluster=of, currency=asked.currency)

    teams = cost("team")
    if teams.currency is None:
        raise StatementError(
            f"nothing of {month} has a price, or nothing is installed: see price check"
        )
    energy = energy_report(store, window, ("team",), cluster=cluster).rows
    with store.work() as work:
        clusters = asked_clusters(store, cluster)
        closed, days = _closed(work, clusters, window)
        facts = MonthFacts(
            month=month, window=window, cluster=cluster, currency=teams.currency,
            coin=smallest(teams.currency), closed_days=closed, days=days, teams=teams,
            demo=work.value("SELECT value FROM store_info WHERE key = 'kind'") == "demo",
            classes=cost("team", "class"), models=cost("team", "gpu_model"),
            users=cost("team", "user"), overhead=overhead_rows(work, month),
            stranding=stranding_report(store, window, ("team",), cluster=cluster,
                                       currency=teams.currency),
            energy=energy, entries=adjustments(work, month=month), rates=Rates.load(work),
            rules=rules_in_force(work, window, cluster, teams.currency),
            remarks=_remarks(teams),
        )  # fmt: skip
    _weigh(facts, cost)
    return facts


def _remarks(report: Report) -> list[str]:
    """The report's own, but for those on adjustments, which a statement lists; and whether it
    proves itself."""
    own = [text for text in report.remarks if "adjust" not in text]
    if not report.identity.holds:
        own.append(
            "what is posted and what is installed differ by "
            f"{report.identity.gpu_seconds_difference} GPU-seconds and "
            f"{report.identity.cost_difference} {report.currency}"
        )
    return own


def _weigh(facts: MonthFacts, cost: Any) -> None:
    """Give the month's overhead its amount in coins and its teams' weights."""
    kept = []
    for row in facts.overhead:
        if facts.cluster is not None and row["cluster"] != facts.cluster:
            if row["cluster"] is None:
                facts.remarks.append(f"overhead {row['name']} is of all clusters: not in here")
            continue
        own = facts.teams if row["cluster"] in (None, facts.cluster) else cost(
            "team", of=row["cluster"])  # fmt: skip
        (coins,) = shown_parts([facts.converted(row["amount"], row["currency"])], facts.coin)
        kept.append({**row, "coins": coins, "weights": _weights(own, row["rule"])})
    facts.overhead = kept


def _weights(report: Report, rule: str) -> dict[Team, int]:
    """By the rule; who held nothing has no weight, nor has the platform."""
    return {
        row["team"]: _weight(row, rule)
        for row in report.rows
        if row["team"] is not None and row["held_gpu_hours"] > 0
    }


def _weight(row: Row, rule: str) -> int:
    if rule == "even":
        return 1
    return int(row["held_gpu_hours"] * 10**9) if rule == "held" else int((row["cost"] or 0) * 10**6)


def _closed(work: Work, clusters: list[str], window: Window) -> tuple[int, int]:
    """Days of the window that are closed in every cluster, and all of its days."""
    first, last = window.since.date(), (window.until - timedelta(microseconds=1)).date()
    days = (last - first).days + 1
    closed = work.value(
        "SELECT count(*) FROM (SELECT day FROM closed_day WHERE reopened_at IS NULL "
        "AND day BETWEEN ? AND ? AND list_contains(?, cluster) GROUP BY day "
        "HAVING count(DISTINCT cluster) = ?)",
        [first, last, clusters, len(clusters)],
    )
    return int(closed), days
