"""The first screen: what it comes to, where the time went, whether the numbers can be trusted."""

from __future__ import annotations

from scheduler_advisor.messages import Words
from scheduler_advisor.report import svg
from scheduler_advisor.report.colours import CLASS_STYLES
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.report.summary import headline_text, ranges_only, winnable_texts
from scheduler_advisor.report.wording import amount_text, hours_text, sentence

SHOWN = 0.0005  # a class below a twentieth of a percent would show as 0.0%
LOW_COVERAGE = 0.9  # below, one GPU-hour in ten is dark and every share may be off by as much


def header(report: WeeklyReport, words: Words) -> Markup:
    """Name, cluster, window, zone."""
    since, until = (
        report.window.local(report.window.since),
        report.window.local(report.window.until),
    )
    name = (
        words.say("report.cluster", name=report.cluster)
        if report.cluster
        else words.say("report.all_clusters")
    )
    demo = tag("span", words.say("report.demo"), cls="demo") if report.demo else None
    span = words.say(
        "report.window", since=f"{since:%Y-%m-%d %H:%M}", until=f"{until:%Y-%m-%d %H:%M}",
        zone=report.window.time_zone,
    )  # fmt: skip
    return tag(
        "header",
        tag("span", tag("strong", "unstrand"), f" · {words.say('report.title')} · {name}", demo),
        tag("span", span),
    )


def headline(report: WeeklyReport, words: Words) -> Markup:
    """One sentence that a manager reads, and what stands behind it where it is no number."""
    title = tag("h1", headline_text(report, words))
    if not report.enough:
        text = words.say("report.too_little_text", hours=report.accounted_hours)
        return join(title, tag("p", text, cls="sub"))
    if not report.advice.joint.gpu_hours:
        ranges = ranges_only(report)
        text = words.say("report.ranges_text" if ranges else "report.nothing_text")
        return join(title, tag("p", text, cls="sub"))
    return title


def tiles(report: WeeklyReport, words: Words) -> Markup:
    """Five numbers, each with its kind."""
    win, split = winnable_texts(report, words)
    coverage = "–" if report.coverage_ratio is None else f"{report.coverage_ratio:.1%}"
    gpu_hours = f"{hours_text(report.installed_gpu_hours)} GPU-h"
    entries = (
        ("cost", amount_text(report.cost, report.currency), gpu_hours, "observed"),
        ("used", *_measured(report, words, "used"), "observed"),
        ("idle", *_measured(report, words, "idle"), "observed"),
        ("coverage", coverage, words.say("report.coverage_hint"), "observed"),
        ("winnable", win, split, "modelled"),
    )  # fmt: skip
    return tag("div", *(_tile(entry, words) for entry in entries), cls="tiles")


def _measured(report: WeeklyReport, words: Words, name: str) -> tuple[str, str]:
    """A share with its hint; a dash where activity was measured at no time: that is no zero."""
    if not report.share("used", "lost", "allocated_idle"):
        return "–", words.say("report.unmeasured_hint")
    share = report.share({"idle": "allocated_idle"}.get(name, name))
    return f"{share:.0%}", words.say(f"report.{name}_hint")


def _tile(entry: tuple[str, str, str, str], words: Words) -> Markup:
    name, value, hint, kind = entry
    said = words.say(f"number.{kind}")
    return tag(
        "div",
        tag("span", words.say(f"report.{name}"), " ", tag("span", said, cls="k"), cls="name"),
        tag("b", value),
        tag("span", hint, cls="hint"),
        cls="tile win" if name == "winnable" else "tile",
    )


def where(report: WeeklyReport, words: Words) -> Markup | None:
    """The classes as one bar with a legend that says the same in text."""
    if not report.installed_gpu_hours:
        return None
    by_name = {entry.name: entry for entry in report.classes}
    shares = [
        (name, by_name[name].gpu_hours / report.installed_gpu_hours, by_name[name])
        for name in CLASS_STYLES
        if by_name[name].gpu_hours >= SHOWN * report.installed_gpu_hours
    ]
    bar = svg.stacked_bar(
        [(name, share, f"{words.say(f'class.{name}')}: {share:.1%}, "
          f"{hours_text(entry.gpu_hours)} GPU-h") for name, share, entry in shares],
        words.say("report.where"),
    )  # fmt: skip
    legend = [
        tag("span", svg.swatch(name), words.say(f"class.{name}"), " ",
            tag("b", f"{share:.1%}"), f" {amount_text(entry.cost, report.currency)}")
        for name, share, entry in shares
    ]  # fmt: skip
    return join(bar, tag("div", *legend, cls="legend"))


def quality(report: WeeklyReport, words: Words) -> Markup | None:
    """Whether the numbers can be trusted, before any of them is used."""
    if not report.enough:
        return None
    coverage = report.coverage_ratio if report.coverage_ratio is not None else 0.0
    first = [rec for rec in report.advice.recommendations if rec.draft.first and rec.open]
    low = " low" if coverage < LOW_COVERAGE else ""
    if not first:
        fine = words.say("report.quality_fine", coverage=coverage)
        return tag("div", tag("b", words.say("report.quality")), " ", fine, cls=f"quality{low}")
    links = [
        tag("a", sentence(rec, "title", report.currency, words), href=f"#{rec.id}") for rec in first
    ]
    listed = [piece for link in links for piece in (" · ", link)]
    known = f" {words.say('report.coverage')}: {coverage:.1%}"
    return tag("div", tag("b", words.say("report.quality")), known, *listed, cls=f"quality{low}")
