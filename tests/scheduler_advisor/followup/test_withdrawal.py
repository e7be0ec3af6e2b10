"""Last week's advice is withdrawn when the work has changed, and the report says what changed."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from analytics.ledger import ensure_built
from scheduler_advisor.calibration.grade import Grade
from scheduler_advisor.goals import Goals
from scheduler_advisor.messages import Words
from scheduler_advisor.not_resumable import NotResumable, StoppedJob
from scheduler_advisor.report.forms import rendered
from scheduler_advisor.report.html import report_html
from scheduler_advisor.report.json_form import report_json
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.report.wording import kind_name, reason_text
from scheduler_advisor.steps import replay_advice
from scheduler_advisor.window import Window

DAYS = 14
GOALS = Goals()


def numbers(jobs, account):
    """Of the workload, in the test's own words: arrivals a day, GPUs, run time, hours by team."""
    gpus = [job.gpus * job.nodes for job in jobs]
    return {
        "arrivals_per_day": len(jobs) / DAYS, "mean_gpus": statistics.mean(gpus),
        "median_run_s": statistics.median(job.run for job in jobs),
        "load": sum(g * job.run for g, job in zip(gpus, jobs, strict=True)) / (64 * DAYS * 86400),
        "team": account,
    }  # fmt: skip


def reported(store, window, replay):
    ensure_built(store, window)
    return make_report(store, window, GOALS, at=window.until, replays=[replay])


@pytest.fixture
def packing(written):
    """Two weeks of a site that spreads small jobs; its advice; and the work of two later weeks."""
    site = written.sites["packing"]
    jobs = written.play(written.arrivals(site, 77, DAYS), site.rules)
    written.jobs(jobs, days=DAYS, account="a")
    return jobs, Window(written.t0, written.t0 + timedelta(days=DAYS))


