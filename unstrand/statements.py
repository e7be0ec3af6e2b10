"""Statements made over a store, with their files, as command line and API give them out."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from analytics.errors import StatementError
from analytics.months import Month
from analytics.statements import Asked, Statement, statement_of, statements
from analytics.statements.issue import (
    Cells,
    Issued,
    issued_document,
    issued_file,
    last_issued,
    next_version,
    put_issue,
)
from collector.store import Store, Work
from scheduler_advisor.messages import LANGUAGES, Words
from scheduler_advisor.report.pdf import page_pdf
from scheduler_advisor.statement import FORMS, file_name, lines, rendered, safe_name


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementWish:
    """A month's statements: of one team, of the platform, or of all with the platform's last."""

    month: str
    team: str | None = None
    platform: bool = False
    time_zone: str = "UTC"
    cluster: str | None = None
    currency: str | None = None
    language: str = "en"
    forms: tuple[str, ...] = ()

    def asked(self) -> Asked:
        """What analytics takes; WindowError or StatementError for what makes no sense."""
        if self.team is not None and self.platform:
            raise StatementError("a team's statement or the platform's: ask for one of them")
        unknown = [form for form in self.forms if form not in FORMS]
        if unknown:
            raise StatementError(f"no form {', '.join(unknown)}: use {', '.join(FORMS)}")
        Words(self.language)
        return Asked(Month.parse(self.month), self.time_zone, self.cluster, self.currency)


def made(store: Store, wish: StatementWish, now: datetime) -> list[dict[str, Any]]:
    """The statements as JSON, each with ``files``: name -> content in base64.

    The ledger of the month must have been built.
    """
    found = _drafts(store, wish, now)
    with store.work() as work:
        issued = [last_issued(work, one) for one in found]
    return [
        {**one.with_id(), "issued": _issued(last), "files": _files(one, wish)}
        for one, last in zip(found, issued, strict=True)
    ]


def _drafts(store: Store, wish: StatementWish, now: datetime) -> list[Statement]:
    asked = wish.asked()
    if wish.team is None and not wish.platform:
        return statements(store, asked, now=now)
    return [statement_of(store, wish.team, asked, now=now)]


def _issued(last: Issued | None) -> dict[str, Any] | None:
    return None if last is None else asdict(last)


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement that may become an issue; ``files`` is empty where the last one says the same."""

    statement: Statement
    cells: list[Cells]
    files: dict[tuple[str, str | None], bytes]


def drafts(store: Store, wish: StatementWish, now: datetime) -> list[Draft]:
    """What an issue would freeze, every form of it. StatementError for a provisional statement."""
    found = []
    for one in _drafts(store, wish, now):
        with store.work() as work:
            version = next_version(work, one, lines(one))
        found.append(Draft(version or one, list(lines(version or one)), _frozen(version)))
    return found


def _frozen(statement: Statement | None) -> dict[tuple[str, str | None], bytes]:
    if statement is None:
        return {}
    kinds: list[tuple[str, str | None]] = [("html", name) for name in LANGUAGES]
    kinds += [("csv", None), ("json", None)]
    return {(form, name): rendered(statement, form, name or "en") for form, name in kinds}


def put_drafts(
    work: Work, found: Sequence[Draft], *, at: datetime, actor: str
) -> list[dict[str, Any]]:
    """Issue them; what says the same as the version before stays that version."""
    done = []
    for draft in found:
        one = draft.statement
        issued = (
            put_issue(work, one, draft.cells, draft.files, at=at, actor=actor)
            if draft.files
            else last_issued(work, one)
        )
        done.append({"team": one.team, "total": f"{one.total:f}", **(_issued(issued) or {})})
    return done


def issued_files(
    store: Store, issue_id: str, forms: Sequence[str], language: str
) -> dict[str, str]:
    """Forms of an issue, the bytes that went out: name -> content in base64. A PDF is printed from
    the page that was issued."""
    found = {}
    with store.work() as work:
        document = json.loads(issued_document(work, issue_id))
        name = f"statement-{safe_name(document['team'] or 'platform')}-{document['month']}"
        for form in forms:
            kept = "html" if form == "pdf" else form
            content = issued_file(work, issue_id, kept, language)
            if form == "pdf":
                content = page_pdf(content.decode())
            found[f"{name}-v{document['version']}.{form}"] = base64.b64encode(content).decode()
    return found


def _files(statement: Statement, wish: StatementWish) -> dict[str, str]:
    return {
        file_name(statement, form): base64.b64encode(
            rendered(statement, form, wish.language)
        ).decode()
        for form in wish.forms
    }
