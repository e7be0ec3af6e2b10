"""What a version changes in the one before, and the energy of the boards."""

from __future__ import annotations

from decimal import Decimal

from analytics.statements.statement import Change, Statement
from scheduler_advisor.messages import Words
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.statement.tables import cell, coins, number, table

_SECTIONS = ("class", "overhead", "adjustment")


def correction(s: Statement, words: Words) -> Markup | None:
    """The lines that this version changes, and the difference of the totals."""
    if s.corrects is None:
        return None
    told = words.say(
        "statement.corrects", version=s.version or 1, before=s.corrects.version,
        id=s.corrects.statement_id,
        difference=f"{_signed(s.corrects.difference, s.currency)} {s.currency}",
    )  # fmt: skip
    heads = ("", words.say("statement.before"), words.say("statement.now"),
             words.say("statement.difference"))  # fmt: skip
    rows = [_row(s, change, words) for change in s.corrects.changes]
    return join(tag("p", told, cls="sub"), table(heads, rows, numbers=(1, 2, 3)) if rows else None)


def _row(s: Statement, change: Change, words: Words) -> Markup:
    name = words.say(f"class.{change.item}") if change.section == "class" else change.item
    before, now = change.before or Decimal(0), change.amount or Decimal(0)
    return tag(
        "tr", cell(name), number(coins(before, s.currency)), number(coins(now, s.currency)),
        number(_signed(now - before, s.currency)),
    )  # fmt: skip


def _signed(amount: Decimal, currency: str) -> str:
    return ("+" if amount > 0 else "") + coins(amount, currency)


def energy(s: Statement, words: Words) -> Markup | None:
    """Board energy and carbon, each with the kind of number that it is."""
    if s.energy is None:
        return None
    parts = [
        tag("b", words.say("statement.kwh", amount=f"{s.energy.kwh:,.1f}")), " ",
        tag("span", words.say(f"number.{s.energy.number}"), cls="k"),
    ]  # fmt: skip
    if s.energy.carbon_g is not None:
        kg = s.energy.carbon_g / 1000
        parts += [" · ", tag("b", words.say("statement.carbon", amount=f"{kg:,.1f}")), " ",
                  tag("span", words.say("number.modelled"), cls="k")]  # fmt: skip
    return join(
        tag("h3", words.say("statement.energy")),
        tag("p", *parts),
        tag("p", words.say("statement.energy_text"), cls="sub"),
    )