def test_a_replay_of_the_store_advises_what_the_fault_was_and_a_shift_withdraws_it(
    store, written, packing
):
    jobs, first = packing
    found = replay_advice(store, first, GOALS, "c")
    assert found.withheld is None
    assert found.diagnosis.leading == "packing"
    assert found.found.best[0].name in ("pack", "consolidate", "fgd")
    assert int(found.found.bench.past.judged.sum()) == len(jobs)
    assert found.withdrawn == ()
    report = reported(store, first, found)
    with store.work() as work, work.transaction():
        save_report(work, report)

    says_who_could_not_resume(store, first, found)

    # A quarter as many, all whole nodes, a fifth as long, of another team: nothing to pack.
    later = [replace(job, gpus=8, run=max(job.run // 5, 60), limit=max(job.limit // 5, 60),
                     cpus=48, start=None, held=[]) for job in jobs[::4]]  # fmt: skip
    later = written.play(later, written.sites["packing"].rules)
    written.jobs(later, day=DAYS, days=DAYS, account="b")
    second = Window(first.until, first.until + timedelta(days=DAYS))
    after = replay_advice(store, second, GOALS, "c")
    [gone] = after.withdrawn
    assert gone.subject == found.found.best[0].name
    was, now = numbers(jobs, "a"), numbers(later, "b")
    told = {each.what: (each.before, each.after) for each in gone.shifts}
    assert set(told) == {"arrivals_per_day", "mean_gpus", "median_run_s", "load", "teams"}
    for what in ("arrivals_per_day", "mean_gpus", "median_run_s", "load"):
        assert told[what] == pytest.approx((was[what], now[what]), rel=0.02), what
    assert told["teams"][1] == pytest.approx(1.0)
    second_report = reported(store, second, after)
    texts = [row["text"] for row in report_json(second_report)["not_recommended"]]
    [text] = [text for text in texts if "withdrawn" in text]
    for part in ("arrivals went from", "sizes went from", "run times went from", "load went from",
                 "100% of GPU-hours moved between teams"):  # fmt: skip
        assert part in text
    assert "거둡니다" in report_html(second_report, "ko")


def test_the_same_work_again_withdraws_nothing(store, written, packing):
    jobs, first = packing
    with store.work() as work, work.transaction():
        save_report(work, reported(store, first, replay_advice(store, first, GOALS, "c")))
    written.jobs(jobs, day=DAYS, days=DAYS, account="a")
    second = Window(first.until, first.until + timedelta(days=DAYS))
    again = replay_advice(store, second, GOALS, "c")
    assert again.withdrawn == ()
    assert Counter(each.name for each in again.found.best)


def fragmented(report):
    return [rec for rec in report.advice.recommendations if rec.kind == "fragmentation"]


def test_what_a_rule_adds_up_is_the_limit_of_what_the_replay_of_the_same_act_wins(store, packing):
    _, window = packing
    found = replay_advice(store, window, GOALS, "c")
    with_replay = reported(store, window, found)
    [rec] = fragmented(with_replay)
    [alone] = fragmented(make_report(store, window, GOALS, at=window.until))
    [pack] = [each for each in found.found.tried if each.name == "pack"]
    assert rec.saving.gpu_hours_low == pytest.approx(pack.hours.low)
    assert rec.saving.gpu_hours_high == pytest.approx(pack.hours.high)
    [most] = [each for each in rec.draft.figures if each.name == "rule_at_most"]
    # The limit is every start that could have been packed, asked for or not.
    could = alone.current_gpu_hours * alone.draft.params["avoidable"] / (DAYS / 7)
    assert (most.kind, most.value) == ("limit", pytest.approx(could, rel=1e-6))
    assert most.value >= alone.saving.gpu_hours > 0
    # The change of policy and the rule win the same hours: the sum is the larger of the two.
    assert with_replay.advice.joint.gpu_hours == pytest.approx(
        max(each.saving.gpu_hours for each in with_replay.advice.recommendations), rel=1e-6
    )
    assert "at most" in rendered(with_replay, "md").decode()


def test_a_rule_that_the_replay_of_the_same_act_does_not_bear_out_is_not_advised(store, packing):
    _, window = packing
    found = replay_advice(store, window, GOALS, "c")
    nothing = type(found.found.tried[0].hours)(-5.0, -9.0, -1.0)
    tried = tuple(
        replace(each, hours=nothing) if each.name == "pack" else each
        for each in found.found.tried
    )  # fmt: skip
    report = reported(store, window, replace(found, found=replace(found.found, tried=tried)))
    assert fragmented(report) == []
    [why] = [each for each in report.advice.not_recommended if each.kind == "fragmentation"]
    assert why.reason == "replay_wins_nothing"
    for language in ("en", "ko"):
        assert kind_name("fragmentation", Words(language)) in report_html(report, language)


def test_a_rule_whose_act_makes_others_wait_in_a_replay_is_not_advised(store, packing):
    _, window = packing
    found = replay_advice(store, window, GOALS, "c")
    found = replace(found, calibration=replace(found.calibration, grade=Grade.B))
    slow = [replace(each, found=replace(each.found, mean_wait_s=each.today.mean_wait_s * 2 + 9e5))
            if each.name == "pack" else each for each in found.found.tried]  # fmt: skip
    report = reported(store, window, replace(found, found=replace(found.found, tried=tuple(slow))))
    assert fragmented(report) == []
    [why] = [each for each in report.advice.not_recommended if each.kind == "fragmentation"]
    assert "everybody's mean wait" in reason_text(why, Words("en"))
    assert "모두의 평균 대기" in reason_text(why, Words("ko"))


def says_who_could_not_resume(store, window, found):
    """All forms of the report name the jobs, in both languages."""
    jobs = (StoppedJob("job-7", 8.0, 2, 96.5), StoppedJob("job-9", 1.0, 1, 3.25))
    unable = NotResumable(found.found.best[0].name, 2, 99.75, jobs)
    report = reported(store, window, replace(found, not_resumable=(unable,)))
    html, text = report_html(report), rendered(report, "md").decode()
    for form in (html, text):
        assert "2 jobs show no sign of resuming and would be left alone" in form
        assert "they would have lost 100 GPU-h" in form
        assert "job-7" in form
    assert "- `job-9`: GPUs 1, stops 1, GPU-h it would have lost 3.2" in text
    assert "이어서 실행한 흔적이 없어" in report_html(report, "ko")
    [told] = [rec["replay"]["not_resumable"] for rec in report_json(report)["recommendations"]
              if rec["replay"] and rec["replay"]["not_resumable"]]  # fmt: skip
    assert told["count"] == 2
    assert told["jobs"][0] == {
        "job_id": "job-7", "gpus": 8.0, "stops": 2, "lost_gpu_hours": 96.5,
    }  # fmt: skip
