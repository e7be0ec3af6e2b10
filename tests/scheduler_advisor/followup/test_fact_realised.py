"""What each kind of advice from facts is judged by, before and after it was applied, on paper.

A week of one state of things, the advice applied two hours into day 7, the days 8 to 14 of
another. Where a rule would not speak of so little, the change is given by hand with its scope.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from collector.model import Allocation
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.followup.changes import Changed
from scheduler_advisor.followup.fact_days import fact_days
from scheduler_advisor.followup.follow import judge
from scheduler_advisor.followup.realised import realised
from scheduler_advisor.followup.scope import Scope
from scheduler_advisor.followup.verdict import Predicted, Verdict, confidences, verdict
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import save_report
from scheduler_advisor.window import Window

T0 = datetime(2026, 10, 5, tzinfo=UTC)
DAY, DAYS, AT = 24, 15, 7
MADE = T0 + timedelta(days=AT)
SINCE, END = T0 + timedelta(days=AT + 1), T0 + timedelta(days=DAYS)


@pytest.fixture
def lab(lab):
    lab.days = DAYS
    return lab


ANN = Scope(people=frozenset({("red", "ann")}))


def applied(lab, kind):
    """The outcome of the report's only advice of the kind."""
    lab.built()
    report = make_report(lab.store, Window(T0, MADE), Goals(), at=MADE, cluster="c")
    [rec] = [each for each in report.advice.recommendations if each.kind == kind]
    state = StateChange(ts=MADE + timedelta(hours=2), state=State.APPLIED, actor="t", reason=None,
                        until=None)  # fmt: skip
    with lab.store.work() as work, work.transaction():
        save_report(work, report)
        change_state(work, rec.id, state)
    [found] = judge(lab.store, END, replays=False)
    assert found.change.subject_id == rec.id
    return found


def fault(lab, change, since=T0, until=MADE):
    """GPU-hours a day of the fault, on average."""
    with lab.store.work() as work:
        return fact_days(work, change, since, until).blocked.mean()


def before_and_after(lab, change):
    return fault(lab, change), fault(lab, change, SINCE, END)


def by_hand(lab, kind, scope=ANN, target=None):
    """The same without a report: the change with its scope, and what `realised` says of it."""
    lab.built()
    change = Changed("s", "c", kind, MADE, "", Predicted(1, 0, 2), scope=scope, target=target)
    with lab.store.work() as work:
        found = realised(fact_days(work, change, T0, MADE), fact_days(work, change, SINCE, END))
    return change, found


def daily(lab, job, days, *, hours=24, **run):
    """A run of so many hours on each of the days."""
    for day in days:
        lab.run(f"{job}{day}", start=day * DAY, end=day * DAY + hours, **run)


BEFORE, AFTER = range(AT), range(AT, DAYS)


def share(lab, runs, among):
    """The runs hold one GPU together, each its part."""
    lab.facts[:] = [
        replace(fact, gpu_uuid="n1-0", share_den=among)
        if isinstance(fact, Allocation) and fact.run_id in runs else fact
        for fact in lab.facts
    ]  # fmt: skip


def small_jobs(lab):
    """Three a day on a GPU each, from the change on all on one."""
    small = {"activity": 0.25, "mem_used": 9000}
    lab.node()
    for first in range(3):
        daily(lab, f"a{first}-", BEFORE, first=first, **small)
        daily(lab, f"a{first}-", AFTER, **small, measured=False)
    share(lab, {f"a{first}-{day}:1" for first in range(3) for day in AFTER}, 3)


def test_sharing_won_the_gpus_that_the_small_jobs_no_longer_hold(lab):
    small_jobs(lab)
    found = applied(lab, "share_gpu")
    assert before_and_after(lab, found.change) == pytest.approx((72, 24))
    assert found.found.load_shift == pytest.approx(0)
    assert found.found.gpu_hours == pytest.approx(48 * 7)
    assert found.verdict is Verdict.KEPT


