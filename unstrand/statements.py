"""Statements made over a store, with their files, as command line and API give them out."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics.errors import StatementError
from analytics.months import Month
from analytics.statements import Asked, Statement, statement_of, statements
from collector.store import Store
from scheduler_advisor.messages import Words
from scheduler_advisor.statement import FORMS, file_name, rendered


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
    asked = wish.asked()
    if wish.team is None and not wish.platform:
        found = statements(store, asked, now=now)
    else:
        found = [statement_of(store, wish.team, asked, now=now)]
    return [{**one.with_id(), "files": _files(one, wish)} for one in found]


def _files(statement: Statement, wish: StatementWish) -> dict[str, str]:
    return {
        file_name(statement, form): base64.b64encode(
            rendered(statement, form, wish.language)
        ).decode()
        for form in wish.forms
    }
