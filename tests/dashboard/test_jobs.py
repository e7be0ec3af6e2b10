"""The Jobs page: the table with its filters, and one job's card down to its samples."""

from __future__ import annotations

from dataclasses import replace

from analytics.questions.job_samples import job_samples
from collector.model import JobRun

WINDOW = {"from_": "2026-10-19", "to": "2026-11-01"}


def test_jobs_are_listed_with_what_they_held_and_cost(site_store, open_page):
    page = open_page(site_store, "jobs", **WINDOW)
    table = page.tables[0]
    assert list(table["job"]) == ["101", "102", "103"], "the dearest first"
    first = table.iloc[0]
    assert (first["team"], first["user"], first["gpus"]) == ("language", "ada", 2)
    assert round(first["cost"], 2) == 2305.55
    assert (first["held"], round(first["efficiency"])) == (672.0, 30)


def test_filters_come_from_the_address_and_go_into_it(site_store, open_page):
    page = open_page(site_store, "jobs", user="bob", **WINDOW)
    assert list(page.tables[0]["job"]) == ["102"]
    page.app.selectbox(key="jobs_user").select("eve").run()
    assert page.app.query_params["user"] in ("eve", ["eve"])
    assert list(page.tables[0]["job"]) == ["103"]


def test_a_class_orders_the_jobs_that_have_some_of_it(site_store, open_page):
    page = open_page(site_store, "jobs", class_="allocated_unmeasured", **WINDOW)
    # 101 alone was not measured, in the gap of big-1.
    assert list(page.tables[0]["job"]) == ["101"]


def test_a_job_opens_to_its_cost_placement_classes_and_samples(site_store, open_page):
    page = open_page(site_store, "jobs", job="101", **WINDOW)
    assert "Job 101 (–) of ada, account lang, queue –: RUNNING , 2 GPU." in page.text
    assert "Cost observed 2,305.55 USD" in page.text
    assert "big-1 (2 x A100-80)" in page.text
    assert "It started at once" in page.text
    # 2 GPUs x 336 h, of which 2 x 2 h were not measured.
    assert "Held, idle 468" in page.text
    assert "Used 200" in page.text
    assert "Held, not measured 4.0" in page.text
    charts = page.app.get("plotly_chart")
    assert len(charts) == 2, "the timeline, and GPU by GPU"


def test_the_samples_of_a_job_are_its_own(site_store, site):
    found = job_samples(site_store, site.CLUSTER, "102", 3600)
    assert {sample.node for sample in found} == {"old-1"}
    assert {sample.gpu_index for sample in found} == {0, 1}
    assert {round(sample.util_ratio, 6) for sample in found} == {0.95}
    assert sum(sample.samples for sample in found) == 2 * 336


def test_what_a_gpu_of_a_job_sends_is_a_rate_and_not_where_its_counter_stands(site_store, site):
    with site_store.work() as work:
        work.execute("UPDATE sample SET nvlink_tx_bytes = 5e15 + 2e9 * epoch(ts - ?)", [site.SINCE])
    found = job_samples(site_store, site.CLUSTER, "102", 86_400)
    assert {round(sample.nvlink_tx_bytes_per_s) for sample in found} == {2_000_000_000}


def test_a_job_that_is_not_known_is_told(site_store, open_page):
    page = open_page(site_store, "jobs", job="999")
    assert "no job '999'" in page.app.warning[0].value
    page.app.button(key="all_jobs").click().run()
    assert "job" not in page.app.query_params
    assert len(page.tables) == 1


def test_a_job_without_samples_says_so(store, open_page, site):
    from analytics.ledger import ensure_built
    from analytics.window import Window

    with store.work() as work:
        work.append_facts([*site._nodes(), *site._runs(), *site._windows()])
    ensure_built(store, Window(site.SINCE, site.UNTIL))
    assert "No sample of this job is kept" in open_page(store, "jobs", job="101").text


def test_a_preempted_job_shows_what_may_be_lost_and_why(store, open_page, site):
    from analytics.ledger import ensure_built
    from analytics.window import Window

    with store.work() as work:
        runs = [
            replace(fact, state="PREEMPTED", end_at=site.UNTIL)
            if isinstance(fact, JobRun)
            else fact
            for fact in site._runs()
        ]
        work.append_facts([*site._nodes(), *runs, *site._windows()])
        work.append("sample", site._samples(*site.RUNS[1]))
    ensure_built(store, Window(site.SINCE, site.UNTIL))
    text = open_page(store, "jobs", job="102").text
    assert "Lost or suspected, and why" in text
    # 2 GPUs x 336 h at 95%
    assert "Possibly lost nothing known 638" in text
    assert "no checkpoint is known: at most all of it" in text
