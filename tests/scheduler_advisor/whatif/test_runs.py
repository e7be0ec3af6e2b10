"""A what-if runs beside everything else, tells how far it is, and stops when asked."""

from __future__ import annotations

import operator
import os
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from collector.model import Allocation, FactWindow, JobRun, Node
from scheduler_advisor.crew import Crew
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.whatif.proposals import proposals, save_proposal
from scheduler_advisor.whatif.runs import Runs
from scheduler_advisor.whatif.wish import Wish, WishError
from scheduler_advisor.window import Window
from scheduler_advisor.workers import CancelledError, Processes

T0 = datetime(2026, 10, 5, tzinfo=UTC)
WINDOW = Window(T0, T0 + timedelta(days=14))
SAME = {"cluster": "c", "source": "test"}


@pytest.fixture
def site(store):
    """Two nodes; one-GPU jobs spread over them, and whole-node jobs that wait."""
    facts = [Node(node=f"n{n}", gpus=8, gpu_model="A100", valid_from=T0, **SAME) for n in (1, 2)]
    facts.append(FactWindow(kind="scheduler", since=T0, until=WINDOW.until, **SAME))
    for number in range(160):
        submit = T0 + timedelta(hours=2 * number)
        whole = number % 8 == 7
        start = submit + timedelta(hours=6 if whole else 0)
        end = start + timedelta(hours=9 if not whole else 5)
        gpus, node = (8, "n1") if whole else (1, f"n{number % 2 + 1}")
        facts.append(
            JobRun(run_id=f"{number}.1", job_id=str(number), attempt=1, submit_at=submit,
                   start_at=start, end_at=end, gpus=gpus, state="COMPLETED", limit_s=40_000,
                   account="a", user_name="u", **SAME)
        )  # fmt: skip
        facts.append(Allocation(run_id=f"{number}.1", node=node, gpus=gpus, share_num=1,
                                share_den=1, start_at=start, end_at=end, **SAME))  # fmt: skip
    with store.work() as work, work.transaction():
        work.append_facts(facts)
    return store


@pytest.fixture
def crowd():
    """Runs with one process; it ends with the test."""
    found = Runs(workers=1)
    yield found
    found.close()


def finished(run, timeout_s=400):
    until = time.monotonic() + timeout_s
    while run.state == "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    return run


def test_today_and_a_candidate_stand_side_by_side(site, crowd):
    run = finished(crowd.start(site, WINDOW, "c", Wish(values=(("backfill", "none"),))))
    assert run.error is None
    result = run.result
    assert (run.done, run.total) == (6, 6)
    measures = {row["measure"] for row in result["rows"]}
    assert {"blocked_gpu_hours", "mean_wait_s", "p95_wait_s", "goodput"} <= measures
    assert [row["load"] for row in result["boundary"]] == [0.7, 1.0, 1.3]
    assert len(result["daily"]["today"]) == 14
    assert 'kind = "none"' in result["policy"]
    again = finished(crowd.start(site, WINDOW, "c", Wish(values=(("backfill", "none"),))))
    assert again.result == result
    with site.work() as work:
        name = save_proposal(work, cluster="c", name="no backfill", actor="me", window=WINDOW,
                             result=result, ts=T0)  # fmt: skip
        [kept] = proposals(work, "c")
    assert (kept["proposal_id"], kept["result"]["grade"]) == (name, result["grade"])


def test_a_wish_that_makes_no_sense_is_refused_in_words(site, crowd):
    with pytest.raises(WishError, match="load"):
        crowd.start(site, WINDOW, "c", Wish(load=99))
    run = finished(crowd.start(site, WINDOW, "c", Wish(values=(("order", "wrong"),))))
    assert run.state == "failed"
    assert "order = wrong" in run.error
    short = Window(T0, T0 + timedelta(days=2))
    assert "short_window" in finished(crowd.start(site, short, "c", Wish())).error


def test_a_cancelled_run_keeps_nothing(site, crowd):
    run = crowd.start(site, WINDOW, "c", Wish())
    assert crowd.cancel(run.run_id)
    assert finished(run).state == "cancelled"
    assert run.result is None
    assert not crowd.cancel("unknown")


def test_work_of_one_does_not_wait_for_that_of_another():
    crew = Crew(2)
    try:
        list(crew.each(time.sleep, operator.call, [0.0, 0.0]))  # both processes are there
        slow = threading.Thread(target=lambda: list(crew.each(time.sleep, operator.call, [8.0])))
        slow.start()
        assert list(crew.each(abs, operator.call, [-1])) == [(-1, 1)]
        assert slow.is_alive()
        slow.join()
    finally:
        crew.close()


def test_an_error_of_a_process_is_the_callers_and_a_dead_one_is_told():
    with Processes(1) as processes:
        with pytest.raises(TypeError):
            list(processes.each("a", operator.add, [1]))
        with pytest.raises(AdvisorError, match="died"):
            list(processes.each(os._exit, operator.call, [3]))
        with pytest.raises(CancelledError):
            list(processes.each("a", operator.add, ["b"], lambda: True))
        assert list(processes.each("a", operator.add, ["b"])) == [("b", "ab")]
