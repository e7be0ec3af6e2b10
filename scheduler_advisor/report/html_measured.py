"""The measurements: tables with the plots that show what the mean hides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler_advisor.durations import duration_text
from scheduler_advisor.measurements.waits import BUCKETS_S, WaitGroup
from scheduler_advisor.messages import Words
from scheduler_advisor.report import svg
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.report.wording import hours_text

MOST_ROWS = 12


def measurements(report: WeeklyReport, words: Words) -> Markup | None:
    """All of them, also when there is nothing to advise."""
    return join(
        tag("h2", words.say("report.measurements")),
        _waits(report, words),
        tag("div", _spread(report, words), _breakers(report, words), cls="two"),
        tag("div", _checkpoints(report, words), _repeats(report, words), cls="two"),
        tag("h2", words.say("report.distribution")),
        _distribution(report, words),
    )


def table(heads: Sequence[tuple[str, bool]], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; ``heads`` are (text, is a number)."""
    numeric = [number for _, number in heads]
    head = tag("tr", *(tag("th", text, cls="n" if number else None) for text, number in heads))
    body = [
        tag("tr", *(tag("td", cell, cls="n" if number else None)
                    for cell, number in zip(row, numeric, strict=True)))
        for row in rows
    ]  # fmt: skip
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), cls="scroll")


def _kind(words: Words, kind: str = "observed") -> Markup:
    return tag("span", words.say(f"number.{kind}"), cls="k")


def _command(report: WeeklyReport, what: str) -> Markup:
    since, until = (f"{at:%Y-%m-%dT%H:%MZ}" for at in (report.window.since, report.window.until))
    return tag(
        "p", tag("code", f"unstrand report {what} --since {since} --until {until}"), cls="sub"
    )


def _waits(report: WeeklyReport, words: Words) -> Markup:
    groups = sorted(report.measurements.wait_groups, key=lambda g: -g.waited_gpu_hours)[:MOST_ROWS]
    heads = [
        (words.say("report.queue"), False), (words.say("report.size"), False),
        *((words.say(f"report.{name}"), True) for name in ("jobs", "p50", "p95", "max")),
        (words.say("report.not_started"), True),
    ]  # fmt: skip
    rows = [
        (g.queue or "–", g.size or "–", f"{g.jobs:,}",
         *(duration_text(s) for s in (g.p50_s, g.p95_s, g.max_s)), f"{g.not_started:,}")
        for g in groups
    ]  # fmt: skip
    return join(
        tag("h3", words.say("report.waits"), " ", _kind(words)),
        tag("p", words.say("report.waits_note"), cls="sub"),
        tag("div", tag("div", table(heads, rows), _command(report, "waits --rows")),
            tag("div", _wait_hours(report.measurements.wait_hours, words)), cls="two"),
    )  # fmt: skip


def _wait_hours(groups: Sequence[WaitGroup], words: Words) -> Markup | None:
    by_hour = {group.hour: group.p95_s or 0.0 for group in groups}
    if not by_hour:
        return None
    label = f"{words.say('report.p95')} / {words.say('report.hour_of_day')}"
    values = [
        (str(hour), by_hour.get(hour, 0.0), duration_text(by_hour.get(hour))) for hour in range(24)
    ]
    return join(tag("p", label, cls="sub"), svg.columns(values, label, every=3, only_most=True))


def _spread(report: WeeklyReport, words: Words) -> Markup:
    spreads = report.measurements.spreads
    wide = sorted((run for run in spreads if run.spread), key=lambda r: -r.gpu_hours)
    total = sum(run.gpu_hours for run in spreads)
    text = (
        words.say("report.spread_some", runs=len(spreads), spread=len(wide),
                  hours=hours_text(sum(r.gpu_hours for r in wide)), total=hours_text(total))
        if wide
        else words.say("report.spread_none", runs=len(spreads))
    )  # fmt: skip
    unknown = spreads and all(run.heavy is None for run in spreads)
    heads = [
        (words.say("report.name"), False), (words.say("report.user"), False),
        (words.say("report.size"), True), (words.say("report.nodes"), True),
        (words.say("report.needed"), True), (words.say("report.leaves"), True),
        (words.say("report.needed"), True), (words.say("report.gpu_hours"), True),
    ]  # fmt: skip
    rows = [
        (r.name or r.job_id or "–", r.user_name or "–", r.gpus, r.nodes, r.nodes_needed,
         r.leaves if r.leaves is not None else "–",
         r.leaves_needed if r.leaves_needed is not None else "–", hours_text(r.gpu_hours))
        for r in wide[:MOST_ROWS]
    ]  # fmt: skip
    return tag(
        "div",
        tag("h3", words.say("report.spread"), " ", _kind(words)),
        tag("p", text, " ", words.say("report.comm_unknown") if unknown else None),
        table(heads, rows) if rows else None,
        _command(report, "spread --rows"),
    )


