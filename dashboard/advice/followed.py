"""What changes really brought, beside what was predicted, and the record of what did not work."""

from __future__ import annotations

from html import escape
from typing import Any

from dashboard import connection
from dashboard.formats import ABSENT, moment, number
from dashboard.frame import Page
from dashboard.parts.html import Column, heading, show, table
from dashboard.words import Words
from scheduler_advisor.followup.record import confidence, outcomes

BAD = ("failed", "worse", "hurt", "no_effect")


def followed_up(page: Page) -> None:
    """Nothing is shown until the first change has been judged."""
    words = page.words
    with connection.store_at(page.path).work() as work:
        rows, trust = outcomes(work), confidence(work)
    if not rows:
        return
    show(heading(words("advice.followed"), words("tag.observed")))
    show(_table(rows, page))
    lines = [
        words("advice.trust", kind=words(f"followed_kind.{each.kind}"), held=each.held,
              judged=each.judged, ratio=f"{each.ratio:.0%}")
        for each in trust
        if each.judged
    ]  # fmt: skip
    show("".join(f"<p>{escape(line)}</p>" for line in lines))
    failed = [row for row in rows if row["verdict"] in BAD]
    if failed:
        show(heading(words("advice.did_not_work")))
        items = "".join(f"<li>{escape(_failed(row, page))}</li>" for row in failed)
        show(f"<ul>{items}</ul>")


def _table(rows: list[dict[str, Any]], page: Page) -> str:
    words = page.words
    columns = [
        Column(words("advice.change"), text=True), Column(words("advice.changed_at")),
        Column(words("advice.predicted")), Column(words("advice.realised")),
        Column(words("advice.verdict"), text=True),
    ]  # fmt: skip
    cells = [
        (_what(row, words),
         moment(row["changed_at"], page.view.zone), _range(row, "predicted", words),
         _range(row, "realised", words), words(f"followed_verdict.{row['verdict']}"))
        for row in rows
    ]  # fmt: skip
    return table(columns, cells)


def _what(row: dict[str, Any], words: Words) -> str:
    kind = words(f"followed_kind.{row['kind']}")
    return f"{kind}: {row['what']}"[:120]


def _range(row: dict[str, Any], name: str, words: Words) -> str:
    if row[name] is None or (name == "realised" and row["verdict"] in ("too_early", "unseen")):
        return ABSENT
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{_amount(row, row[name], words)} ({number(low)} – {number(high)})"


def _amount(row: dict[str, Any], amount: float, words: Words) -> str:
    return words(f"followed_unit.{row['unit']}", amount=number(amount))


def _failed(row: dict[str, Any], page: Page) -> str:
    load = row["load_after"] / row["load_before"] - 1 if row["load_before"] else 0.0
    return page.words(
        "advice.failed_line", what=row["what"], day=moment(row["changed_at"], page.view.zone)[:10],
        verdict=page.words(f"followed_verdict.{row['verdict']}"),
        realised=_amount(row, row["realised"], page.words),
        load=f"{load:+.0%}", detail=row["detail"],
    )  # fmt: skip
