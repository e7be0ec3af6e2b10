"""The What-if page before anything was tried, and what it says of a finished run."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.parts import progress
from dashboard.whatif.ask import _pairs
from dashboard.whatif.result import _boundary, _left_out, _sentence, _table
from dashboard.words import Words
from scheduler_advisor.compiled import Compiling
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.window import Window

RESULT = {
    "grade": "B", "jobs": 3583,
    "saving": {"gpu_hours": 614.2, "interval_80": [220.0, 1207.0]},
    "rows": [
        {"measure": "mean_wait_s", "today": 4696.0, "candidate": 3573.0, "better": True},
        {"measure": "blast_gpus", "today": 7.2, "candidate": 7.8, "better": False},
    ],
    "gained": ["mean_wait_s"], "lost": ["blast_gpus"],
    "boundary": [{"load": 0.7, "gpu_hours": -3.0, "mean_wait_s": [10, 12]}],
}  # fmt: skip


@pytest.mark.parametrize(("lang", "text"), [("en", "Choose a policy"), ("ko", "정책을 골라")])
def test_the_page_says_what_to_do_before_anything_was_tried(open_page, site_store, lang, text):
    shown = open_page(site_store, "whatif", lang=lang)
    assert text in shown.text
    labels = [box.label for box in shown.app.selectbox]
    assert Words(lang)("whatif.placement") in labels


@pytest.mark.parametrize(("lang", "text"), [("en", "about 2 min"), ("ko", "약 2분")])
def test_on_a_fresh_machine_the_page_says_when_the_simulator_will_be_ready(
    open_page, site_store, monkeypatch, lang, text
):
    monkeypatch.setattr(sys.modules["dashboard.whatif.follow"], "simulator_is_warm", lambda: False)
    monkeypatch.setattr(progress, "compiling", lambda: Compiling(0.4, 130.0, "gang off"))
    shown = open_page(site_store, "whatif", lang=lang)
    assert "40%" in shown.text
    assert text in shown.text
    monkeypatch.setattr(progress, "compiling", lambda: None)
    assert Words(lang)("run.will_compile") in open_page(site_store, "whatif", lang=lang).text


def test_a_run_that_waits_for_the_compiler_shows_how_far_that_is(monkeypatch):
    monkeypatch.setattr(progress, "compiling", lambda: Compiling(0.4, 130.0, "gang off"))
    now = datetime(2026, 11, 2, tzinfo=UTC)
    run = Run("a", "whatif", "c", Window(now - timedelta(days=7), now), now)
    run.tell("compile", 40, 100)
    words = Words("en")
    assert progress.stage_text(run, words) == "Waiting for the compiler"
    assert "ready in about 2 min (now: gang off)" in progress.waiting_text(run, words)
    run.tell("replay", 2, 6)
    assert progress.stage_text(run, words) == "Replaying 2 / 6"
    assert progress.waiting_text(run, words) is None


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_result_says_point_interval_and_grade_or_only_the_range(lang):
    words = Words(lang)
    said = _sentence(RESULT, words)
    assert "614 GPU-h" in said
    assert "1,207 GPU-h" in said
    ranged = RESULT | {"grade": "D", "saving": RESULT["saving"] | {"gpu_hours": None}}
    assert "614" not in _sentence(ranged, words)
    assert "220 GPU-h" in _sentence(ranged, words)


def test_what_a_candidate_loses_is_told_as_a_loss_with_its_range():
    saving = {"gpu_hours": -2690.0, "interval_80": [-5094.0, -1018.0]}
    said = _sentence(RESULT | {"saving": saving}, Words("en"))
    assert "loses **2,690 GPU-h** a week (80%: 1,018 GPU-h to 5,094 GPU-h)" in said


@pytest.mark.parametrize(("lang", "text"), [("en", "not graded"), ("ko", "등급 없음")])
def test_a_result_without_a_grade_says_so_in_words(lang, text):
    bare = RESULT | {"grade": "none", "saving": RESULT["saving"] | {"gpu_hours": None}}
    assert text in _sentence(bare, Words(lang))
    assert "none" not in _sentence(bare, Words(lang))


def test_a_candidate_that_is_todays_policy_is_not_called_a_gain():
    same = RESULT | {"policy": "p", "policy_today": "p", "gained": [], "lost": []}
    assert _sentence(same, Words("en")).startswith("This is what happens today")
    assert "wins back" in _sentence(RESULT | {"policy": "p", "policy_today": "q"}, Words("en"))


def test_with_other_nodes_the_waits_are_compared_and_no_gpu_hours_are_won():
    fewer = RESULT | {"gpus": {"today": 128, "candidate": 64}}
    said = _sentence(fewer, Words("en"))
    assert said.startswith("With 64 GPUs instead of 128, jobs wait **59 min** on average instead")
    assert "wins back" not in said
    assert "GPU 128개 대신 64개" in _sentence(fewer, Words("ko"))


def test_gained_and_lost_are_told_by_text_and_not_by_colour_alone():
    words = Words("en")
    markup = _table(RESULT, words)
    assert "gained: Mean wait" in markup
    assert "lost: GPUs on the fullest node" in markup
    assert "-3.0" in _boundary(RESULT, words)


def test_loads_that_were_not_replayed_are_named_with_what_to_set():
    said = _left_out(RESULT | {"loads_left_out": [1.3]}, Words("en"))
    assert "Not replayed at × 1.3" in said
    assert "backfill.depth = 100" in said
    assert "× 1.3에서는" in _left_out(RESULT | {"loads_left_out": [1.3]}, Words("ko"))
    assert _left_out(RESULT | {"loads_left_out": []}, Words("en")) == ""
    assert _left_out(RESULT, Words("en")) == ""


def test_keys_are_read_line_by_line():
    assert _pairs('order = "priority"\n\nbackfill.depth=5\nnonsense') == {
        "order": "priority", "backfill.depth": "5", "nonsense": "",
    }  # fmt: skip


REFUSED = "policy: backfill.depth = x; must be a whole number"


@pytest.mark.parametrize(
    ("lang", "text"), [("en", REFUSED), ("ko", "backfill.depth = x: 정수여야 합니다")]
)
def test_a_run_that_was_refused_says_why_in_the_language_of_the_page(monkeypatch, lang, text):
    now = datetime(2026, 11, 2, tzinfo=UTC)
    run = Run("a", "whatif", "c", Window(now - timedelta(days=7), now), now)
    run.state, run.error = RunState.FAILED, REFUSED
    said = []
    monkeypatch.setattr(progress.st, "error", said.append)
    progress.ended(run, Words(lang))
    assert len(said) == 1
    assert text in said[0]
    assert said[0].startswith(Words(lang)("run.failed"))