def _breakers(report: WeeklyReport, words: Words) -> Markup:
    found = report.measurements.breakers
    text = (
        words.say("report.breakers_some", broken=hours_text(found.broken_gpu_hours),
                  hurt=hours_text(found.hurt_gpu_hours))
        if found.broken_gpu_hours
        else words.say("report.breakers_none")
    )  # fmt: skip
    label = f"{words.say('report.broken')} / {words.say('report.hour_of_day')}"
    most = max(found.by_hour.values(), default=0.0)
    values = [
        (str(h), found.by_hour.get(h, 0.0), hours_text(found.by_hour.get(h, 0.0)))
        for h in range(24)
    ]
    heads = [
        (words.say("report.name"), False), (words.say("report.user"), False),
        (words.say("report.nodes"), False), (words.say("report.broken"), True),
        (words.say("report.hurt"), True),
    ]  # fmt: skip
    rows = [
        (b.name or b.job_id or "–", b.user_name or "–", b.node, hours_text(b.broken_gpu_hours),
         hours_text(b.hurt_gpu_hours))
        for b in found.breakers[:8]
    ]  # fmt: skip
    return tag(
        "div",
        tag("h3", words.say("report.breakers"), " ", _kind(words)),
        tag("p", text),
        join(tag("p", label, cls="sub"), svg.columns(values, label, every=3, only_most=True))
        if most
        else None,
        table(heads, rows) if rows else None,
        _command(report, "breakers --rows"),
    )


def _checkpoints(report: WeeklyReport, words: Words) -> Markup:
    classes = report.measurements.checkpoints
    dark = sum(entry.long_runs_without_marks for entry in classes)
    marked = [entry for entry in classes if entry.checkpoints]
    heads = [
        (words.say("report.name"), False), (words.say("report.user"), False),
        (words.say("report.runs"), True), (words.say("report.interval_h"), True),
        (words.say("report.write_h"), True), (words.say("report.restore_h"), True),
    ]  # fmt: skip
    rows = [
        (e.name or "–", e.user_name or "–", e.runs, duration_text(e.interval_s),
         duration_text(e.write_s), duration_text(e.restore_s))
        for e in marked[:MOST_ROWS]
    ]  # fmt: skip
    return tag(
        "div",
        tag("h3", words.say("report.checkpoints"), " ", _kind(words)),
        tag("p", words.say("report.checkpoints_unknown", count=dark)) if dark else None,
        table(heads, rows) if rows else None,
        _command(report, "checkpoints"),
    )


def _repeats(report: WeeklyReport, words: Words) -> Markup:
    found = report.measurements.repeats
    heads = [
        (words.say("report.name"), False), (words.say("report.user"), False),
        (words.say("report.runs"), True), (words.say("report.ratio"), True),
        (words.say("report.fast"), False), (words.say("report.slow"), False),
    ]  # fmt: skip
    rows = [
        (r.name, r.user_name or "–", len(r.runs), f"{r.ratio:.1f}x",
         f"{duration_text(r.runs[0].run_s)}: {', '.join(r.runs[0].node_names)}",
         f"{duration_text(r.runs[-1].run_s)}: {', '.join(r.runs[-1].node_names)}")
        for r in found[:MOST_ROWS]
    ]  # fmt: skip
    return tag(
        "div",
        tag("h3", words.say("report.repeats"), " ", _kind(words)),
        table(heads, rows) if rows else tag("p", words.say("report.repeats_none")),
    )


def _columns_or_none(
    columns: list[tuple[str, float, str]], label: str, words: Words
) -> tuple[Markup, ...]:
    """GPU-hours as columns; where nothing was measured that is said, and no zeros are drawn."""
    if not any(value for _, value, _ in columns):
        return (tag("p", words.say("report.unmeasured_hint")),)
    return tag("p", "GPU-h", cls="sub"), svg.columns(columns, label)


def _distribution(report: WeeklyReport, words: Words) -> Markup:
    found, summary = report.measurements, report.measurements.wait_summary
    whole = [duration_text(edge).replace(".0 ", " ") for edge in BUCKETS_S]
    names = [*(f"< {edge}" for edge in whole), f"≥ {whole[-1]}"]
    waits = [
        (name, float(count), f"{count:,}")
        for name, count in zip(names, found.wait_counts, strict=True)
    ]
    activity = [
        (f"≤ {share.high:.0%}", share.gpu_hours, hours_text(share.gpu_hours))
        for share in found.activity
    ]
    text = words.say(
        "report.mean_vs", mean=duration_text(summary.mean_s), p50=duration_text(summary.p50_s),
        p95=duration_text(summary.p95_s),
    )  # fmt: skip
    label = words.say("report.distribution_waits")
    other = words.say("report.distribution_activity")
    return tag(
        "div",
        tag("div", tag("h3", label, " ", _kind(words)), tag("p", text if summary.started else "–"),
            svg.columns(waits, label)),
        tag("div", tag("h3", other, " ", _kind(words)), *_columns_or_none(activity, other, words)),
        cls="two",
    )  # fmt: skip
