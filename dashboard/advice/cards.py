"""One recommendation as a card: what is wrong, what to do, what it brings, what it risks."""

from __future__ import annotations

from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.advice.source import Newest
from dashboard.formats import hours, percent
from dashboard.parts.html import Tile, show, tag
from dashboard.words import Words
from scheduler_advisor.durations import duration_text
from scheduler_advisor.messages import Words as Sentences
from scheduler_advisor.report.wording import amount_text, hours_ends, hours_text, money_ends

_STYLE = Path(__file__).with_name("style.css")


def style() -> None:
    """The cards' look."""
    st.html(_STYLE)


def headline_tiles(found: Newest, words: Words) -> list[Tile]:
    """What it comes to, and how much of the facts is known."""
    joint, body = found.body["joint_saving"], found.body
    cost = None if joint["cost"] is None else Decimal(joint["cost"])
    cash = Decimal(joint["cash"] or 0)
    currency = body["currency"] or ""
    return [
        Tile(words("advice.to_win"), amount_text(cost, currency), "modelled",
             words("advice.to_win_help"), hours(joint["gpu_hours"])),
        Tile(words("advice.cash"), amount_text(cash, currency), "modelled",
             words("advice.cash_help")),
        Tile(words("advice.open"), str(len(found.open)), "observed",
             sub=words("advice.aside", count=len(found.aside))),
        Tile(words("advice.coverage"), percent(body["coverage_ratio"]), "observed",
             words("window.coverage_help"), ratio=body["coverage_ratio"]),
    ]  # fmt: skip


def card(rec: dict[str, Any], words: Words) -> None:
    """The head and the four columns of one recommendation."""
    sentences = Sentences(words.language)
    owner = " / ".join(filter(None, (rec["owner"]["team"], rec["owner"]["user"])))
    who = owner or sentences.say("phrase.platform")
    duty = sentences.say(f"duty.{rec['owner']['duty']}")
    state = sentences.say(f"state.{rec['state']}")
    texts = dict.fromkeys((rec["kind_name"], who, duty, state))
    pills = "".join(f'<span class="pill">{escape(text)}</span>' for text in texts)
    head = f'<div class="top"><h3>{escape(rec["title"])}</h3>{pills}</div>'
    parts = (
        (sentences.say("report.wrong"), escape(rec["why"])),
        (sentences.say("report.do"), escape(rec["action"])),
        (sentences.say("report.brings"), brings(rec, words, sentences)),
        (sentences.say("report.risks"), _risk(rec, sentences)),
    )
    grid = "".join(f"<div><h4>{escape(title)}</h4>{text}</div>" for title, text in parts)
    show(f'<div class="advice">{head}<div class="grid">{grid}</div></div>')


def brings(rec: dict[str, Any], words: Words, sentences: Sentences) -> str:
    """The saving of a week with its hours, basis and interval, as markup."""
    saving = rec["saving"]
    waiting = _waits_less(rec, sentences)
    if waiting is not None:
        hint = escape(sentences.say("phrase.interval_of"))
        return f'<b class="amount">{escape(waiting)}</b><br><span class="hint">{hint} · </span>' + (
            tag("modelled", words)
        )
    if saving.get("range_only"):
        low, high = hours_ends(*saving["gpu_hours_interval_80"])
        high = f"{high} GPU-h"
        if saving["interval_80"][0] is not None:
            low, high = _money_ends(saving, saving["currency"])
        said = escape(sentences.say("phrase.range", low=low, high=high))
        hint = escape(sentences.say("phrase.no_promise"))
        return f'<b class="amount">{said}</b><br><span class="hint">{hint} · </span>' + tag(
            "modelled", words
        )
    if not saving["gpu_hours"]:
        return escape(sentences.say("phrase.no_saving"))
    gpu_hours = hours(saving["gpu_hours"])
    basis = sentences.say(f"phrase.{saving['basis']}")
    if saving["cost"] is None:
        low, high = hours_ends(*saving["gpu_hours_interval_80"])
        main, gpu_hours = gpu_hours, ""
        interval = sentences.say("phrase.interval", low=low, high=high) + " · "
    else:
        main = amount_text(Decimal(saving["cost"]), saving["currency"])
        low, high = _money_ends(saving, None)
        interval = sentences.say("phrase.interval", low=low, high=high) + " · "
    week = sentences.say("phrase.per_week", amount=main)
    hint = escape(" · ".join(filter(None, (gpu_hours, basis, interval))))
    return f'<b class="amount">{escape(week)}</b><br><span class="hint">{hint}</span>' + tag(
        "modelled", words
    )


def _waits_less(rec: dict[str, Any], sentences: Sentences) -> str | None:
    """The gain of a change that is advised for what somebody waits, in hours a week."""
    found = (rec.get("replay") or {}).get("measured")
    if found is None or found["measure"] not in ("urgent", "big"):
        return None
    low, high = (f"{value:,.0f}" for value in found["interval_80"])
    return sentences.say(f"sure.waits_less_{found['measure']}", low=low, high=high)


