"""A what-if runs beside everything else, tells how far it is, and stops when asked."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from collector.model import JobRun
from scheduler_advisor.compiled import load_simulator
from scheduler_advisor.crew import Crew
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.messages import Words
from scheduler_advisor.running import runs as runs_module
from scheduler_advisor.running.journal import declare_lost, last_run, past_runs
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.running.runs import Runs
from scheduler_advisor.search.bench import Trial
from scheduler_advisor.whatif.compare import loads_tried, trials
from scheduler_advisor.whatif.proposals import proposals, save_proposal
from scheduler_advisor.whatif.try_out import start_whatif
from scheduler_advisor.whatif.wish import Wish, WishError
from scheduler_advisor.window import Window
from scheduler_advisor.workers import CancelledError, Processes

_spec = importlib.util.spec_from_file_location(
    "waiting_site", Path(__file__).parents[2] / "waiting_site.py"
)
waiting_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(waiting_site)
T0 = waiting_site.T0
WINDOW = Window(T0, waiting_site.UNTIL)


@pytest.fixture
def site(store):
    """Two nodes; one-GPU jobs spread over them, and whole-node jobs that wait."""
    waiting_site.fill(store)
    return store


@pytest.fixture
def crowd(site):
    """Runs with one process; it ends with the test."""
    ticks = itertools.count()
    found = Runs(site, lambda: T0 + timedelta(seconds=next(ticks)), workers=1)
    yield found
    found.close()


def finished(run, timeout_s=400):
    assert run.over.wait(timeout_s)
    return run


def test_today_and_a_candidate_stand_side_by_side(site, crowd):
    run = finished(start_whatif(crowd, WINDOW, "c", Wish(values=(("backfill", "none"),))))
    assert run.error is None
    result = run.result
    assert (run.done, run.total) == (6, 6)
    measures = {row["measure"] for row in result["rows"]}
    assert {"blocked_gpu_hours", "mean_wait_s", "p95_wait_s", "goodput"} <= measures
    assert [row["load"] for row in result["boundary"]] == [0.7, 1.0, 1.3]
    assert len(result["daily"]["today"]) == 14
    assert 'kind = "none"' in result["policy"]
    assert run.answered.is_set()
    again = finished(start_whatif(crowd, WINDOW, "c", Wish(values=(("backfill", "none"),))))
    assert again.result == result
    with site.work() as work:
        name = save_proposal(work, cluster="c", name="no backfill", actor="me", window=WINDOW,
                             result=result, ts=T0)  # fmt: skip
        [kept] = proposals(work, "c")
    assert (kept["proposal_id"], kept["result"]["grade"]) == (name, result["grade"])


def test_the_answer_comes_before_other_loads_and_is_taken_back_with_the_run(
    site, crowd, monkeypatch
):
    seen, tell = [], Run.tell

    def told(run, stage, done=0, total=0):
        seen.append((done, run.result and [row["load"] for row in run.result["boundary"]]))
        if stage == "replay" and done == 4:
            run.stop.set()
        tell(run, stage, done, total)

    monkeypatch.setattr(Run, "tell", told)
    run = finished(start_whatif(crowd, WINDOW, "c", Wish(values=(("placement", "first-fit"),))))
    assert {tuple(loads) for _, loads in seen if loads} == {(1.0,)}
    assert run.state is RunState.CANCELLED
    assert run.result is None


def test_a_wish_that_makes_no_sense_is_refused_in_words(site, crowd):
    with pytest.raises(WishError, match="load"):
        start_whatif(crowd, WINDOW, "c", Wish(load=99))
    run = finished(start_whatif(crowd, WINDOW, "c", Wish(values=(("order", "wrong"),))))
    assert run.state == "failed"
    assert "order = wrong" in run.error
    short = Window(T0, T0 + timedelta(days=2))
    withheld = finished(start_whatif(crowd, short, "c", Wish()))
    assert withheld.error.startswith("The window holds 2 days; a replay needs a week")
    assert "2일" in withheld.withheld.said(Words("ko"))


def test_a_cancelled_run_keeps_nothing(site, crowd):
    run = start_whatif(crowd, WINDOW, "c", Wish())
    assert crowd.cancel(run.run_id)
    assert finished(run).state == "cancelled"
    assert run.result is None
    assert not crowd.cancel("unknown")


def test_what_ran_and_how_it_ended_is_in_the_store(site, crowd):
    finished(crowd.begin("advice", "c", WINDOW, lambda run, _: {"a": 1}))

    def fails(run, _):
        raise AdvisorError("too little is known")

    finished(crowd.begin("advice", None, WINDOW, fails))
    with site.work() as work:
        rows = {row["kind"]: row for row in past_runs(work)}
        assert last_run(work, "advice")["error"] == "too little is known"
        assert declare_lost(work, T0) == []
        assert len(past_runs(work)) == 2
    assert set(rows) == {"advice"}


def test_what_a_service_left_running_is_called_lost_by_the_next_one(site, crowd):
    hold = threading.Event()
    run = crowd.begin("advice", "c", WINDOW, lambda *_: {"held": hold.wait(60)})
    with site.work() as work:
        later = T0 + timedelta(days=1)
        assert [row["run_id"] for row in declare_lost(work, later)] == [run.run_id]
        assert last_run(work, "advice")["state"] == "lost"
        assert declare_lost(work, later) == []
    hold.set()
    finished(run)


def test_how_far_it_is_grows_from_stage_to_stage_and_cluster_to_cluster():
    run = Run("a", "advice", None, WINDOW, T0, parts=2)
    shares = []
    for part in (0, 1):
        run.part = part
        for stage in ("read", "calibrate", "changes", "pairs", "whole", "boundary"):
            for done in (0, 1, 3):
                run.tell(stage, done, 3)
                shares.append(round(run.share, 9))
    assert shares == sorted(shares)
    assert shares[-1] < 1
    run.state = RunState.DONE
    assert run.share == 1
    run.stop.set()
    with pytest.raises(CancelledError):
        run.tell("report")


@pytest.mark.parametrize(
    ("jobs", "keys", "loads"),
    [
        (20_001, {"backfill": "conservative"}, (0.7,)),
        (20_001, {"backfill": "conservative", "backfill.depth": "100"}, (1.3, 0.7)),
        (20_001, {"backfill": "easy"}, (1.3, 0.7)),
        (20_000, {"backfill": "conservative"}, (1.3, 0.7)),
    ],
)
def test_in_a_long_history_a_plan_for_all_is_not_tried_under_more_load(jobs, keys, loads):
    past = SimpleNamespace(jobs=range(jobs))
    base, candidate = Trial(Policy()), Trial(Policy().with_values(keys))
    assert loads_tried(base, candidate, past) == loads
    assert len(trials(base, candidate, past)) == 2 + 2 * len(loads)


@pytest.mark.parametrize("work", [operator.is_, operator.add], ids=["fine", "it fails"])
def test_processes_are_made_ready_once_and_work_afterwards(work):
    crew = Crew(2)
    try:
        crew.ready(work)  # None is None; None + None is an error
        assert sorted(crew.each(abs, operator.call, [-1, 2])) == [(-1, 1), (2, 2)]
        assert all(process.begun for process in crew._all)
        crew.ready(work)
        assert any(process.holds(abs) for process in crew._all), "the input is not taken from them"
    finally:
        crew.close()


def test_the_processes_of_a_whatif_load_the_simulator_before_it_reads(crowd, monkeypatch):
    asked = []

    def ready(_, work):
        asked.append(work)
        raise CancelledError("seen")

    monkeypatch.setattr(Crew, "ready", ready)
    run = finished(start_whatif(crowd, WINDOW, "c", Wish()))
    assert (asked, run.state) == ([load_simulator], RunState.CANCELLED)


def test_one_who_comes_later_has_its_turn_after_one_item_of_each():
    crew = Crew(1)
    try:
        list(crew.each(time.sleep, operator.call, [0.0]))
        order = []

        def many():
            for item, _ in crew.each(time.sleep, operator.call, [0.3] * 6):
                order.append(item)

        slow = threading.Thread(target=many)
        slow.start()
        time.sleep(0.1)
        for item, _ in crew.each(abs, operator.call, [-1]):
            order.append(item)
        assert len(order) <= 2, "it waited for all that had come before"
        slow.join()
    finally:
        crew.close()


def test_what_is_cancelled_in_the_middle_of_an_item_frees_its_process_for_others(monkeypatch):
    """A replay can take many minutes; two that nobody wants any more would block everybody."""
    monkeypatch.setattr("scheduler_advisor.crew.GRACE_S", 0.2)
    crew = Crew(1)
    stop = threading.Event()
    try:
        list(crew.each(time.sleep, operator.call, [0.0]))
        threading.Timer(0.3, stop.set).start()
        with pytest.raises(CancelledError):
            list(crew.each(time.sleep, operator.call, [600, 600], stop.is_set))
        assert list(crew.each(abs, operator.call, [-1])) == [(-1, 1)]
        assert list(crew.each(abs, operator.call, [-2, 3])) == [(-2, 2), (3, 3)]
    finally:
        crew.close()


_PARENT = """
import operator, time
from scheduler_advisor.crew import Crew
crew = Crew(1)
list(crew.each(time.sleep, operator.call, [0]))
print(crew._all[0]._child.pid, flush=True)
list(crew.each(time.sleep, operator.call, [600]))
"""


def test_a_worker_does_not_outlive_a_parent_that_is_killed_in_the_middle_of_its_work():
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    time.sleep(0.3)
    os.kill(worker, 0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and "zombie" not in status_of(worker):
        assert time.monotonic() < until
        time.sleep(0.05)


def status_of(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "zombie"


def test_work_of_one_does_not_wait_for_that_of_another():
    crew = Crew(2)
    try:
        list(crew.each(time.sleep, operator.call, [0.0, 0.0]))  # both processes are there
        slow = threading.Thread(target=lambda: list(crew.each(time.sleep, operator.call, [2.0])))
        slow.start()
        assert list(crew.each(abs, operator.call, [-1])) == [(-1, 1)]
        assert slow.is_alive()
        slow.join()
    finally:
        crew.close()


def test_a_worker_that_is_killed_ends_the_run_in_words_and_the_next_run_has_another():
    crew = Crew(1)
    try:
        list(crew.each(time.sleep, operator.call, [0.0]))
        failures = []

        def sleeping():
            try:
                list(crew.each(time.sleep, operator.call, [60.0]))
            except AdvisorError as error:
                failures.append(str(error))

        slow = threading.Thread(target=sleeping)
        slow.start()
        time.sleep(0.3)
        os.kill(crew._all[0]._child.pid, signal.SIGKILL)
        slow.join(30)
        assert failures == [
            "a worker process died, as they do when memory runs out: use a shorter window"
        ]
        assert list(crew.each(abs, operator.call, [-1])) == [(-1, 1)]
    finally:
        crew.close()


def test_an_answer_that_cannot_be_read_is_a_death_as_well():
    crew = Crew(1)
    try:
        with pytest.raises(AdvisorError, match="died"):
            list(crew.each(functools.partial(os.write, 1), operator.call, [b"junk"]))
    finally:
        crew.close()


def test_cancelling_twice_and_after_the_end_changes_nothing(crowd):
    hold = threading.Event()
    run = crowd.begin("advice", "c", WINDOW, lambda run, _: hold.wait(30) and run.tell("report"))
    assert crowd.cancel(run.run_id)
    assert crowd.cancel(run.run_id)
    hold.set()
    assert finished(run).state is RunState.CANCELLED
    assert crowd.cancel(run.run_id)
    assert (run.state, run.result) == (RunState.CANCELLED, None)
    done = finished(crowd.begin("advice", "c", WINDOW, lambda *_: {"a": 1}))
    crowd.cancel(done.run_id)
    assert (done.state, done.result) == (RunState.DONE, {"a": 1})


def test_a_script_that_begins_run_after_run_is_stopped_and_the_others_go_on(crowd, monkeypatch):
    monkeypatch.setattr(runs_module, "MOST_AT_ONCE", 3)
    hold = threading.Event()
    begun = [crowd.begin("whatif", "c", WINDOW, lambda *_: {"a": hold.wait(30)}) for _ in range(3)]
    with pytest.raises(AdvisorError, match="3 runs work already"):
        crowd.begin("whatif", "c", WINDOW, lambda *_: {})
    hold.set()
    assert {finished(run).state for run in begun} == {RunState.DONE}
    assert finished(crowd.begin("whatif", "c", WINDOW, lambda *_: {})).state is RunState.DONE


def test_facts_that_came_meanwhile_are_another_past(site, crowd):
    before = finished(start_whatif(crowd, WINDOW, "c", Wish())).result
    more = waiting_site.works(account="b", first=900, every_h=12)
    facts = [
        JobRun(run_id=f"{number}.1", job_id=str(number), attempt=1, submit_at=submit,
               start_at=start, end_at=end, gpus=gpus, state="COMPLETED", limit_s=40_000,
               account=account, user_name="u", cluster="c", source="test")
        for number, submit, start, end, gpus, _, account in more
    ]  # fmt: skip
    with site.work() as work, work.transaction():
        work.append_facts(facts)
    after = finished(start_whatif(crowd, WINDOW, "c", Wish())).result
    assert after["jobs"] == before["jobs"] + len(facts)


def test_an_error_of_a_process_is_the_callers_and_a_dead_one_is_told():
    with Processes(1) as processes:
        with pytest.raises(TypeError):
            list(processes.each("a", operator.add, [1]))
        with pytest.raises(AdvisorError, match="died"):
            list(processes.each(os._exit, operator.call, [3]))
        with pytest.raises(CancelledError):
            list(processes.each("a", operator.add, ["b"], lambda: True))
        assert list(processes.each("a", operator.add, ["b"])) == [("b", "ab")]
