"""Tables of a statement: exact coins, GPU-hours to a tenth."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from analytics.currencies import smallest
from scheduler_advisor.report.markup import Markup, tag


def coins(amount: Decimal, currency: str) -> str:
    """Every coin, thousands apart: 1,234.50, or 1,235 in a currency without smaller ones."""
    return f"{amount.quantize(smallest(currency)):,f}"


def hours(amount: Decimal) -> str:
    """GPU-hours to a tenth."""
    return f"{amount:,.1f}"


def cell(content: object) -> Markup:
    return tag("td", content)


def number(text: str) -> Markup:
    return tag("td", text, cls="n")


def table(heads: Sequence[str], rows: Sequence[Markup], *, numbers: Sequence[int]) -> Markup:
    """A table whose columns at ``numbers`` are figures."""
    head = [
        tag("th", text, cls="n" if place in numbers else None) for place, text in enumerate(heads)
    ]
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows))
