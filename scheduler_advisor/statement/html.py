"""A statement as one HTML file that reads offline and prints on A4."""

from __future__ import annotations

from pathlib import Path

from analytics.statements import Statement
from scheduler_advisor.messages import Words
from scheduler_advisor.report.markup import Markup, tag
from scheduler_advisor.statement import html_amounts, html_issue, html_rules

_STYLES = (
    Path(__file__).parents[1] / "report" / "style.css",
    Path(__file__).with_name("statement.css"),
)


def statement_html(statement: Statement, language: str = "en") -> str:
    """The whole page."""
    words = Words(language)
    name = team_name(statement, words)
    month = str(statement.month)
    body = tag(
        "main",
        _header(statement, words),
        tag("h1", words.say("statement.heading", team=name, month=month)),
        _state(statement, words),
        html_issue.correction(statement, words),
        html_amounts.tiles(statement, words),
        html_amounts.charged(statement, words),
        html_amounts.breakdown(statement, words),
        html_amounts.information(statement, words),
        html_issue.energy(statement, words),
        html_rules.rules(statement, words),
        html_rules.dispute(statement, words),
        tag("footer", tag("p", words.say("statement.footer", id=_number(statement)))),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", words.say("statement.heading", team=name, month=month)),
        tag("style", Markup("\n".join(path.read_text(encoding="utf-8") for path in _STYLES))),
    )
    page = tag("html", head, tag("body", body), lang=language)
    return f"<!doctype html>{page}\n"


def _number(statement: Statement) -> str:
    """The id, with the version where it was issued."""
    version = "" if statement.version is None else f" v{statement.version}"
    return f"{statement.statement_id}{version}"


def team_name(statement: Statement, words: Words) -> str:
    """The team, or what the platform is called."""
    return words.say("statement.platform") if statement.team is None else statement.team


def _header(statement: Statement, words: Words) -> Markup:
    window = statement.window.to_dict()
    name = (
        words.say("report.cluster", name=statement.cluster)
        if statement.cluster
        else words.say("report.all_clusters")
    )
    demo = tag("span", words.say("report.demo"), cls="demo") if statement.demo else None
    return tag(
        "header",
        tag("span", tag("strong", "unstrand"), f" · {words.say('statement.title')} · {name}", demo),
        tag("span", words.say("statement.window", since=window["since"], until=window["until"],
                              zone=window["time_zone"])),
    )  # fmt: skip


def _state(statement: Statement, words: Words) -> Markup:
    """Whether this may still change, and why."""
    if statement.final:
        return tag("p", tag("b", words.say("statement.final")), " ",
                   words.say("statement.final_text"), cls="state final")  # fmt: skip
    closed, days = statement.closed_days, statement.days
    why = words.say("statement.provisional_text", closed=closed, days=days)
    remarks = [tag("span", f" · {text}") for text in statement.remarks]
    return tag("p", tag("b", words.say("statement.provisional")), " ", why, *remarks,
               cls="state provisional")  # fmt: skip
