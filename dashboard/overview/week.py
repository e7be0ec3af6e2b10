"""The last seven days of the window beside the seven before."""

from __future__ import annotations

from datetime import date, timedelta

from analytics.window import Window
from dashboard import data
from dashboard.data import Report
from dashboard.figures import ClassSums, class_sums
from dashboard.formats import change, number, whole_money
from dashboard.frame import Page
from dashboard.palette import CLASSES
from dashboard.parts.html import Column, heading, show, table
from dashboard.view import View

WEEK = timedelta(days=7)


def weeks(page: Page) -> tuple[ClassSums | None, ClassSums | None]:
    """The classes of the last week and the one before; None where facts do not cover it."""
    last = page.view.last
    return _week(page, last - timedelta(days=6)), _week(page, last - timedelta(days=13))


def _week(page: Page, first: date) -> ClassSums | None:
    view = View(first, first + timedelta(days=6), page.view.zone)
    if view.since < page.span.since or view.until > page.span.until + timedelta(days=1):
        return None
    window = Window(view.since, view.until, view.zone)
    return class_sums(
        data.ledger(page.path, window, ("class",), page.view.cluster, page.view.currency).rows
    )


def week_table(
    page: Page, week: ClassSums | None, before: ClassSums | None, report: Report
) -> None:
    """One row per class that has time in either week."""
    words, last = page.words, page.view.last
    show(heading(words("overview.week")))
    if week is None:
        show(f'<p class="hint">{words("overview.against_none")}</p>')
        return
    names = [n for n in CLASSES if week.gpu_hours[n] or (before and before.gpu_hours[n])]
    columns = [
        Column(words("overview.week_class")),
        Column(_dates(last - timedelta(days=6), last, page)),
        Column(_dates(last - timedelta(days=13), last - WEEK, page), narrow=False),
        Column(words("overview.week_change")),
    ]
    rows = [[words(f"class.{n}"), *_figures(week, before, (n,), report)] for n in names]
    total = [words("overview.week_total"), *_figures(week, before, tuple(CLASSES), report)]
    show(table(columns, rows, total=total, swatches=[CLASSES[n].colour for n in names]))


def _figures(
    week: ClassSums, before: ClassSums | None, names: tuple[str, ...], report: Report
) -> list[str]:
    if week.cost is None:
        now, then = week.hours(names), before.hours(names) if before else None
        return [
            number(float(now)),
            number(None if then is None else float(then)),
            change(now, then),
        ]
    now_money, then_money = week.money(names), before.money(names) if before else None
    return [
        whole_money(now_money, report.currency),
        whole_money(then_money, report.currency),
        change(now_money, then_money),
    ]


def _dates(first: date, last: date, page: Page) -> str:
    return page.words("overview.week_now", first=f"{first:%m-%d}", last=f"{last:%m-%d}")