def test_a_large_job_that_its_owner_began_meanwhile_is_not_held_against_sharing(lab):
    small_jobs(lab)
    lab.node("n2")
    daily(lab, "big", AFTER, node="n2", gpus=8)
    found = applied(lab, "share_gpu")
    assert before_and_after(lab, found.change) == pytest.approx((72, 24))
    assert found.found.load_shift == pytest.approx(0)
    assert found.found.gpu_hours == pytest.approx(48 * 7)


def test_small_jobs_on_another_model_are_not_those_that_were_to_share(lab):
    small_jobs(lab)
    lab.node("t1", model="T4")
    daily(lab, "t", AFTER, node="t1", measured=False)
    found = applied(lab, "share_gpu")
    assert found.change.scope.models == {"A100"}
    assert found.found.gpu_hours == pytest.approx(48 * 7)


def half_held(lab, *, apart):
    """Eight GPUs a day on one node, or four on each of two; a job of eight waits from before."""
    lab.node()
    lab.node("n2")
    for name in ("n1", "n2"):
        daily(lab, f"{name}-", BEFORE, node=name, gpus=4, user="eve", measured=False)
    places = ("n1", "n2") if apart else ("n2", "n2")
    for place, (name, first) in enumerate(zip(places, (0, 0 if apart else 4), strict=True)):
        daily(lab, f"{place}+", AFTER, node=name, first=first, gpus=4, user="eve", measured=False)


def test_a_gang_that_got_its_node_won_the_gpus_that_stood_free_beside_it(lab):
    half_held(lab, apart=False)
    lab.run("gang", submit=-1, start=AT * DAY, end=DAYS * DAY, gpus=8, user="kim", measured=False)
    found = applied(lab, "gang_wait")
    assert before_and_after(lab, found.change) == pytest.approx((192, 0))
    assert found.found.load_shift == pytest.approx(0)
    assert found.found.gpu_hours == pytest.approx(192 * 7)


def test_gpus_that_a_reservation_keeps_empty_for_a_gang_are_not_won(lab):
    half_held(lab, apart=True)
    lab.run("gang", submit=-1, start=None, gpus=8, user="kim")
    lab.reserve("n1", since=AT * DAY)
    found = applied(lab, "gang_wait")
    # Four GPUs of n1 are reserved now and no longer cut up: nobody has the use of them either way.
    assert before_and_after(lab, found.change) == pytest.approx((192, 192))
    assert found.found.gpu_hours == pytest.approx(0)
    assert found.verdict is Verdict.FAILED


def test_packing_won_what_waiting_whole_node_jobs_left_free_whatever_the_ledger_calls_it(lab):
    for node in range(4):
        lab.node(f"n{node}")
        daily(lab, f"s{node}-", BEFORE, node=f"n{node}", user="eve", measured=False)
        daily(lab, f"s{node}-", AFTER, node="n0", first=node, user="eve", measured=False)
    for big in range(4):
        lab.run(f"big{big}", submit=-1, start=None if big == 3 else AT * DAY, end=DAYS * DAY,
                node=f"n{big + 1 if big < 3 else 0}", gpus=8, user="kim",
                measured=False)  # fmt: skip
    # Before, 4 x 7 GPUs beside the small jobs, four of which the next whole-node job gathers; after
    # it 4 beside all of them, which the fourth job waits for.
    change, found = by_hand(lab, "fragmentation", Scope())
    assert before_and_after(lab, change) == pytest.approx((28 * 24, 4 * 24))
    assert found.load_shift == pytest.approx(0)
    assert found.gpu_hours == pytest.approx(24 * 24 * 7)


