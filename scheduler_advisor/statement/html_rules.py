"""The rules in force, and what to do for whoever does not agree."""

from __future__ import annotations

from typing import Any

from analytics.statements import Statement
from analytics.who_pays import UNALLOCATED
from scheduler_advisor.messages import Words
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.statement.tables import cell, number, table


def rules(s: Statement, words: Words) -> Markup:
    """Who pays, at what prices, by which versions."""
    return tag(
        "section",
        tag("h2", words.say("statement.rules")),
        tag(
            "div",
            tag("div", tag("h3", words.say("statement.who_pays")), _who_pays(s, words)),
            tag("div", tag("h3", words.say("statement.versions")), _versions(s, words)),
            cls="two",
        ),
        tag("h3", words.say("statement.prices")),
        _prices(s, words),
        _rates(s, words),
        cls="rules",
    )


def _who_pays(s: Statement, words: Words) -> Markup:
    """One line per payer; a class whose payer changed within the month stands in several."""
    by_payer: dict[str, list[str]] = {}
    for row in s.rules.who_pays:
        if row.name == UNALLOCATED:
            continue
        since = f" ({row.since:%Y-%m-%d %H:%M} UTC)" if row.since is not None else ""
        by_payer.setdefault(row.payer, []).append(words.say(f"class.{row.name}") + since)
    rows = [
        tag("tr", cell(tag("b", words.say(f"statement.payer_{payer}"))), cell(" · ".join(names)))
        for payer, names in by_payer.items()
    ]
    for row in s.rules.who_pays:
        if row.name == UNALLOCATED:
            since = f" ({row.since:%Y-%m-%d %H:%M} UTC)" if row.since is not None else ""
            told = words.say(f"statement.unallocated_{row.payer}") + since
            rows.append(tag("tr", cell(tag("b", words.say("statement.unallocated"))), cell(told)))
    return table((words.say("statement.payer"), words.say("statement.classes")), rows, numbers=())


def _versions(s: Statement, words: Words) -> Markup:
    rows = (
        ("price_book", s.rules.price_book or "–"),
        ("price_kind", ", ".join(s.rules.price_kinds) or "–"),
        ("org", s.rules.org_version),
        ("ledger_rules", s.rules.rules_version),
        ("activity", ", ".join(s.rules.activity_metrics) or "–"),
        ("profiles", ", ".join(s.rules.demand_profiles) or "–"),
        ("made_at", f"{s.made_at:%Y-%m-%d %H:%M} UTC"),
    )
    made = [
        tag("tr", cell(words.say(f"statement.{name}")), cell(tag("code", text)))
        for name, text in rows
    ]
    return tag("table", tag("tbody", *made))


def _prices(s: Statement, words: Words) -> Markup:
    heads = tuple(
        words.say(f"statement.{name}")
        for name in ("model", "per_gpu_hour", "price_kind", "holds", "source")
    )
    rows = [
        tag("tr", cell(row["gpu_model"]),
            number(f"{row['amount'].normalize():f} {row['currency']}"),
            cell(f"{row['kind']}, {row['purchase_type']}"), cell(_span(row, words)),
            cell(_source(row)))
        for row in s.rules.prices
    ]  # fmt: skip
    return table(heads, rows, numbers=(1,))


def _span(row: dict[str, Any], words: Words) -> str:
    since, until = row["effective_from"], row["effective_to"]
    if since.year <= 1970 and until is None:
        return words.say("statement.always")
    first = "…" if since.year <= 1970 else f"{since:%Y-%m-%d %H:%M}"
    return f"{first} – {'…' if until is None else f'{until:%Y-%m-%d %H:%M}'}"


def _source(row: dict[str, Any]) -> str:
    day = f", {row['retrieved_on']:%Y-%m-%d}" if row["retrieved_on"] else ""
    return f"{row['source']}{day}"


def _rates(s: Statement, words: Words) -> Markup | None:
    if not s.rules.rates:
        return None
    heads = tuple(words.say(f"statement.{name}") for name in ("rate", "holds", "source"))
    rows = [
        tag("tr", cell(f"1 {r['from_currency']} = {r['rate'].normalize():f} {r['to_currency']}"),
            cell(f"{r['effective_from']:%Y-%m-%d %H:%M} – …"), cell(r["source"]))
        for r in s.rules.rates
    ]  # fmt: skip
    return table(heads, rows, numbers=())


def dispute(s: Statement, words: Words) -> Markup | None:
    """What to say, to whom, and what happens then; the platform has nobody to dispute with."""
    if s.team is None:
        return None
    quoted = "'" + s.team.replace("'", "'\\''") + "'"
    command = (
        f"unstrand adjust add --team {quoted} --month {s.month} --kind dispute "
        f'--amount=-0.00 --currency {s.currency} --reason "{s.statement_id}: ..."'
    )
    return join(
        tag("h2", words.say("statement.dispute")),
        tag("p", words.say("statement.dispute_text", id=s.statement_id)),
        tag("pre", command),
        tag("p", words.say("statement.dispute_after"), cls="sub"),
    )
