"""Statements as they were issued: rows that never change. What comes later is the next version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.audit import note
from analytics.errors import StatementError
from analytics.months import Month
from analytics.statements.statement import Change, Correction, Statement
from collector.store import Work

Cells = tuple[str, str, Decimal | None, Decimal | None, bool, str, str]
"""section, item, GPU-hours, amount, charged, kind of number, detail."""
Files = Mapping[tuple[str, str | None], bytes]
"""(form, language) -> content."""
_SAME = (
    "month = ? AND time_zone = ? AND cluster IS NOT DISTINCT FROM ? "
    "AND team IS NOT DISTINCT FROM ? AND currency = ?"
)
_LIST = """
SELECT issue_id, month, time_zone, cluster, team, currency, version, statement_id, total,
  price_book, org_version, demand_profiles, rules_version, sha256, issued_by, issued_at
FROM statement_issue
WHERE ($1 IS NULL OR month = $1) AND ($2 IS NULL OR team = $2)
ORDER BY month, team NULLS LAST, cluster NULLS FIRST, currency, time_zone, version"""


@dataclass(frozen=True, slots=True)
class Issued:
    """One version of one statement."""

    issue_id: str
    version: int
    statement_id: str
    new: bool
    """Whether it was written now; False = the last version says the same already."""


def next_version(work: Work, statement: Statement, cells: Iterable[Cells]) -> Statement | None:
    """The statement as the version that follows the one issued last, with what it changes there;
    None where the last one says the same. Raises StatementError for a provisional one."""
    if not statement.final:
        raise StatementError(
            f"the statement of {statement.team or 'the platform'} for {statement.month} is "
            f"provisional ({statement.closed_days} of {statement.days} days are closed): close the "
            "days first (unstrand close)"
        )
    last = _last(work, statement)
    if last is None:
        return replace(statement, version=1)
    if last["statement_id"] == statement.statement_id:
        return None
    before = _charged(_lines(work, last["issue_id"]))
    now = _charged(cells)
    changes = [
        Change(*key, before.get(key), now.get(key))
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    ]
    difference = statement.total - last["total"].quantize(statement.total)
    return replace(
        statement,
        version=last["version"] + 1,
        corrects=Correction(last["version"], last["statement_id"], difference, changes),
    )


def put_issue(
    work: Work, statement: Statement, cells: Sequence[Cells], files: Files, *, at: datetime,
    actor: str,
) -> Issued:  # fmt: skip
    """Freeze a version that `next_version` made: its lines, its versions of everything, its files.

    StatementError where another one of that version was issued meanwhile.
    """
    last, version = _last(work, statement), statement.version or 1
    if version != (1 if last is None else last["version"] + 1):
        raise StatementError(f"version {version} was issued meanwhile: issue it again")
    issued = int(work.value("SELECT count(*) FROM statement_issue"))
    issue_id = f"S-{issued + 1:06d}"
    document = json.dumps(statement.with_id(), ensure_ascii=False, sort_keys=True)
    rules = statement.rules
    row = {
        "issue_id": issue_id, "month": statement.month.first,
        "time_zone": statement.window.time_zone, "cluster": statement.cluster,
        "team": statement.team, "currency": statement.currency, "version": version,
        "statement_id": statement.statement_id, "total": statement.total,
        "price_book": rules.price_book, "org_version": rules.org_version,
        "demand_profiles": rules.demand_profiles, "rules_version": rules.rules_version,
        "document": document, "sha256": hashlib.sha256(document.encode()).hexdigest(),
        "issued_by": actor, "issued_at": at,
    }  # fmt: skip
    work.append("statement_issue", {name: [value] for name, value in row.items()})
    _put_lines(work, issue_id, cells)
    keys = list(files)
    work.append(
        "statement_file",
        {"issue_id": [issue_id] * len(keys), "form": [form for form, _ in keys],
         "language": [language for _, language in keys], "content": [files[key] for key in keys]},
    )  # fmt: skip
    whom = statement.team or "platform"
    note(work, at, actor, "statement.issue", f"{whom} {statement.month}",
         after=f"version {version}, {statement.statement_id}: {statement.total} "
         f"{statement.currency}")  # fmt: skip
    return Issued(issue_id, version, statement.statement_id, True)


def _put_lines(work: Work, issue_id: str, cells: Sequence[Cells]) -> None:
    names = ("section", "item", "gpu_hours", "amount", "charged", "number", "detail")
    columns: dict[str, list[Any]] = {
        name: [cell[nth] for cell in cells] for nth, name in enumerate(names)
    }
    columns |= {"issue_id": [issue_id] * len(cells), "place": list(range(len(cells)))}
    work.append("statement_line", columns)


def last_issued(work: Work, statement: Statement) -> Issued | None:
    """The newest version of the same team, month, calendar, cluster and currency."""
    row = _last(work, statement)
    if row is None:
        return None
    return Issued(row["issue_id"], row["version"], row["statement_id"], False)


def _last(work: Work, s: Statement) -> dict[str, Any] | None:
    rows = work.rows(
        f"SELECT * FROM statement_issue WHERE {_SAME} ORDER BY version DESC LIMIT 1",  # noqa: S608 - our own names
        [s.month.first, s.window.time_zone, s.cluster, s.team, s.currency],
    )
    return rows[0] if rows else None


def issue_rows(
    work: Work, month: Month | None = None, team: str | None = None
) -> list[dict[str, Any]]:
    """What was issued, with the versions of everything that decided it."""
    return work.rows(_LIST, [None if month is None else month.first, team])


def issued_document(work: Work, issue_id: str) -> str:
    """The JSON of an issue. StatementError for an unknown one, or one whose bytes are not those
    that were issued."""
    rows = work.rows("SELECT document, sha256 FROM statement_issue WHERE issue_id = ?", [issue_id])
    if not rows:
        raise StatementError(f"no issued statement {issue_id!r}: see statement --list")
    document: str = rows[0]["document"]
    if hashlib.sha256(document.encode()).hexdigest() != rows[0]["sha256"]:
        raise StatementError(f"{issue_id}: its bytes are not those that were issued")
    return document


def issued_file(work: Work, issue_id: str, form: str, language: str) -> bytes:
    """A form of an issue as it went out; StatementError where it has none such."""
    content = work.value(
        "SELECT content FROM statement_file WHERE issue_id = ? AND form = ? "
        "AND (language = ? OR language IS NULL)",
        [issue_id, form, language],
    )
    if content is None:
        raise StatementError(f"{issue_id} was not issued as {form} in {language!r}")
    return bytes(content)


def _lines(work: Work, issue_id: str) -> list[Cells]:
    rows = work.rows(
        "SELECT section, item, gpu_hours, amount, charged, number, detail FROM statement_line "
        "WHERE issue_id = ? ORDER BY place",
        [issue_id],
    )
    return [tuple(row.values()) for row in rows]


def _charged(cells: Iterable[Cells]) -> dict[tuple[str, str], Decimal]:
    """What is paid, line by line; lines of one name (two adjustments) are told apart by theirs."""
    found: dict[tuple[str, str], Decimal] = {}
    for section, item, _, amount, charged, _, _ in cells:
        if charged and amount is not None:
            key = (section, item)
            found[key] = found.get(key, Decimal(0)) + amount.normalize()
    return {key: amount for key, amount in found.items() if amount}