def _money_ends(saving: dict[str, Any], currency: str | None) -> tuple[str, str]:
    low, high = (Decimal(value) for value in saving["interval_80"])
    return money_ends(low, high, currency)


def _risk(rec: dict[str, Any], sentences: Sentences) -> str:
    level = sentences.say(f"risk.{rec['risk']['level']}")
    said = f"<b>{escape(level)}.</b> {escape(rec['risk']['reason'])}"
    sure = rec.get("sure")
    lines = [rec.get("gets_worse"), sure and f"{sentences.say('sure.title')}: {sure}"]
    return said + "".join(f'<br><span class="hint">{escape(t)}</span>' for t in lines if t)


def evidence(rec: dict[str, Any], words: Words) -> None:
    """Figures with their kind, commands, break-even, assumptions, history."""
    sentences = Sentences(words.language)
    with st.popover(sentences.say("report.more")):
        rows = "".join(
            f"<li>{escape(sentences.say('figure.' + figure['name']))}: "
            f"<b>{escape(_value(figure))}</b> {tag(figure['kind'], words)}</li>"
            for figure in rec["evidence"]["figures"]
        )
        lines = [
            (sentences.say("report.pays"), rec["break_even"]["text"]),
            (sentences.say("report.verify"), rec["verify"]["text"]),
            (sentences.say("report.rollback"), rec["rollback"]["text"]),
        ]
        if rec["overlaps"]:
            names = ", ".join(rec["overlaps"])
            lines.append(("≈", sentences.say("report.overlaps", names=names)))
        text = "".join(f"<p><b>{escape(a)}:</b> {escape(b)}</p>" for a, b in lines)
        show(f"<ul>{rows}</ul>{text}")
        if rec.get("replay"):
            show(_shifts(rec["replay"], sentences) + _unable(rec["replay"], sentences))
        commands = [rec[part]["command"] for part in ("apply", "verify", "rollback")]
        shown = [*filter(None, commands), *rec["evidence"]["queries"]]
        st.code("\n".join(dict.fromkeys(shown)), language="shell")
        for change in rec["history"]:
            state = sentences.say(f"state.{change['state']}")
            show(
                f'<p class="hint">{escape(change["ts"])} {escape(state)} · '
                f"{escape(change['actor'])} {escape(change['reason'] or '')}</p>"
            )


def _shifts(replay: dict[str, Any], sentences: Sentences) -> str:
    """Gained and lost side by side."""
    heads = [sentences.say(f"replay.{name}") for name in ("gained", "before", "after")]
    rows = "".join(
        f"<tr><td class='text'>{escape(sentences.say('replay.' + row['measure']))}</td>"
        f"<td>{escape(_shift(row['measure'], row['before']))}</td>"
        f"<td>{escape(_shift(row['measure'], row['after']))}</td></tr>"
        for row in replay["shifts"]
    )
    # Reports that were saved before changes of limits were tried tell no teams.
    rows += "".join(
        f"<tr><td class='text'>{escape(sentences.say('replay.team_p95', name=row['name']))}</td>"
        f"<td>{escape(duration_text(row['before_s']))}</td>"
        f"<td>{escape(duration_text(row['after_s']))}</td></tr>"
        for row in replay.get("teams", ())
    )
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return f'<table class="rows"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _unable(replay: dict[str, Any], sentences: Sentences) -> str:
    """Jobs without a sign that they resume, and what being stopped would have cost them."""
    found = replay.get("not_resumable")
    if not found:
        return ""
    if not found["count"]:
        return f"<p>{escape(sentences.say('replay.all_resume'))}</p>"
    line = sentences.say("replay.unable", count=found["count"],
                         hours=hours_text(found["lost_gpu_hours"]))  # fmt: skip
    names = ("job", "gpus", "stops", "would_lose")
    head = "".join(f"<th>{escape(sentences.say('replay.' + name))}</th>" for name in names)
    rows = "".join(
        f"<tr><td class='text'>{escape(job['job_id'])}</td><td>{job['gpus']:g}</td>"
        f"<td>{job['stops']}</td><td>{hours_text(job['lost_gpu_hours'])}</td></tr>"
        for job in found["jobs"]
    )
    return (
        f"<p>{escape(line)}</p><table class='rows'><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _shift(name: str, value: float) -> str:
    if name.endswith("_s"):
        return duration_text(value)
    return f"{value:.1f}" if name == "blast_gpus" else percent(value)


def _value(figure: dict[str, Any]) -> str:
    value = figure["value"]
    if value is None:
        return "–"
    if figure["unit"] == "ratio":
        return percent(float(value))
    unit = {"gpu_hours": "GPU-h", "gpus": "GPU", "mib": "MiB", "count": ""}.get(
        figure["unit"], figure["unit"]
    )
    return f"{float(value):,.{0 if float(value) >= 100 or float(value) % 1 == 0 else 1}f} {unit}"
