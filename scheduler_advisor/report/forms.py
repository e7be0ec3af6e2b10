"""The forms that a report can be written in."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from scheduler_advisor.errors import ReportError
from scheduler_advisor.messages import catalogue
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.html import report_html
from scheduler_advisor.report.json_form import plain, report_json
from scheduler_advisor.report.markdown import report_markdown
from scheduler_advisor.report.pdf import report_pdf

FORMS = ("html", "json", "md", "pdf")


def check(forms: Collection[str], language: str) -> None:
    """ReportError for a form or a language that no report can be written in."""
    catalogue(language)
    for form in forms:
        if form not in FORMS:
            raise ReportError(f"no form {form!r}: one of {', '.join(FORMS)}")


def rendered(report: WeeklyReport, form: str, language: str = "en") -> bytes:
    """The report in one of `FORMS`; ReportError for any other."""
    match form:
        case "html":
            return report_html(report, language).encode()
        case "json":
            text = json.dumps(
                report_json(report, language), default=plain, ensure_ascii=False, indent=1
            )
            return text.encode()
        case "md":
            return report_markdown(report, language).encode()
        case "pdf":
            return report_pdf(report, language)
    check((form,), language)
    raise AssertionError(form)


def file_name(report: WeeklyReport, form: str) -> str:
    """``gpu-report-<cluster>-<last day>.<form>``."""
    last = f"{report.window.local(report.window.until):%Y-%m-%d}"
    cluster = "".join(c if c.isalnum() or c in "-_." else "_" for c in report.cluster or "all")
    return f"gpu-report-{cluster}-{last}.{form}"


def write_files(
    report: WeeklyReport, forms: tuple[str, ...], folder: Path, language: str = "en"
) -> list[Path]:
    """One file per form in ``folder``; all are rendered before the first is written."""
    contents = {form: rendered(report, form, language) for form in forms}
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for form, content in contents.items():
        path = folder / file_name(report, form)
        path.write_bytes(content)
        paths.append(path)
    return paths
