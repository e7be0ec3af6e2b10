"""Fidelity and diagnosis: how far the replay can be trusted, and what holds the cluster back."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_advisor.advice.draft import FromReplay
from scheduler_advisor.calibration.calibrate import Calibration
from scheduler_advisor.calibration.grade import Ungraded
from scheduler_advisor.durations import duration_text
from scheduler_advisor.messages import Words
from scheduler_advisor.replayed import Replayed
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.html_measured import table
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.report.sureness import form
from scheduler_advisor.report.wording import hours_text
from scheduler_advisor.search.catalogue import said

HARMS = 6  # named; each team counts by itself


def replays(report: WeeklyReport, words: Words) -> Markup | None:
    """One block per cluster that was replayed."""
    blocks = [_one(each, words) for each in report.replays if each.calibration is not None]
    return join(*blocks) if blocks else None


def _one(each: Replayed, words: Words) -> Markup:
    return join(
        tag("h2", f"{words.say('diagnosis.title')} · {each.cluster}"),
        _diagnosis(each, words),
        tag("h3", words.say("fidelity.title")),
        tag("p", fidelity_line(each, words)),
        _marks(each, words),
        _mismatches(each, words),
        _tried(each, words),
    )


def fidelity_line(each: Replayed, words: Words) -> str:
    """One sentence: grade, policy, and the mean wait on both sides."""
    found = each.calibration
    if found is None:
        return words.say("fidelity.no_starts")
    if found.ungraded is not None or found.found is None:
        return ungraded_line(found, words)
    source = words.say(f"fidelity.{found.in_force.source}", count=len(found.tried))
    policy = f"{found.policy.order.value}, {found.policy.backfill.value}, "
    return words.say(
        "fidelity.line", grade=found.grade.value, policy=policy + found.policy.placement.value,
        source=source, replay=duration_text(found.found.replay_mean_wait_s),
        real=duration_text(found.found.real_mean_wait_s),
    )  # fmt: skip


def ungraded_line(found: Calibration, words: Words) -> str:
    """Why there is no grade, with what was counted."""
    reason, seen = found.ungraded or Ungraded.NO_STARTS, found.found
    if seen is None:
        return words.say(f"fidelity.{reason.value}")
    return words.say(
        f"fidelity.{reason.value}", jobs=seen.jobs, contested=seen.contested,
        real=duration_text(seen.real_mean_wait_s),
    )  # fmt: skip


def _diagnosis(each: Replayed, words: Words) -> Markup | None:
    if each.diagnosis is None:
        return tag("p", words.say("diagnosis.none"))
    name = words.say(f"cause_name.{each.diagnosis.leading.value}")
    items = [tag("li", text) for text in diagnosis_lines(each, words)]
    leading = words.say("diagnosis.leading", name=name)
    return join(
        tag("p", tag("b", leading), " ", tag("span", words.say("number.observed"), cls="k")),
        tag("ul", *items),
    )


def diagnosis_lines(each: Replayed, words: Words) -> list[str]:
    """Every cause with its measured value and where it begins to count."""
    assert each.diagnosis is not None
    lines = []
    for finding in each.diagnosis.findings:
        unit = finding.threshold.unit
        value, limit = (_text(v, unit, words) for v in (finding.value, finding.threshold.value))
        name = words.say(f"cause_name.{finding.bottleneck.value}")
        lines.append(words.say("diagnosis.line", name=name, value=value, limit=limit))
    return lines


def _text(value: float | None, unit: str, words: Words) -> str:
    if value is None:
        return words.say("diagnosis.unmeasured")
    return duration_text(value) if unit == "s" else f"{value:.1%}"


def tried_rows(each: Replayed, words: Words) -> list[tuple[str, str, str, str]]:
    """Change, range of GPU-hours a week, p95 wait, why not; where nothing is advised, else none."""
    if each.found is None or each.found.best:
        return []
    rows = sorted(each.found.tried, key=lambda one: -one.hours.point)[:8]
    return [
        (_names(one.name, words), f"{hours_text(one.hours.low)} – {hours_text(one.hours.high)}",
         duration_text(one.found.p95_wait_s),
         _harms(one.harms, words, words.say("replay.too_little")))
        for one in rows
    ]  # fmt: skip


def _tried(each: Replayed, words: Words) -> Markup | None:
    rows = tried_rows(each, words)
    if not rows:
        return None
    names = (("tried", False), ("interval", True), ("p95_wait_s", True), ("front", False))
    heads = [(words.say(f"replay.{name}"), number) for name, number in names]
    return join(tag("h3", words.say("replay.tried_title")), table(heads, rows))


def _marks(each: Replayed, words: Words) -> Markup | None:
    assert each.calibration is not None
    if not each.calibration.marks:
        return None
    heads = [(words.say(f"fidelity.{name}"), name == "value")
             for name in ("measure", "value", "grade", "limits")]  # fmt: skip
    rows = [
        (words.say(f"fidelity.{mark.measure}"), f"{mark.value:.3g}", mark.grade.value,
         " / ".join(f"{limit:g}" for limit in mark.limits))
        for mark in each.calibration.marks
    ]  # fmt: skip
    return table(heads, rows)


def _mismatches(each: Replayed, words: Words) -> Markup | None:
    assert each.calibration is not None
    lines = mismatch_lines(each, words)
    if not lines:
        return None
    items = [tag("li", line) for line in lines]
    return join(tag("h4", words.say("fidelity.worst")), tag("ul", *items))


def mismatch_lines(each: Replayed, words: Words) -> list[str]:
    """The largest differences with their likely causes."""
    assert each.calibration is not None
    return [
        words.say(
            "fidelity.of", queue=miss.fit.queue or words.say("phrase.no_queue"),
            size=miss.fit.size, jobs=miss.fit.jobs,
            replay=duration_text(miss.fit.replay_mean_s), real=duration_text(miss.fit.real_mean_s),
            cause=words.say(f"cause.{miss.cause.value}", evidence=miss.evidence),
        )
        for miss in each.calibration.mismatches[:3]
    ]  # fmt: skip


def shift_rows(own: FromReplay, words: Words) -> list[tuple[str, str, str]]:
    """Measure, today, after: gained and lost side by side."""
    rows = []
    for name, before, after in own.shifts:
        text = form(name)
        rows.append((words.say(f"replay.{name}"), text(before), text(after)))
    rows += [
        (words.say("replay.class_p95", name=each.name), duration_text(each.before_s),
         duration_text(each.after_s))
        for each in own.classes
    ]  # fmt: skip
    rows += [
        (words.say("replay.team_p95", name=each.name or "–"), duration_text(each.before_s),
         duration_text(each.after_s))
        for each in own.teams
    ]  # fmt: skip
    return rows


def shifts(own: FromReplay, words: Words) -> Markup:
    """The table of what was gained and lost, and what else was tried."""
    heads = [(words.say("replay.gained"), False), (words.say("replay.before"), True),
             (words.say("replay.after"), True)]  # fmt: skip
    names = (("replay.tried", False), ("replay.p95_wait_s", True), ("replay.front", False))
    tried_heads = [(words.say(name), number) for name, number in names]
    tried_heads.insert(1, ("GPU-h", True))
    tried = [
        (_names(row["name"], words), hours_text(row["gpu_hours"]),
         duration_text(row["p95_wait_s"]), _harms(row["harms"], words))
        for row in sorted(own.tried, key=lambda row: -row["gpu_hours"])[:8]
    ]  # fmt: skip
    return join(
        table(heads, shift_rows(own, words)), table(tried_heads, tried), _unable(own, words)
    )


def unable_line(own: FromReplay, words: Words) -> str | None:
    """Whom a change that stops jobs would have hit without the evidence that they resume."""
    if own.not_resumable is None:
        return None
    if not own.not_resumable.count:
        return words.say("replay.all_resume")
    return words.say("replay.unable", count=own.not_resumable.count,
                     hours=hours_text(own.not_resumable.lost_gpu_hours))  # fmt: skip


def unable_rows(own: FromReplay) -> list[tuple[str, str, str, str]]:
    """Job, GPUs, times stopped, GPU-hours lost, the dearest first."""
    found = own.not_resumable.jobs if own.not_resumable else ()
    return [
        (job.job_id, f"{job.gpus:g}", str(job.stops), hours_text(job.lost_gpu_hours))
        for job in found
    ]


def _unable(own: FromReplay, words: Words) -> Markup | None:
    rows = unable_rows(own)
    if not rows:
        return None
    heads = [(words.say(f"replay.{name}"), name != "job")
             for name in ("job", "gpus", "stops", "would_lose")]  # fmt: skip
    title = tag("h4", words.say("replay.unable_title"))
    return tag("div", title, tag("p", unable_line(own, words)), table(heads, rows))


def _harms(names: Sequence[str], words: Words, none: str = "–") -> str:
    rest = len(names) - HARMS
    told = [_harm(name, words) for name in names[:HARMS]]
    return ", ".join([*told, f"+{rest}"] if rest > 0 else told) or none


def _harm(name: str, words: Words) -> str:
    kind, _, team = name.partition(":")
    if team:
        return words.say("replay.team_p95", name=team)
    return words.say(f"replay.{kind}") if words.has(f"replay.{kind}") else kind


def _names(name: str, words: Words) -> str:
    parts = [(part, *said(part)) for part in name.split(" + ")]
    return " + ".join(
        words.say(f"change.{key}", **filled) if words.has(f"change.{key}") else part
        for part, key, filled in parts
    )
