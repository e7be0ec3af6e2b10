"""What is paid, how it breaks down, and what is told without being charged."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from analytics.statements.statement import Line, Statement, Told
from scheduler_advisor.messages import Words
from scheduler_advisor.report import svg
from scheduler_advisor.report.colours import CLASS_STYLES
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.statement.tables import cell, coins, hours, number, table

_SEEN = 0.0005  # a share below a twentieth of a percent would show as 0.0%


def tiles(s: Statement, words: Words) -> Markup:
    """What is due first; then what it bought."""
    idle = next((line for line in s.lines if line.name == "allocated_idle"), None)
    fleet = words.say("statement.of_fleet", amount=coins(s.fleet_gpu_time, s.currency))
    entries = (
        ("due", f"{coins(s.total, s.currency)} {s.currency}", fleet),
        ("held", f"{hours(s.held_gpu_hours)} GPU-h", words.say("statement.held_hint")),
        ("efficiency", _percent(s.efficiency_ratio), words.say("statement.efficiency_hint")),
        ("idle", "–" if idle is None else coins(idle.amount, s.currency),
         words.say("statement.idle_hint")),
        ("coverage", _percent(s.coverage_ratio), words.say("statement.coverage_hint")),
    )  # fmt: skip
    return tag(
        "div",
        *(
            tag("div", tag("span", words.say(f"statement.{name}"), cls="name"), tag("b", value),
                tag("span", hint, cls="hint"), cls="tile win" if name == "due" else "tile")
            for name, value, hint in entries
        ),
        cls="tiles",
    )  # fmt: skip


def _percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.1%}"


def charged(s: Statement, words: Words) -> Markup:
    """Every line that is paid, and their sum."""
    rows = [_class_row(s, line, words) for line in s.lines]
    sums = [_sum_row(words.say("statement.gpu_time"), s.gpu_time, s, "part")]
    for share in s.overhead:
        rule = words.say(f"statement.rule_{share.rule}")
        detail = words.say("statement.share_of", amount=coins(share.whole, s.currency), rule=rule)
        name = join(words.say("statement.overhead"), f": {share.name} ", _note(detail))
        sums.append(_sum_row(name, share.amount, s))
    for entry in s.adjustments:
        a = entry.adjustment
        detail = words.say(
            "statement.adjusted", id=a.adjustment_id, author=a.author, by=a.approved_by or ""
        )
        kind = words.say(f"statement.kind_{a.kind}")
        sums.append(_sum_row(join(f"{kind}: {a.reason} ", _note(detail)), entry.amount, s))
    sums.append(_sum_row(words.say("statement.total"), s.total, s, "whole"))
    heads = (words.say("statement.what"), words.say("statement.gpu_hours"),
             words.say("statement.amount", currency=s.currency))  # fmt: skip
    waiting = [
        tag("p", words.say("statement.pending", id=a.adjustment_id, reason=a.reason,
                           kind=words.say(f"statement.claim_{a.kind}"),
                           amount=f"{coins(a.amount, a.currency)} {a.currency}"), cls="sub")
        for a in s.pending
    ]  # fmt: skip
    return join(
        tag("h2", words.say("statement.charged")),
        _bar(s, words),
        table(heads, [*rows, *sums], numbers=(1, 2)),
        *waiting,
    )


def _bar(s: Statement, words: Words) -> Markup | None:
    """The GPU-hours of the lines as one bar in the colours of every page."""
    by_name = {line.name: line for line in s.lines}
    whole = sum((line.gpu_hours for line in s.lines), Decimal(0))
    if not whole:
        return None
    shares = [
        (name, float(by_name[name].gpu_hours / whole), words.say(f"class.{name}"))
        for name in CLASS_STYLES
        if name in by_name and by_name[name].gpu_hours / whole >= Decimal(_SEEN)
    ]
    return svg.stacked_bar(shares, words.say("statement.charged"))


def _class_row(s: Statement, line: Line, words: Words) -> Markup:
    note = None
    if line.gpu_hours and not line.amount:
        note = _note(words.say("statement.paid_by_other"))
    elif line.amount and not line.gpu_hours:
        note = _note(words.say("statement.paid_for_other"))
    name = join(svg.swatch(line.name), " ", words.say(f"class.{line.name}"), " ", note)
    return tag(
        "tr", cell(name), number(hours(line.gpu_hours)), number(coins(line.amount, s.currency))
    )


def _note(text: str) -> Markup:
    return tag("span", text, cls="note")


def _sum_row(name: object, amount: Decimal, s: Statement, cls: str | None = None) -> Markup:
    return tag("tr", cell(name), number(""), number(coins(amount, s.currency)), cls=cls)


def breakdown(s: Statement, words: Words) -> Markup | None:
    """The same GPU time by model and by user: each adds up to it."""
    made = [
        tag("div", tag("h3", words.say(f"statement.{name}")), _lines(s, lines, words))
        for name, lines in (("by_model", s.by_model), ("by_user", s.by_user))
        if lines
    ]
    return tag("div", *made, cls="two") if made else None


def _lines(s: Statement, lines: Sequence[Line], words: Words) -> Markup:
    heads = ("", words.say("statement.gpu_hours"), words.say("statement.used_hours"),
             words.say("statement.amount", currency=s.currency))  # fmt: skip
    rows = [
        tag("tr", cell(line.name), number(hours(line.gpu_hours)),
            number(hours(line.used_gpu_hours or Decimal(0))),
            number(coins(line.amount, s.currency)))
        for line in lines
    ]  # fmt: skip
    return table(heads, rows, numbers=(1, 2, 3))


def information(s: Statement, words: Words) -> Markup | None:
    """Stranded by this team, and what stood empty while it waited."""
    if not s.stranded and not s.waited:
        return None
    made = [
        tag("div", tag("h3", words.say(f"statement.{name}")),
            tag("p", words.say(f"statement.{name}_text"), cls="sub"),
            _told(s, rows, words) if rows else tag("p", words.say("statement.none")))
        for name, rows in (("stranded", s.stranded), ("waited", s.waited))
    ]  # fmt: skip
    modelled = tag("span", words.say("number.modelled"), cls="k")
    return join(
        tag("h2", words.say("statement.information"), " ", modelled), tag("div", *made, cls="two")
    )


def _told(s: Statement, rows: Sequence[Told], words: Words) -> Markup:
    heads = ("", words.say("statement.gpu_hours"),
             words.say("statement.worth", currency=s.currency))  # fmt: skip
    made = [
        tag("tr", cell(join(svg.swatch(row.name), " ", words.say(f"class.{row.name}"))),
            number(hours(row.gpu_hours)),
            number("–" if row.cost is None else coins(row.cost, s.currency)))
        for row in rows
    ]  # fmt: skip
    return table(heads, made, numbers=(1, 2))
