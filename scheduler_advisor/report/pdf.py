"""The report as PDF, by WeasyPrint: the extra ``report``."""

from __future__ import annotations

from scheduler_advisor.errors import ReportError
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.html import report_html


def report_pdf(report: WeeklyReport, language: str = "en") -> bytes:
    """The page with everything unfolded, on A4; see `page_pdf`."""
    return page_pdf(report_html(report, language, unfolded=True))


def page_pdf(page: str) -> bytes:
    """An HTML page that carries all that it shows, on A4.

    Raises ReportError where the extra or the libraries that it draws with are missing.
    """
    try:
        from weasyprint import HTML  # type: ignore[import-untyped]
    except (ImportError, OSError) as error:
        raise ReportError(
            "PDF needs the extra `report` (pip install 'unstrand[report]') and the Pango library "
            f"of the system: {error}"
        ) from error
    return bytes(HTML(string=page, url_fetcher=_refuse).write_pdf())


def _refuse(url: str, *_: object, **__: object) -> dict[str, object]:
    """Nothing is fetched: the page carries all that it shows."""
    raise ReportError(f"the report's page asks for {url}: it must carry all that it shows")
