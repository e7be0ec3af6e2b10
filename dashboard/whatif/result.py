"""Today and the candidate side by side, what is gained and lost, the boundary, proposals."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import connection
from dashboard.clicked import now
from dashboard.formats import hours, moment, number, percent, waited
from dashboard.frame import Page, answer
from dashboard.palette import ACCENT, MUTED
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, table
from dashboard.template import draw
from dashboard.words import Words
from scheduler_advisor.running.run import RunState
from scheduler_advisor.whatif.proposals import proposals, save_proposal

if TYPE_CHECKING:
    from scheduler_advisor.running.run import Run

RATIOS = ("goodput", "fairness")
COUNTS = ("preemptions", "not_started")


def result_shown(page: Page, run: Run) -> None:
    """Everything that a run says; the boundary fills while it goes on."""
    result, words = run.result, page.words
    assert result is not None
    answer(_sentence(result, words), page, None, None)
    left, right = st.columns([5, 6], gap="large")
    with left:
        show(heading(words("whatif.side_by_side"), words("tag.modelled")))
        show(_table(result, words))
        downloads("whatif", _flat(result["rows"]), words)
    with right:
        show(heading(words("whatif.blocked_by_day"), words("tag.modelled")))
        draw(_daily(result, words), key="whatif_daily", height=250)
        show(heading(words("whatif.boundary"), words("whatif.boundary_hint")))
        show(_boundary(result, words))
        show(_left_out(result, words))
    if run.state is RunState.DONE:
        _save(page, run, result)


def _sentence(result: dict[str, Any], words: Words) -> str:
    saving = result["saving"]
    low, high = (hours(value) for value in saving["interval_80"])
    known = _graded(result["grade"], words)
    grade = words("whatif.grade", grade=known, jobs=f"{result['jobs']:,}")
    unchanged = result.get("policy") == result.get("policy_today")
    if unchanged and not result["gained"] and not result["lost"]:
        return f"{words('whatif.unchanged')} {grade}"
    gpus = result.get("gpus", {"today": 0, "candidate": 0})
    if gpus["today"] != gpus["candidate"]:
        return f"{_other_fleet(result, gpus, words)} {grade}"
    if saving["gpu_hours"] is None:
        return f"{words('whatif.range', low=low, high=high)} {grade}"
    key = "whatif.wins"
    if saving["gpu_hours"] < 0:
        key = "whatif.loses"
        low, high = (hours(-value) for value in reversed(saving["interval_80"]))
    return f"{words(key, hours=hours(abs(saving['gpu_hours'])), low=low, high=high)} {grade}"


def _other_fleet(result: dict[str, Any], gpus: dict[str, int], words: Words) -> str:
    """With other nodes, waits are compared: free GPUs of two fleets are no measure of either."""
    row = next(row for row in result["rows"] if row["measure"] == "mean_wait_s")
    before, after = (_value("mean_wait_s", row[name], words) for name in ("today", "candidate"))
    return words("whatif.other_nodes", gpus=f"{gpus['candidate']:,}", today=f"{gpus['today']:,}",
                 before=before, after=after)  # fmt: skip


def _graded(grade: str, words: Words) -> str:
    return words("whatif.ungraded") if grade == "none" else grade


def _table(result: dict[str, Any], words: Words) -> str:
    head = [words(f"whatif.{name}") for name in ("measure", "now", "candidate")]
    rows = "".join(
        f"<tr><td class='text'>{escape(words('whatif.m_' + row['measure']))}</td>"
        f"<td>{escape(_value(row['measure'], row['today'], words))}</td>"
        f"<td class='{_tone(row['better'])}'>"
        f"{escape(_value(row['measure'], row['candidate'], words))}</td></tr>"
        for row in result["rows"]
    )
    cells = "".join(f"<th{' class=text' if not place else ''}>{escape(text)}</th>"
                    for place, text in enumerate(head))  # fmt: skip
    return (
        f'<div class="whatif">{_chips(result, words)}<div class="scroll"><table class="rows">'
        f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div></div>"
    )


def _chips(result: dict[str, Any], words: Words) -> str:
    found = []
    for name in ("gained", "lost"):
        said = words(f"whatif.{name}")
        found += [f'<span class="{name}">{escape(said)}: {escape(words("whatif.m_" + each))}</span>'
                  for each in result[name]]  # fmt: skip
    return f'<div class="chips">{"".join(found) or escape(words("whatif.same"))}</div>'


def _tone(better: bool | None) -> str:
    return "" if better is None else "better" if better else "worse"


def _value(name: str, value: float, words: Words) -> str:
    if name.endswith("_s"):
        return waited(value, tuple(words(f"span.{u}") for u in ("days", "hours", "minutes")))  # type: ignore[arg-type]
    if name in RATIOS:
        return percent(value)
    if name in COUNTS:
        return f"{value:,.0f}"
    return hours(value) if name.endswith("gpu_hours") else number(value)


def _daily(result: dict[str, Any], words: Words) -> go.Figure:
    """GPU-hours a day that stood free while jobs waited, today and with the candidate."""
    daily = result["daily"]
    figure = go.Figure()
    for name, colour, dash in (("today", MUTED, "dot"), ("candidate", ACCENT, "solid")):
        label = words("whatif.now") if name == "today" else words("whatif.candidate")
        figure.add_scatter(y=daily[name], x=list(range(1, len(daily[name]) + 1)), name=label,
                           line={"color": colour, "dash": dash, "width": 2})  # fmt: skip
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.15})
    figure.update_xaxes(title=words("whatif.day"))
    figure.update_yaxes(title="GPU-h", rangemode="tozero", tickformat=",.0f")
    return figure


def _boundary(result: dict[str, Any], words: Words) -> str:
    columns = [Column(words("whatif.load"), text=True), Column("GPU-h"),
               Column(words("whatif.m_mean_wait_s"))]  # fmt: skip
    rows = [
        (f"× {row['load']:g}", number(row["gpu_hours"]),
         " → ".join(_value("x_s", wait, words) for wait in row["mean_wait_s"]))
        for row in result["boundary"]
    ]  # fmt: skip
    return table(columns, rows)


def _left_out(result: dict[str, Any], words: Words) -> str:
    """Which loads were not replayed, and what to set so that they are."""
    loads = ", ".join(f"× {load:g}" for load in result.get("loads_left_out", ()))
    text = words("whatif.loads_left_out", loads=loads) if loads else ""
    return f'<p class="hint">{escape(text)}</p>' if text else ""


def _flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("measure", "today", "candidate")} for row in rows]


def _save(page: Page, run: Run, result: dict[str, Any]) -> None:
    words = page.words
    cluster = run.cluster or ""
    with st.popover(words("whatif.save")):
        name = st.text_input(words("whatif.name"), key="whatif_name", max_chars=200)
        st.code(result["policy"], language="toml")
        if st.button(words("whatif.save"), key="whatif_save", disabled=not name.strip()):
            with connection.store_at(page.path).work() as work:
                save_proposal(work, cluster=cluster, name=name.strip(), actor="dashboard",
                              window=run.window, result=result, ts=now())  # fmt: skip
            st.rerun()


def proposals_table(page: Page, cluster: str) -> None:
    """What was saved so far, the newest first."""
    words = page.words
    with connection.store_at(page.path).work() as work:
        found = proposals(work, cluster)
    if not found:
        return
    show(heading(words("whatif.proposals")))
    columns = [
        Column(words("whatif.name"), text=True),
        Column(words("whatif.saved")),
        Column(words("whatif.m_blocked_gpu_hours")),
        Column(words("whatif.fidelity")),
    ]
    rows = []
    for each in found:
        low, high = each["result"]["saving"]["interval_80"]
        rows.append((each["name"], moment(each["ts"], page.view.zone),
                     f"{number(low)} – {number(high)} GPU-h",
                     _graded(each["result"]["grade"], words)))  # fmt: skip
    show(table(columns, rows))
