"""What `unstrand calibrate` does, apart from its options: only it loads the compiler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from scheduler_advisor.calibration.calibrate import Calibration, calibrate
from scheduler_advisor.calibration.in_force import stored_settings
from scheduler_advisor.messages import Words
from scheduler_advisor.past import Past, past_of
from scheduler_advisor.readers.fleet import read_fleet
from scheduler_advisor.readers.seen import limited
from scheduler_advisor.readers.store import read_history
from scheduler_advisor.replayed import Replayed
from scheduler_advisor.report.html_replay import fidelity_line, mismatch_lines
from scheduler_advisor.report.replay_json import calibration_json
from scheduler_advisor.window import parse_duration
from scheduler_advisor.workers import Inline, Processes
from unstrand.commands.progress import counting
from unstrand.commands.replay_source import ReplaySource, known_cluster, replay_input
from unstrand.commands.source import opened

FEW = 20_000  # jobs below which processes cost more than they bring


def calibrated_lines(source: ReplaySource, *, as_json: bool, language: str) -> Iterator[str]:
    """The calibration for people, or as one JSON document."""
    past, settings = _past(source)
    words = Words(language)
    with counting() as tell, Processes(2) as processes:
        workers = Inline() if len(past.jobs) < FEW else processes
        found = calibrate(
            past, settings, workers=workers,
            progress=lambda done, total: tell("policies", done, total),
        )  # fmt: skip
    if as_json:
        yield json.dumps({"rows": [], **calibration_json(found, words)}, indent=1)
        return
    yield from _lines(found, words)


def _past(source: ReplaySource) -> tuple[Past, dict[str, str]]:
    if source.window is None:
        found = replay_input(source)
        return past_of(found.read, found.cluster, name=found.fleet), {}
    length = parse_duration(source.window)
    with opened(source.db) as store:
        name, until = known_cluster(store, source.cluster)
        since = until - length
        history = read_history(store, name, since, until)
        settings = stored_settings(store, name, until)
        cluster = history.cluster if source.fleet is None else read_fleet(source.fleet)
        past = past_of(
            history.read, cluster, since=int(since.timestamp()) - history.origin_s,
            until=int(until.timestamp()) - history.origin_s, origin_s=history.origin_s, name=name,
        )  # fmt: skip
        return replace(past, by_limit=limited(store, name, past.jobs)), settings


def _lines(found: Calibration, words: Words) -> Iterator[str]:
    shown = Replayed(cluster=found.past.name, calibration=found)
    yield fidelity_line(shown, words)
    for remark in found.in_force.remarks:
        yield f"  {remark}"
    for mark in found.marks:
        limits = " / ".join(f"{limit:g}" for limit in mark.limits)
        yield f"  {mark.grade.value}  {mark.value:8.3f}  {words.say(f'fidelity.{mark.measure}')}"
        yield f"              {words.say('fidelity.limits')} {limits}: {mark.reason}"
    lines = mismatch_lines(shown, words)
    if lines:
        yield words.say("fidelity.worst")
        yield from (f"  {line}" for line in lines)
