"""The Stranding page: what stood free and could not be used, and why a job cannot start."""

from __future__ import annotations

import pytest

from analytics.ledger import ensure_built
from analytics.window import Window
from collector.model import Job, JobRun
from collector.store import Store


@pytest.fixture(scope="module")
def stranded_store(site, tmp_path_factory):
    """The small site, where from the second week on one job holds every CPU of old-1."""
    path = tmp_path_factory.mktemp("stranded") / "site.duckdb"
    with Store.open(path, clock=lambda: site.UNTIL) as store:
        site.fill(store)
        same = {"cluster": site.CLUSTER, "job_id": "104", "account": "voice", "user_name": "bob"}
        start = site.GAP[1]
        with store.work() as work, work.transaction():
            work.execute("UPDATE allocation SET cpus = 56 WHERE run_id = '102'")
            work.append_facts(
                [
                    Job(**same, submit_at=start, req_gpus=4, req_nodes=1, source="test"),
                    JobRun(
                        **same, run_id="104", submit_at=start, eligible_at=start, gpus=4, nodes=1,
                        state="PENDING", last_known_at=site.UNTIL, source="test",
                    ),
                ]
            )  # fmt: skip
        ensure_built(store, Window(site.SINCE, site.UNTIL))
        yield store


def test_a_cluster_without_stranding_says_so(site_store, open_page):
    page = open_page(site_store, "stranding", from_="2026-10-19", to="2026-11-01")
    assert "No free GPU was stranded in this window" in page.text


def test_a_job_cannot_start_because_of_each_node_and_what_would_free_it(site_store, open_page):
    page = open_page(site_store, "stranding", shape="2x1")
    # big-1 is full, big-2 drained, old-1 has 1 of 4 free.
    assert (
        "A job of 2 GPUs on one node cannot start, because too few GPUs are free in all (1)"
        in page.text
    )
    assert "It could if these ended: 103 (eve) (GPUs held: 1)" in page.text
    assert "old-1 T4-16 1 GPUs missing: 1 103 (eve)" in page.text
    assert "No job's end makes room on 1 more nodes: big-2 (Drained)" in page.text


def test_before_the_drain_a_job_would_have_started(site_store, open_page):
    page = open_page(site_store, "stranding", shape="2x1", back="96")
    assert "Yes: a job of 2 GPUs on one node would start. GPUs free in all: 3." in page.text


def test_choosing_a_shape_goes_into_the_address(site_store, open_page):
    page = open_page(site_store, "stranding")
    page.app.selectbox(key="shape_gpus").select(1).run()
    assert page.app.query_params["shape"] in ("1x1", ["1x1"])
    assert "Yes: a 1-GPU job would start" in page.text


def test_reason_and_causing_team_add_up_to_the_ledger(stranded_store, open_page, site):
    from analytics.reports import ledger_report, stranding_report

    page = open_page(stranded_store, "stranding", from_="2026-10-19", to="2026-11-01")
    window = Window(site.SINCE, site.UNTIL)
    report = stranding_report(stranded_store, window)
    cpu = next(
        row for row in ledger_report(stranded_store, window).rows if row["class"] == "stranded_cpu"
    )
    assert cpu["gpu_hours"] > 0
    assert (
        sum(r["gpu_hours"] for r in report.rows if r["class"] == "stranded_cpu") == cpu["gpu_hours"]
    )
    assert "Stranded: no CPU left speech caused it" in page.text