def test_quota_that_was_lent_won_what_the_limit_had_kept_free(lab):
    lab.node()
    daily(lab, "r", range(DAYS), gpus=2, measured=False)
    for name, first, start in (("q", 2, AT * DAY), ("p", 6, None)):
        lab.run(name, submit=-1, start=start, end=DAYS * DAY, first=first, gpus=4 if start else 2,
                user="kim", account="blue", reason="AssocGrpGRES", measured=False)  # fmt: skip
    lab.built()
    with lab.store.work() as work:
        work.append("quota", {"cluster": ["c"], "name": ["red"], "account": ["red"],
                              "gpu_model": ["A100"], "gpus": [6], "valid_from": [T0],
                              "source": ["test"]})  # fmt: skip
    found = applied(lab, "quota_unused")
    # Six GPUs stood free for two jobs that their account's limit held back; one of them runs now.
    assert before_and_after(lab, found.change) == pytest.approx((144, 48), rel=1e-3)
    assert found.found.load_shift == pytest.approx(0)
    assert found.found.gpu_hours == pytest.approx(96 * 7, rel=1e-3)


def test_what_sleeps_after_use_is_compared_at_equal_demand(lab):
    """Half of each run sleeps; afterwards the runs are longer and each sleeps 24 GPU-h less."""
    lab.node()
    for day in range(DAYS):
        hours = (10, 20)[day % 2] if day < AT else (12, 22)[day % 2]
        slept = hours // 2 if day < AT else hours // 2 - 3
        busy = day * DAY + hours - slept
        lab.run(f"a{day}", start=day * DAY, end=day * DAY + hours, gpus=8,
                activity=lambda hour, _, until=busy: 1.0 if hour < until else 0.0)  # fmt: skip
    found = applied(lab, "idle_after_use")
    before, after = before_and_after(lab, found.change)
    # Days 0 to 6: four of 10 hours and three of 20; days 8 to 14: four of 12 and three of 22.
    assert before == pytest.approx((4 * 5 + 3 * 10) * 8 / 7)
    assert after == pytest.approx((4 * 3 + 3 * 8) * 8 / 7)
    assert found.found.load_shift == pytest.approx(114 / 100 - 1)
    assert found.found.gpu_hours == pytest.approx(24 * 7)  # unadjusted it would be 112 of the 168


def test_a_rank_that_no_longer_sleeps_won_its_gpu(lab):
    lab.node()
    half = {"gpus": 4, "name": "ddp", "activity": lambda _, index: 1.0 if index < 3 else 0.0}
    daily(lab, "a", BEFORE, hours=20, **half)
    daily(lab, "a", AFTER, hours=20, gpus=3, activity=1.0, name="ddp")
    change, found = by_hand(lab, "gang_half")
    assert before_and_after(lab, change) == pytest.approx((20, 0))
    assert found.load_shift == pytest.approx(-0.25)


def hanging(lab, *, power, sm):
    lab.node(model="T4")
    asked = {"hours": 20, "gpus": 4, "activity": 1.0, "name": "allreduce"}
    daily(lab, "a", BEFORE, power=power, **asked)
    daily(lab, "a", AFTER, **asked)
    for sample in lab.samples:
        sample["sm_active_ratio"] = sm if sample["power_mw"] == power else 1.0
    return by_hand(lab, "gang_hang")


def test_ranks_that_hang_no_longer_won_what_they_held(lab):
    change, found = hanging(lab, power=20_000.0, sm=0.01)
    assert before_and_after(lab, change) == pytest.approx((80, 0))
    assert found.gpu_hours == pytest.approx(80 * 7)


def test_hangs_that_the_ledger_cannot_see_are_no_failure_of_the_advice(lab):
    _, found = hanging(lab, power=20_000.0, sm=None)  # power alone says nothing to the ledger
    assert verdict(found, Predicted(560, 400, 700)) is Verdict.UNSEEN
    assert confidences([("gang_hang", "unseen")])[0].judged == 0


