"""The report as one HTML file that reads offline: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from pathlib import Path

from scheduler_advisor.messages import Words
from scheduler_advisor.report import html_advice, html_head, html_measured, html_replay
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.markup import Markup, tag

_STYLE = Path(__file__).with_name("style.css")


def report_html(report: WeeklyReport, language: str = "en", *, unfolded: bool = False) -> str:
    """The whole page. ``unfolded`` opens what a reader would click open, for paper."""
    words = Words(language)
    body = tag(
        "main",
        html_head.header(report, words),
        html_head.headline(report, words),
        html_head.tiles(report, words),
        html_head.where(report, words),
        html_head.quality(report, words),
        html_advice.changes(report, words, unfolded=unfolded),
        html_advice.quality_cards(report, words, unfolded=unfolded),
        html_replay.replays(report, words),
        html_measured.measurements(report, words),
        html_advice.the_rest(report, words),
        tag("footer", tag("p", words.say("report.footer")), tag("p", words.say("report.feedback"))),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag(
            "title",
            f"{words.say('report.title')} {report.window.local(report.window.until):%Y-%m-%d}",
        ),
        tag("style", Markup(_STYLE.read_text(encoding="utf-8"))),
    )
    page = tag("html", head, tag("body", body), lang=language)
    return f"<!doctype html>{page}\n"
