"""The charts of the Overview page."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from analytics.window import Window
from dashboard import data
from dashboard.charts.daily import daily
from dashboard.charts.waterfall import Step, height, waterfall
from dashboard.data import Report
from dashboard.figures import ClassSums, exact, ratio
from dashboard.formats import hours, money, percent, whole_money
from dashboard.frame import Page
from dashboard.navigation import go_to_class
from dashboard.palette import CLASSES, HELD, NOT_HELD
from dashboard.parts.html import legend, show
from dashboard.template import draw, draw_choice
from dashboard.words import Words

DAILY_PX = 300


def waterfall_chart(sums: ClassSums, report: Report, page: Page) -> None:
    """Installed, minus what nobody held, minus what holders did not use, leaves used.

    A click on a bar opens what is behind it.
    """
    words = page.words
    axis = (
        words("overview.waterfall_axis", currency=report.currency)
        if sums.cost is not None
        else words("overview.waterfall_axis_hours")
    )
    chosen = steps(sums, report, words)
    clicked = draw_choice(waterfall(chosen, axis), key="waterfall", height=height(chosen))
    if clicked:
        go_to_class(chosen[round(clicked[0])].name, page.view)
    empty = [words(f"class.{name}") for name in CLASSES if not sums.gpu_hours[name]]
    if empty:
        text = words("overview.waterfall_none", classes=", ".join(empty))
        show(f'<p class="hint">{text}</p>')


def steps(sums: ClassSums, report: Report, words: Words) -> list[Step]:
    """The bars from top to bottom; classes without GPU time are left out."""
    taken = [name for name in NOT_HELD if sums.gpu_hours[name]]
    held = [name for name in HELD if sums.gpu_hours[name] and name != "used"]
    return [
        _level("overview.waterfall_installed", sums, tuple(CLASSES), report, words),
        *(_step(name, sums, report, words) for name in taken),
        _level("overview.waterfall_held", sums, tuple(HELD), report, words),
        *(_step(name, sums, report, words) for name in held),
        _step("used", sums, report, words),
    ]


def _level(
    label: str, sums: ClassSums, names: tuple[str, ...], report: Report, words: Words
) -> Step:
    return _bar(None, words(label), "", names, sums, report)


def _step(name: str, sums: ClassSums, report: Report, words: Words) -> Step:
    return _bar(name, words(f"class.{name}"), words(f"class_help.{name}"), (name,), sums, report)


def _bar(
    name: str | None,
    label: str,
    meaning: str,
    names: tuple[str, ...],
    sums: ClassSums,
    report: Report,
) -> Step:
    amount = sum((sums.amount(part) for part in names), Decimal())
    whole = sum((sums.amount(part) for part in CLASSES), Decimal())
    spoken = hours(float(amount)) if sums.cost is None else whole_money(amount, report.currency)
    share = percent(ratio(amount, whole))
    exact_text = [hours(float(sums.hours(names)))]
    if sums.cost is not None:
        exact_text.insert(0, money(amount, report.currency))
    hover = f"<b>{label}</b><br>{' · '.join(exact_text)} · {share}"
    return Step(
        name,
        label,
        float(amount),
        f"{spoken} · {share}",
        hover + (f"<br>{meaning}" if meaning else ""),
    )


def daily_chart(page: Page, window: Window, report: Report) -> None:
    """What every day went into, class by class."""
    by_day = data.ledger(page.path, window, ("day", "class"), page.view.cluster, page.view.currency)
    priced = any(row["cost"] for row in by_day.rows)
    days = sorted({str(row["day"]) for row in by_day.rows})
    amounts: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(days, 0.0))
    for row in by_day.rows:
        value = row["cost"] if priced else exact(row["gpu_hours"])
        amounts[row["class"]][str(row["day"])] += float(value or 0)
    words = page.words
    shown = {n: list(v.values()) for n, v in amounts.items() if any(v.values())}
    axis = (
        words("overview.daily_axis", currency=report.currency)
        if priced
        else words("overview.daily_axis_hours")
    )
    names = {name: words(f"class.{name}") for name in CLASSES}
    show(legend({names[name]: CLASSES[name].colour for name in CLASSES if name in shown}))
    draw(daily([day[5:] for day in days], shown, names, axis), key="daily", height=DAILY_PX)
