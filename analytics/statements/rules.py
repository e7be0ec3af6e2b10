"""The rules that a month's amounts were worked out by."""

from __future__ import annotations

from typing import Any

from analytics.ledger.classes import RULES_VERSION, LedgerClass
from analytics.org import map_version
from analytics.reports.asked import Question
from analytics.reports.price_book import PriceBook, book_version
from analytics.reports.rates import Rates
from analytics.statements.statement import Payers, Rules
from analytics.who_pays import UNALLOCATED, WhoPays, who_pays_text
from analytics.window import Window
from collector.store import Work

_PRICE_COLUMNS = (
    "gpu_model", "amount", "currency", "kind", "purchase_type", "cluster", "effective_from",
    "effective_to", "source", "retrieved_on", "price_id",
)  # fmt: skip


def rules_in_force(work: Work, window: Window, cluster: str | None, currency: str) -> Rules:
    """Of the window, wherever they changed within it."""
    prices = PriceBook.load(work).used(work, Question(window, (), cluster), "ledger_hour")
    builds = (
        "FROM ledger_build WHERE hour >= $1 AND hour < $2 AND ($3 IS NULL OR cluster = $3) "
        "ORDER BY ALL"
    )
    params = [window.since, window.until, cluster]
    return Rules(
        who_pays=_payers(work, window),
        prices=[
            {name: row[name] for name in _PRICE_COLUMNS}
            for row in sorted(prices, key=lambda row: (row["gpu_model"], row["effective_from"]))
        ],
        price_book=book_version(prices),
        price_kinds=sorted({row["kind"] for row in prices}),
        org_version=map_version(work),
        rules_version=RULES_VERSION,
        activity_metrics=_column(work, f"SELECT DISTINCT activity_metric AS x {builds}", params),
        demand_profiles=_column(work, f"SELECT DISTINCT profile_hash AS x {builds}", params),
        rates=_rates(work, window, {row["currency"] for row in prices}, currency),
    )


def _column(work: Work, sql: str, params: list[Any]) -> list[str]:
    return [row["x"] for row in work.rows(sql, params)]


def _payers(work: Work, window: Window) -> list[Payers]:
    table = WhoPays.load(work)
    starts = [window.since, *(t for t in table.changes if window.since < t < window.until)]
    found: list[Payers] = []
    for name in (*(c.value for c in LedgerClass), UNALLOCATED):
        last = None
        for at in starts:
            payer = who_pays_text(table, name, at)
            if payer != last:
                since = table.since(name, at)["effective_from"] if last is None else at
                found.append(Payers(name, payer, since))
            last = payer
    return found


def _rates(work: Work, window: Window, found: set[str], currency: str) -> list[dict[str, Any]]:
    rates = Rates.load(work)
    rows = []
    for source in sorted(found - {currency}):
        changes = [t for t in rates.changes([source], currency) if window.since < t < window.until]
        rows += [rates.row(source, currency, at) for at in (window.since, *changes)]
    return rows
