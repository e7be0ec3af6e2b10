"""The Queue page: how long jobs wait, the distribution, and what blocks the first."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.ledger import ensure_built
from analytics.questions.queue_at import queue_at
from analytics.window import Window
from collector.model import Job, JobRun
from collector.store import Store

# job, GPUs, when it becomes eligible before the end of the window, how long it waits (None: still).
WAITERS = (
    ("201", 2, timedelta(days=6), timedelta(hours=2)),
    ("202", 2, timedelta(days=5), timedelta(hours=30)),
    ("203", 4, timedelta(hours=5), None),
    ("204", 1, timedelta(hours=2), None),
)


def waiting_facts(site):
    facts = []
    for job, gpus, before, wait in WAITERS:
        since = site.UNTIL - before
        same = {"cluster": site.CLUSTER, "job_id": job, "account": "voice", "user_name": "bob"}
        start = None if wait is None else since + wait
        facts += [
            Job(**same, submit_at=since, req_gpus=gpus, req_nodes=1, source="test"),
            JobRun(
                **same, run_id=job, submit_at=since, eligible_at=since, start_at=start,
                end_at=start, gpus=gpus, nodes=1, partition="batch",
                state="PENDING" if start is None else "COMPLETED",
                last_known_at=site.UNTIL, source="test",
            ),
        ]  # fmt: skip
    return facts


@pytest.fixture(scope="module")
def waiting_store(site, tmp_path_factory):
    path = tmp_path_factory.mktemp("waiting") / "site.duckdb"
    with Store.open(path, clock=lambda: site.UNTIL) as store:
        site.fill(store)
        with store.work() as work, work.transaction():
            work.append_facts(waiting_facts(site))
        ensure_built(store, Window(site.SINCE, site.UNTIL))
        yield store


def test_the_tail_stands_beside_the_median_and_the_mean(waiting_store, open_page):
    text = open_page(waiting_store, "queue", from_="2026-10-19", to="2026-11-01").text
    # Five jobs started: three at once, one after 2 h, one after 30 h.
    assert "Half of 5 jobs started within <1 min" in text
    assert "the longest 1 d 6 h. 40.0% waited more than an hour" in text
    assert "Mean wait observed 6 h 24 min" in text
    assert "Not started observed 2" in text


def test_the_first_in_line_is_named_with_what_blocks_it(waiting_store, open_page):
    text = open_page(waiting_store, "queue").text
    # 203 wants 4 GPUs on a node: old-1 has 1 of 4 free, and 102 and 103 hold the other 3.
    assert "First in line: job 203 of bob, for 4 h 59 min" in text
    assert "A job of 4 GPUs on one node cannot start" in text
    assert "It could if these ended: 102 (bob), 103 (eve) (GPUs held: 3)" in text
    assert "203 bob batch 4 1 4 h 59 min" in text
    assert "Order rebuilt from job records" in text


def test_nobody_waits_where_nobody_waits(site_store, open_page):
    assert "No GPU job waited at this moment" in open_page(site_store, "queue").text


def test_waits_are_shown_by_team_queue_and_size(waiting_store, open_page):
    text = open_page(waiting_store, "queue", from_="2026-10-19", to="2026-11-01").text
    # 2 GPUs x 32 h started, 4 x 5 h and 1 x 2 h still waiting.
    assert "speech 3 2 h 1 d 3 h 1 d 6 h 86.0 2" in text
    assert "batch · 2-4 2" in text


def test_the_schedulers_own_order_wins_over_the_rebuilt_one(waiting_store, site):
    at = site.UNTIL - timedelta(minutes=30)
    assert [job.job_id for job in queue_at(waiting_store, at)] == ["203", "204"]
    with waiting_store.work() as work:
        work.append(
            "queue_snapshot",
            {
                "cluster": [site.CLUSTER] * 2, "ts": [at] * 2, "job_id": ["203", "204"],
                "gpus": [4, 1], "priority": [1, 9], "source": ["test"] * 2,
            },
        )  # fmt: skip
    found = queue_at(waiting_store, at)
    assert [(job.job_id, job.known_from) for job in found] == [
        ("204", "snapshot"),
        ("203", "snapshot"),
    ]
    with waiting_store.work() as work:
        work.execute("DELETE FROM queue_snapshot")
