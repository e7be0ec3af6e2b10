"""The Advice page: the newest report, and what people make of it."""

from __future__ import annotations

import pytest

from collector.store import Store
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.window import Window


@pytest.fixture
def own_store(site, tmp_path):
    """A small site of the test's own: states are written."""
    with Store.open(tmp_path / "site.duckdb", clock=lambda: site.UNTIL) as store:
        site.fill(store)
        yield store


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
    assert own_store.value("SELECT count(*) FROM advice_report") == 1


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
