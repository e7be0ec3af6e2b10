"""A statement as one table: a line per amount, the total last."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO

from analytics.statements import Statement
from analytics.statements.statement import Correction, Energy

COLUMNS = (
    "statement_id", "month", "team", "cluster", "section", "item", "gpu_hours", "amount",
    "currency", "charged", "number", "detail",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Cells = tuple[str, str, Decimal | None, Decimal | None, bool, str, str]


def statement_csv(statement: Statement) -> str:
    """Lines that are ``charged`` add up to the line `total`; the others are information.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    same = (
        statement.statement_id, str(statement.month), _plain(statement.team or ""),
        _plain(statement.cluster or ""),
    )  # fmt: skip
    for section, item, hours, amount, charged, number, detail in lines(statement):
        writer.writerow(
            (*same, section, _plain(item), _number(hours), _number(amount), statement.currency,
             "yes" if charged else "no", number, _plain(detail))
        )  # fmt: skip
    return text.getvalue()


def lines(s: Statement) -> Iterator[Cells]:
    for line in s.lines:
        yield "class", line.name, line.gpu_hours, line.amount, True, "observed", ""
    for share in s.overhead:
        detail = f"share of {share.whole:f} by {share.rule}"
        yield "overhead", share.name, None, share.amount, True, "observed", detail
    yield from _adjustments(s)
    yield from _information(s)
    state = "final" if s.final else f"provisional, {s.closed_days} of {s.days} days closed"
    yield "total", "total", s.held_gpu_hours, s.total, False, "observed", state


def _adjustments(s: Statement) -> Iterator[Cells]:
    for entry in s.adjustments:
        a = entry.adjustment
        detail = f"{a.kind}: {a.reason} (by {a.author}, approved by {a.approved_by})"
        yield "adjustment", a.adjustment_id, None, entry.amount, True, "observed", detail
    for a in s.pending:
        detail = f"{a.kind} of {a.amount:f} {a.currency}, not approved yet: {a.reason}"
        yield "pending", a.adjustment_id, None, None, False, "observed", detail


def _information(s: Statement) -> Iterator[Cells]:
    for name, lines in (("model", s.by_model), ("user", s.by_user)):
        for line in lines:
            yield name, line.name, line.gpu_hours, line.amount, False, "observed", ""
    for name, told in (("stranded", s.stranded), ("waited", s.waited)):
        for row in told:
            yield name, row.name, row.gpu_hours, row.cost, False, "modelled", ""
    yield from _energy(s.energy)
    yield from _changes(s.corrects)
    if s.coverage_ratio is not None:
        detail = f"{s.coverage_ratio:.6f}"
        yield "coverage", "ratio", None, None, False, "observed", detail


def _energy(energy: Energy | None) -> Iterator[Cells]:
    if energy is not None:
        yield "energy", "kWh", None, None, False, energy.number, f"{energy.kwh:f}"
        if energy.carbon_g is not None:
            yield "energy", "g CO2e", None, None, False, "modelled", f"{energy.carbon_g:f}"


def _changes(c: Correction | None) -> Iterator[Cells]:
    """Information: the lines above have the amounts as they are now."""
    if c is None:
        return
    told = f"version {c.version} ({c.statement_id})"
    for change in c.changes:
        difference = (change.amount or Decimal(0)) - (change.before or Decimal(0))
        item = f"{change.section}: {change.item}"
        yield "correction", item, None, difference, False, "observed", told
    yield "correction", "total", None, c.difference, False, "observed", told


def _number(value: Decimal | None) -> str:
    return "" if value is None else f"{value:f}"


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
