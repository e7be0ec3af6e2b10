"""How fast lent GPUs came back in a history that was planted."""

from __future__ import annotations

import pytest

from collector.model import Event
from scheduler_advisor.measurements.documents import DOCUMENTS
from scheduler_advisor.measurements.reclaims import by_quota, returns_of


def quota(store, since, **gpus):
    with store.work() as work:
        for account, count in gpus.items():
            work.append(
                "quota",
                {"cluster": ["c"], "name": [f"q-{account}"], "account": [account],
                 "partition": [None], "gpu_model": [None], "gpus": [count],
                 "valid_from": [since], "valid_to": [None], "source": ["test"]},
            )  # fmt: skip


@pytest.fixture
def lent(lab, store):
    """Two nodes of 8, half of them red's, half blue's. Blue borrows twice. At hour 10 red asks for
    its 8 and has them half an hour later, by stopping a run; at hour 40 it asks for 4, stops
    nobody, and has them when the borrower ends, seven hours later."""
    quota(store, lab.window.since, red=8, blue=8)
    for name in ("n1", "n2"):
        lab.node(name)
    lab.run("b1", account="blue", gpus=8, node="n1", start=0, end=100, measured=False)
    lab.run("b2", account="blue", gpus=8, node="n2", start=0, end=10.5, state="PREEMPTED",
            measured=False)  # fmt: skip
    lab.run("r1", account="red", gpus=8, node="n2", submit=10, start=10.5, end=20, measured=False)
    lab.run("r9", account="red", gpus=8, node="n2", submit=12, start=20, end=30, measured=False)
    lab.run("b3", account="blue", gpus=8, node="n2", start=30, end=47, measured=False)
    lab.run("r2", account="red", gpus=4, node="n2", submit=40, start=47, end=60, measured=False)
    return lab


def measured(lab, store):
    with store.work() as work:
        work.append_facts(lab.facts)
        return returns_of(work, lab.window, "c")


def test_a_return_lasts_from_being_owed_until_the_quota_is_held(lent, store):
    first, second = measured(lent, store)
    assert (first.account, first.gpus, first.seconds) == ("red", 8, 1800.0)
    assert (first.held_gpus, first.waiting_gpus, first.borrowed_gpus) == (0, 8, 8)
    assert (second.seconds, second.waiting_gpus, second.stopped_runs) == (7 * 3600.0, 4, 0)


def test_what_the_stopped_lost_is_at_most_their_run_or_what_follows_their_last_checkpoint(
    lent, store
):
    first, _ = measured(lent, store)
    assert (first.stopped_runs, first.lost_gpu_hours) == (1, 0.0)
    assert first.lost_at_most_gpu_hours == pytest.approx(8 * 10.5)
    mark = Event(cluster="c", run_id="b2:1", job_id="b2", kind="checkpoint_end",
                 ts=lent.window.since.replace(hour=10), source="test")  # fmt: skip
    with store.work() as work:
        work.append_facts([mark])
        first, _ = returns_of(work, lent.window, "c")
    assert (first.lost_gpu_hours, first.lost_at_most_gpu_hours) == (8 * 0.5, 0.0)


def test_what_a_queue_asks_beyond_its_quota_is_not_owed(lent, store):
    """r9 waits eight hours for GPUs while red holds all of its own."""
    assert all(one.begin_at.hour != 12 for one in measured(lent, store))
    assert len(measured(lent, store)) == 2


def test_nobody_owes_where_nobody_borrows(lab, store):
    quota(store, lab.window.since, red=8, blue=8)
    lab.node("n1")
    lab.run("b1", account="blue", gpus=8, node="n1", start=0, end=100, measured=False)
    lab.run("r1", account="red", gpus=8, node="n1", submit=10, start=100, end=120, measured=False)
    assert measured(lab, store) == []


def test_a_return_that_the_window_cuts_off_is_counted_apart(lab, store):
    quota(store, lab.window.since, red=8)
    lab.node("n1")
    lab.run("b1", account="blue", gpus=8, node="n1", start=0, measured=False)
    lab.run("r1", account="red", gpus=8, submit=160, start=None)
    [one] = measured(lab, store)
    assert (one.end_at, one.seconds) == (None, 8 * 3600.0)
    [row] = by_quota([one])
    assert (row.returns, row.not_yet, row.p50_s) == (1, 1, None)


def test_the_document_has_a_row_for_each_quota_and_says_what_it_does_not_know(lent, store):
    measured(lent, store)
    document = DOCUMENTS["reclaims"](store, lent.window, "c", rows=False)
    [row] = document["rows"]
    assert (row["quota"], row["returns"], row["not_yet"]) == ("q-red", 2, 0)
    assert (row["p50_s"], row["max_s"]) == ((1800 + 25_200) / 2, 25_200.0)
    assert document["remarks"] == [
        "84.0 GPU-hours are of stopped runs without a checkpoint mark: at most that"
    ]
    assert len(DOCUMENTS["reclaims"](store, lent.window, "c", rows=True)["rows"]) == 2
