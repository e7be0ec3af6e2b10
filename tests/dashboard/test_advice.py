"""The Advice page: the newest report, and what people make of it."""

from __future__ import annotations

import re
import threading
import time
from datetime import timedelta

import pytest

from collector.store import Store
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.running.journal import declare_lost, note
from scheduler_advisor.running.run import Run
from scheduler_advisor.running.runs import close_runs, runs_of
from scheduler_advisor.window import Window


@pytest.fixture
def own_store(site, tmp_path):
    """A small site of the test's own: states are written."""
    with Store.open(tmp_path / "site.duckdb", clock=lambda: site.UNTIL) as store:
        site.fill(store)
        yield store
        close_runs(store)


@pytest.fixture
def reported(site, own_store):
    report = make_report(
        own_store, Window(site.SINCE, site.UNTIL), Goals(), at=site.UNTIL, cluster=None
    )
    with own_store.work() as work, work.transaction():
        save_report(work, report)
    return report


def page_of(open_page, store, **address):
    return open_page(store, "advice", **address)


def test_without_a_report_the_page_offers_to_make_one(own_store, open_page):
    page = page_of(open_page, own_store)
    assert "No report has been made yet" in page.text
    page.app.button(key="make").click().run()
    [run] = runs_of(own_store, lambda: None).running("advice") or [None]
    assert run is None or run.over.wait(60)
    page.app.run()
    assert not page.app.exception
    assert own_store.value("SELECT count(*) FROM advice_report") == 1


def test_overview_says_that_the_first_report_is_being_made(site, own_store, open_page):
    gate = threading.Event()

    def doing(run, _):
        gate.wait(60)
        return {}

    run = runs_of(own_store, lambda: site.UNTIL).begin(
        "advice", None, Window(site.SINCE, site.UNTIL), doing
    )
    page = open_page(own_store)
    assert "its changes will stand here" in page.text
    assert "No report has been made yet" not in page.text
    gate.set()
    assert run.over.wait(60)
    page.app.run()
    assert "No report has been made yet" in page.text  # this one brought none


def test_a_report_that_somebody_makes_is_seen_by_all_and_can_be_cancelled(
    site, own_store, reported, open_page
):
    gate = threading.Event()

    def doing(run, _):
        run.tell("changes", 3, 12)
        gate.wait(60)
        run.tell("report")
        return {}

    runs = runs_of(own_store, lambda: site.UNTIL)
    run = runs.begin("advice", None, Window(site.SINCE, site.UNTIL), doing)
    page = page_of(open_page, own_store)
    while run.done < 3:
        time.sleep(0.01)
    page.app.run()
    assert not [button for button in page.app.button if button.key == "make"]
    assert "Trying single changes 3 / 12" in str(page.app.get("progress")[0].proto)
    page.app.button(key="advice_cancel").click().run()
    gate.set()
    assert run.over.wait(10)
    page.app.run()
    assert page.app.info[0].value == "Cancelled; nothing was kept."
    assert [button for button in page.app.button if button.key == "make"]


def test_a_report_that_a_restart_lost_is_named_until_one_is_made(site, own_store, open_page):
    begun = site.UNTIL - timedelta(hours=1)
    run = Run("r", "advice", None, Window(site.SINCE, site.UNTIL), begun)
    with own_store.work() as work:
        note(work, run, begun)
        declare_lost(work, site.UNTIL)
    assert "was not finished, because the service ended" in page_of(open_page, own_store).text
    report = make_report(own_store, Window(site.SINCE, site.UNTIL), Goals(), at=site.UNTIL)
    with own_store.work() as work, work.transaction():
        save_report(work, report)
    assert "was not finished" not in page_of(open_page, own_store).text


def test_the_page_shows_each_change_with_its_four_answers(own_store, reported, open_page):
    page = page_of(open_page, own_store)
    titles = [rec for rec in reported.advice.recommendations if rec.open]
    assert len(titles) > 0
    assert page.text.count("What is wrong") == len(titles)
    for part in ("What to do", "What it brings", "What it risks"):
        assert page.text.count(part) == len(titles)
    assert "modelled" in page.text


def test_a_change_is_accepted_and_dismissed_with_a_reason(own_store, reported, open_page):
    name = next(rec.id for rec in reported.advice.recommendations if rec.open)
    page = page_of(open_page, own_store)
    page.app.button(key=f"accept-{name}").click().run()
    assert states(own_store) == [(name, "accepted", None)]
    page.app.button(key=f"dismiss-{name}").click().run()
    assert "needs a reason" in page.app.error[0].value
    page.app.text_input(key=f"reason-{name}").input("kept for exams").run()
    page.app.button(key=f"dismiss-{name}").click().run()
    assert states(own_store)[-1] == (name, "dismissed", "kept for exams")


def states(store):
    rows = store.rows(
        "SELECT recommendation_id, state, reason FROM recommendation_state ORDER BY ts"
    )
    return [(row["recommendation_id"], row["state"], row["reason"]) for row in rows]


def test_the_page_speaks_korean(own_store, reported, open_page):
    page = page_of(open_page, own_store, lang="ko")
    assert "무엇이 문제인가" in page.text
    assert "What is wrong" not in page.text
    name = next(rec.id for rec in reported.advice.recommendations if rec.open)
    page.app.button(key=f"dismiss-{name}").click().run()
    assert page.app.error[0].value.startswith("기각에는 이유가 필요합니다")


def test_overview_shows_the_three_best_of_the_report_and_what_is_dismissed_no_more(
    own_store, reported, open_page
):
    worth = [rec for rec in reported.advice.recommendations if rec.open and rec.saving.gpu_hours]
    assert worth
    markup = open_page(own_store).markup
    assert markup.count('class="best"') == min(3, len(worth))
    with own_store.work() as work:
        for rec in worth:
            change_state(
                work,
                rec.id,
                StateChange(
                    ts=reported.made_at, state=State.DISMISSED, actor="t", reason="no", until=None
                ),
            )
    page = open_page(own_store)
    assert 'class="best"' not in page.markup
    assert "The newest report finds nothing" in page.text


def test_the_same_prices_have_the_same_name_on_every_page(own_store, reported, open_page):
    names = {
        re.search(r"prices: (\w+)", open_page(own_store, name).text)[1]
        for name in ("overview", "teams", "advice")
    }
    assert len(names) == 1
