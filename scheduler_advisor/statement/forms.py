"""The forms that a statement can be written in."""

from __future__ import annotations

import json

from analytics.statements import Statement
from scheduler_advisor.errors import ReportError
from scheduler_advisor.report.pdf import page_pdf
from scheduler_advisor.statement.csv_form import statement_csv
from scheduler_advisor.statement.html import statement_html

FORMS = ("html", "pdf", "csv", "json")


def rendered(statement: Statement, form: str, language: str = "en") -> bytes:
    """The statement in one of `FORMS`; ReportError for any other. CSV and JSON have no language."""
    match form:
        case "html":
            return statement_html(statement, language).encode()
        case "pdf":
            return page_pdf(statement_html(statement, language))
        case "csv":
            return statement_csv(statement).encode()
        case "json":
            return json.dumps(statement.with_id(), ensure_ascii=False, indent=1).encode()
    raise ReportError(f"no form {form!r}: one of {', '.join(FORMS)}")


def file_name(statement: Statement, form: str) -> str:
    """``statement-<team>-<month>.<form>``; the platform's has no team, so that none can be
    mistaken for it."""
    team = "" if statement.team is None else f"-{safe_name(statement.team)}"
    cluster = "" if statement.cluster is None else f"-{safe_name(statement.cluster)}"
    kind = "platform-statement" if statement.team is None else "statement"
    return f"{kind}{team}{cluster}-{statement.month}.{form}"


def safe_name(name: str) -> str:
    """A name as a part of a file's name: it leads out of no folder."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
