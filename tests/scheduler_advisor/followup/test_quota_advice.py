"""Limits of teams from the store to the advice, the lines to apply, and what it really brought."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from analytics.ledger import ensure_built
from collector.slurm.settings import write_settings
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.followup.follow import judge
from scheduler_advisor.followup.verdict import Verdict
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.json_form import report_json
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.markdown import report_markdown
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.steps import diagnose, load, replay_advice
from scheduler_advisor.window import Window

DAYS = 28
SETTINGS = {
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_max_job_test=40",
    "SelectTypeParameters": "CR_Core",
    "PriorityType": "priority/basic",
    "AccountingStorageEnforce": "associations,limits,qos",
    "AccountingStorageTRES": "cpu,mem,gres/gpu",
}


def applied_at(ts):
    return StateChange(ts=ts, state=State.APPLIED, actor="ops", reason=None, until=None)


def limits(rules):
    return {f"account.{team}.GrpTRES": f"gres/gpu={gpus}" for team, gpus in rules.limits}


@pytest.fixture
def limited(store, written):
    """Four weeks under limits of teams, with the settings that the scheduler shows."""
    site = written.sites["quota"]
    jobs = written.play(written.arrivals(site, 11, DAYS), site.rules)
    written.jobs(jobs, days=DAYS)
    with store.work() as work:
        write_settings(work, "c", SETTINGS | limits(site.rules), written.t0)
    return site, Window(written.t0, written.t0 + timedelta(days=DAYS))


def test_advice_on_limits_is_named_handed_over_and_judged_by_what_followed(store, written, limited):
    site, window = limited
    found = replay_advice(store, window, Goals(), "c")
    assert found.diagnosis.leading == "quota"
    assert found.grade == "A"
    [best] = found.found.best
    assert best.name == "limits_wider"
    ensure_built(store, window)
    report = make_report(store, window, Goals(), at=window.until, replays=[found])
    [rec] = [rec for rec in report.advice.recommendations if rec.draft.kind == "policy_change"]
    says_what_it_is(report, rec)
    with store.work() as work, work.transaction():
        save_report(work, report)
        change_state(work, rec.id, applied_at(window.until))

    after = written.with_limits(site.rules, best.name)
    later = written.play(written.arrivals(site, 12, DAYS), after)
    written.jobs(later, day=DAYS, days=DAYS)
    with store.work() as work:
        # What the import sees an hour later is the advice that was applied, and no second change.
        write_settings(work, "c", SETTINGS | limits(after), window.until + timedelta(hours=1))
    [outcome] = judge(store, window.until + timedelta(days=DAYS))
    assert outcome.change.subject_id == rec.id
    assert outcome.found.enough
    assert outcome.found.low > 0
    assert best.hours.low <= outcome.found.gpu_hours <= best.hours.high
    assert outcome.verdict is Verdict.KEPT


def says_what_it_is(report, rec):
    """In words, in lines to apply, and in lines that undo them."""
    said = report_markdown(report, "en")
    assert "limits of teams" in said
    assert "raise every team's limit by half" in said
    assert "wait of team ml, p95" in said
    assert "owners_return" in json.dumps(report_json(report, "en"), default=str)
    assert "팀 한도" in report_markdown(report, "ko")
    assert rec.draft.commands["apply"].splitlines() == [
        "sacctmgr -i modify account bio set GrpTRES=gres/gpu=30",
        "sacctmgr -i modify account chem set GrpTRES=gres/gpu=36",
        "sacctmgr -i modify account ml set GrpTRES=gres/gpu=30",
    ]
    assert "set GrpTRES=gres/gpu=20" in rec.draft.commands["rollback"]


def test_the_schedulers_own_reasons_stand_for_limits_that_are_in_no_settings(store, written):
    site = written.sites["quota"]
    jobs = written.play(written.arrivals(site, 11, 14), site.rules)
    free = written.play(written.arrivals(site, 11, 14), site.fixed)
    held_back = [job.start > other.start + 60 for job, other in zip(jobs, free, strict=True)]
    for limited in (True, False):
        own = [job for job, held in zip(jobs, held_back, strict=True) if held is limited]
        written.jobs(own, days=14, reason="AssocGrpGRES" if limited else None)
    window = Window(written.t0, written.t0 + timedelta(days=14))
    loaded = load(store, window, "c")
    diagnosis = diagnose(loaded, Goals())
    assert diagnosis.leading == "quota"
    # The same from the limits themselves.
    with store.work() as work:
        write_settings(work, "c", SETTINGS | limits(site.rules), written.t0)
    by_rules = diagnose(load(store, window, "c"), Goals())
    assert by_rules.leading == "quota"
    assert by_rules.blocked.quota == pytest.approx(diagnosis.blocked.quota, rel=0.05)