def test_a_memory_default_won_the_gpus_that_had_no_memory_left(lab):
    for number in range(1, 4):
        lab.node(f"n{number}", mem_gib=512)
        for days, mem in ((BEFORE, 512), (AFTER, 60)):
            daily(lab, f"{number}-", days, hours=10, cpus=4, mem_gib=mem, node=f"n{number}",
                  user=f"user{number}", measured=False)  # fmt: skip
    found = applied(lab, "whole_node_memory")
    assert before_and_after(lab, found.change) == pytest.approx((3 * 7 * 10, 0))
    assert found.found.gpu_hours == pytest.approx(210 * 7)
    assert found.verdict is Verdict.KEPT


@pytest.mark.parametrize(("mem_gib", "after"), [(32, 0), (512, 140)])
def test_fewer_cpus_win_nothing_where_the_memory_is_still_gone(lab, mem_gib, after):
    lab.node(cpus=64, mem_gib=512)
    asked = {"hours": 20, "mem_gib": mem_gib, "measured": False}
    daily(lab, "a", BEFORE, cpus=64, **asked)
    daily(lab, "a", AFTER, cpus=8, **asked)
    change, found = by_hand(lab, "over_request")
    assert before_and_after(lab, change) == pytest.approx((140, after))
    assert found.gpu_hours == pytest.approx((140 - after) * 7)


def test_a_reservation_given_back_won_what_it_kept_empty(lab):
    lab.node()
    daily(lab, "a", range(DAYS), gpus=1, first=7, measured=False)
    lab.reserve(gpus=4, until=AT * DAY, account="blue")
    found = applied(lab, "reserved_unused")
    assert before_and_after(lab, found.change) == pytest.approx((96, 0))
    assert found.found.gpu_hours == pytest.approx(96 * 7)
    assert found.verdict is Verdict.KEPT


def test_checkpoints_before_a_stop_won_the_work_that_it_took(lab):
    lab.node()
    for day in range(DAYS):
        run = lab.run(f"a{day}", start=day * DAY, end=day * DAY + 20, gpus=8, activity=1.0,
                      state="PREEMPTED")  # fmt: skip
        done = day * DAY + (14 if day < AT else 19)
        lab.event("checkpoint_begin", done - 0.05, job_id=f"a{day}", run_id=run)
        lab.event("checkpoint_end", done, job_id=f"a{day}", run_id=run)
    change, found = by_hand(lab, "lost_work")
    assert before_and_after(lab, change) == pytest.approx((6 * 8, 8))
    assert found.load_shift == pytest.approx(0)  # lost work was work all the same
    assert found.gpu_hours == pytest.approx(40 * 7)


def test_gpus_that_no_longer_wait_for_input_are_judged_by_what_is_held_above_the_target(lab):
    lab.node()
    daily(lab, "a", BEFORE, hours=20, gpus=4, activity=0.2)
    daily(lab, "a", AFTER, hours=20, gpus=4, activity=0.5)
    scope = replace(ANN, models=frozenset({"A100"}))
    change, found = by_hand(lab, "input_bound", scope, target=0.5)
    # 80 GPU-h held a day, of which 16 were used and need 32; then 40 used need all of it.
    assert before_and_after(lab, change) == pytest.approx((48, 0), abs=1e-6)
    assert found.load_shift == pytest.approx(1.5)  # so much more was done: no comparison


def test_nodes_that_went_won_what_was_installed(lab):
    lab.node()
    lab.node("n2")
    lab.facts[:] = [replace(fact, valid_to=T0 + timedelta(days=AT))
                    if getattr(fact, "node", None) == "n2" and hasattr(fact, "valid_to") else fact
                    for fact in lab.facts]  # fmt: skip
    daily(lab, "a", range(DAYS), gpus=4, measured=False)
    change, found = by_hand(lab, "fewer_nodes", Scope())
    assert before_and_after(lab, change) == pytest.approx((384, 192))
    assert found.gpu_hours == pytest.approx(192 * 7)
