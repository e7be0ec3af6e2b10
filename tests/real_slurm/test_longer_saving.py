"""Ten days on a real Slurm without a memory default, the advice, its snippet, nine days after it.

A minute of the lab is a day of the report (`compressed`). What that Slurm's accounting said is kept
in `recorded`: from it the graded report is made and compared with the golden files anywhere; the
proof plays all of it again on a Slurm of its own.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from analytics.ledger import ensure_built
from collector.slurm.importer import import_files
from collector.slurm.settings import write_settings
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.followup.follow import judge
from scheduler_advisor.followup.verdict import Verdict
from scheduler_advisor.goals import Goals
from scheduler_advisor.handover.make import for_change
from scheduler_advisor.handover.site import Beside, site_of
from scheduler_advisor.handover.steps import Scheduler
from scheduler_advisor.messages import LANGUAGES
from scheduler_advisor.report.forms import rendered
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.steps import replay_all
from scheduler_advisor.window import Window

KEPT = Path(__file__).with_name("recorded")
BEFORE, BETWEEN, AFTER = 10, 1, 9  # days
KIND = "whole_node_memory"


@dataclass(frozen=True)
class Played:
    """What Slurm said before the change and after it, and when that was made (stretched)."""

    before: object
    after: object
    changed: datetime


def taken_in(store, said, folder, span, seen):
    """The facts of the span, with the settings as they were ``seen`` at that instant."""
    origin, until = span
    paths = said.write(folder)
    import_files(store, "lab", **paths, now=until, since=origin, until=until)
    with store.work() as work, work.transaction():
        write_settings(work, "lab", said.settings, seen)
    ensure_built(store, Window(origin, until, "UTC"))


def report_before(store, said, folder, compressed):
    """The report on the days before the change."""
    until = compressed.ORIGIN + timedelta(days=BEFORE)
    taken_in(store, said, folder, (compressed.ORIGIN, until), compressed.ORIGIN)
    window = Window(compressed.ORIGIN, until, "UTC")
    replays = replay_all(store, window, Goals())
    return make_report(store, window, Goals(), at=until, cluster="lab", replays=replays)


def outcome(store, report, played, folder, compressed):
    """The judgement of the applied advice at the end of the days after it."""
    [rec] = [each for each in report.advice.recommendations if each.kind == KIND]
    applied = StateChange(
        ts=played.changed, state=State.APPLIED, actor="operator", reason=None, until=None
    )
    with store.work() as work, work.transaction():
        save_report(work, report)
        change_state(work, rec.id, applied)
    end = compressed.ORIGIN + timedelta(days=BEFORE + BETWEEN + AFTER)
    taken_in(store, played.after, folder, (compressed.ORIGIN, end), played.changed)
    [found] = [each for each in judge(store, end) if each.change.subject_id == rec.id]
    return rec, found


def handed_over(lab, store, rec):
    """The advice's own snippet, made from the Slurm's own file."""
    with store.work() as work:
        files = {"slurm.conf": (lab.folder / "slurm.conf").read_text()}
        facts = site_of(work, "lab", rec.expires_at, files)
    mib = rec.draft.params["per_gpu_gib"] * 1024
    made = for_change(Scheduler.SLURM, Policy(), Policy(), facts, Beside(mem_mib_per_gpu=mib))
    assert f"+DefMemPerGPU={mib}" in rec.draft.commands["apply"]
    return made


def judged(rec, found):
    """The promise, the verdict, and what was won: inside the interval."""
    assert rec.saving.gpu_hours > 0
    assert found.found.days_before >= 7
    assert found.found.days_after >= 7
    assert found.verdict is Verdict.KEPT
    assert rec.saving.gpu_hours_low <= found.found.gpu_hours <= rec.saving.gpu_hours_high


def figures(report, rec, found):
    """What the proof keeps."""
    return {
        "days_before": found.found.days_before, "days_after": found.found.days_after,
        "promised": rec.saving.gpu_hours, "low": round(rec.saving.gpu_hours_low, 1),
        "high": round(rec.saving.gpu_hours_high, 1), "realised": found.found.gpu_hours,
        "load_shift": round(found.found.load_shift, 3), "verdict": found.verdict.value,
        "grade": report.replays[0].grade.value,
    }  # fmt: skip


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.skipif(
    os.environ.get("UNSTRAND_PROVE") != "1",
    reason="twenty minutes of a real Slurm, which `make prove` plays; the recording is judged here",
)
@pytest.mark.timeout(2400)
def test_the_saving_of_nine_days_on_a_real_slurm_lies_inside_the_interval(
    make_slurm_lab, apply_steps, compressed, store, tmp_path, record_proof
):
    lab = make_slurm_lab(DefMemPerCPU=None)
    day = compressed.DAY_S
    began = compressed.play(lab, compressed.jobs_of(0, BEFORE, seed=1), BEFORE * day)
    before = compressed.recorded(lab, began)
    report = report_before(store, before, tmp_path / "before", compressed)
    [rec] = [each for each in report.advice.recommendations if each.kind == KIND]
    apply_steps(lab, handed_over(lab, store, rec))
    changed = time.time()
    time.sleep(max(0.0, began + (BEFORE + BETWEEN) * day - changed))
    compressed.play(lab, compressed.jobs_of(BEFORE + BETWEEN, AFTER, seed=2), (AFTER + 0.7) * day)
    played = Played(before, compressed.recorded(lab, began), compressed.at(began, changed))
    if not KEPT.exists():
        before.write(KEPT / "before")
        played.after.write(KEPT / "after")
        (KEPT / "changed.txt").write_text(played.changed.isoformat(timespec="seconds") + "\n")
        pytest.fail(f"{KEPT} was not there and has been written: read it, then commit it")
    rec, found = outcome(store, report, played, tmp_path / "after", compressed)
    record_proof("slurm_saving_again", **figures(report, rec, found))
    judged(rec, found)


@pytest.fixture
def kept(compressed):
    """What the real Slurm said when the files were made."""
    said = {name: compressed.Recorded.read(KEPT / name) for name in ("before", "after")}
    changed = datetime.fromisoformat((KEPT / "changed.txt").read_text().strip())
    return Played(said["before"], said["after"], changed)


def test_the_graded_report_of_a_real_slurm_is_what_was_read(
    kept, store, compressed, tmp_path, outline
):
    report = report_before(store, kept.before, tmp_path, compressed)
    forms = {"slurm.json": rendered(report, "json"), "slurm.md": rendered(report, "md")}
    for language in LANGUAGES:
        page = outline(rendered(report, "html", language).decode())
        forms[f"slurm_{language}.html.txt"] = page.encode()
    missing = [name for name in forms if not (KEPT / name).exists()]
    for name in missing:
        (KEPT / name).write_bytes(forms[name])
    if missing:
        pytest.fail(f"{missing} were not there and have been written: read them, then commit them")
    for name, content in forms.items():
        assert content.decode() == (KEPT / name).read_text("utf-8"), name
    [replay] = report.replays
    assert replay.calibration.in_force.source == "settings"
    assert replay.grade.promises


def test_the_saving_that_was_kept_lies_inside_the_interval(
    kept, store, compressed, tmp_path, record_proof
):
    report = report_before(store, kept.before, tmp_path / "before", compressed)
    rec, found = outcome(store, report, kept, tmp_path / "after", compressed)
    record_proof("slurm_saving", **figures(report, rec, found))
    judged(rec, found)
