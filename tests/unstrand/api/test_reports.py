"""Reports over HTTP are the reports: same JSON, limits that say themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analytics.reports import cost_report, coverage_report, ledger_report, stranding_report
from analytics.window import Window
from collector.model import JobRun

WINDOW = {"since": "2026-10-19", "until": "2026-11-02"}


def test_the_cost_report_is_that_of_the_analytics(api, site_store, site):
    wanted = cost_report(site_store, Window(site.SINCE, site.UNTIL), ("team", "gpu_model"))
    answer = api.get("/report/cost", params=WINDOW | {"by": "team,gpu_model"})
    assert answer.status_code == 200
    assert answer.json() == wanted.to_dict()


def test_the_ledger_report_proves_itself(api, site_store, site):
    answer = api.get("/report/ledger", params=WINDOW).json()
    assert answer == ledger_report(site_store, Window(site.SINCE, site.UNTIL)).to_dict()
    assert answer["identity"] == {"gpu_seconds_difference": 0, "cost_difference": "0"}


def test_stranding_and_coverage_are_those_of_the_analytics(api, site_store, site):
    window = Window(site.SINCE, site.UNTIL)
    stranding = stranding_report(site_store, window, ("node",)).to_dict()
    assert api.get("/report/stranding", params=WINDOW | {"by": "node"}).json() == stranding
    coverage = coverage_report(site_store, window).to_dict()
    assert api.get("/report/coverage", params=WINDOW).json() == coverage
    assert coverage["nodes"][0]["node"] == "big-1", "the darkest first"


def test_hours_after_the_last_fact_are_unknown_and_the_identity_holds(api):
    answer = api.get("/report/ledger", params={"since": "2026-11-03", "until": "2026-11-05"}).json()
    hours = {row["class"]: row["gpu_hours"] for row in answer["rows"]}
    assert answer["identity"] == {"gpu_seconds_difference": 0, "cost_difference": "0"}
    # One node went down before and nobody said that it came back.
    assert hours["unknown"] + hours["drained"] + hours["failed"] == answer["total"]["gpu_hours"]
    assert hours["unknown"] > 0
    assert "remarks" not in answer or "not in the ledger" not in str(answer["remarks"])


def test_without_a_window_the_last_known_28_days_are_told(api):
    window = api.get("/report/cost").json()["window"]
    assert (window["since"], window["until"]) == ("2026-10-05T00:00:00Z", "2026-11-02T00:00:00Z")


@pytest.mark.parametrize(
    ("path", "query", "status", "where", "word"),
    [
        ("/report/cost", {"since": "yesterday"}, 400, "query parameter since", "yesterday"),
        ("/report/cost", {"since": "2026-11-03", "until": "2026-11-02"}, 400, "since", "empty"),
        ("/report/cost", {"since": "2020-01-01", "until": "2026-01-01"}, 400, "since", "400"),
        ("/report/cost", WINDOW | {"by": "colour"}, 400, "query parameters by", "colour"),
        ("/report/cost", WINDOW | {"by": "team,team"}, 400, "query parameters by", "team"),
        ("/report/ledger", WINDOW | {"tz": "Mars/Base"}, 400, "tz", "Mars/Base"),
        ("/report/ledger", WINDOW | {"tz": "Europe"}, 400, "tz", "Europe"),
        ("/report/ledger", {"until": "0001-01-02"}, 400, "until", "before the year 1"),
        ("/report/ledger", {"until": "9999-12-31T23:30"}, 400, "until", "1900 to 2200"),
        ("/report/ledger", {"until": "9999-12-31T23-23:00"}, 400, "until", "outside the years"),
        ("/report/ledger", WINDOW | {"cluster": "nowhere"}, 404, "cluster", "nowhere"),
        ("/report/cost", WINDOW | {"untill": "2026-11-02"}, 400, "untill", "Extra"),
        ("/report/cost", WINDOW | {"as_of": "then"}, 400, "as_of", "'was' or 'now'"),
        ("/report/cost", WINDOW | {"currency": "XXX"}, 400, "currency", "XXX"),
        ("/report/nothing", {}, 404, "/report/nothing", "Not Found"),
        ("/health/broken", {"at": "now"}, 400, "query parameter at", "now"),
    ],
)
def test_a_refusal_says_what_where_and_what_to_do(api, path, query, status, where, word):
    answer = api.get(path, params=query)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == {"what", "where", "remedy"}
    assert where in error["where"]
    assert word in error["what"] + error["remedy"]
    assert error["remedy"]


def test_a_method_that_is_not_offered_is_refused_in_the_same_shape(api):
    answer = api.post("/report/cost")
    assert answer.status_code == 405
    assert answer.json()["error"]["where"] == "/report/cost"


def test_too_many_rows_are_refused_with_a_way_out(api, monkeypatch):
    monkeypatch.setattr("unstrand.api.query.MOST_ROWS", 5)
    error = api.get("/report/cost", params=WINDOW | {"by": "hour"}).json()["error"]
    assert "rows are more than 5" in error["what"]
    assert "fewer keys" in error["remedy"]


def test_an_empty_store_has_no_last_window(client, store):
    answer = client(store).get("/report/cost")
    assert answer.status_code == 400
    assert "unstrand import" in answer.json()["error"]["remedy"]


def test_a_fault_of_ours_is_told_without_its_inside(api, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("secret path /root")

    monkeypatch.setattr("analytics.reports.cost_report", broken)
    answer = api.get("/report/cost", params=WINDOW)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"]["remedy"] == "the service's log says why"


def test_evidence_is_that_of_the_analytics(client, store, site):
    from analytics.ledger import ensure_built
    from analytics.reports.evidence import evidence_report
    from analytics.window import Window

    runs = [
        replace(fact, state="PREEMPTED", end_at=site.UNTIL) if isinstance(fact, JobRun) else fact
        for fact in site._runs()
    ]
    with store.work() as work:
        work.append_facts([*site._nodes(), *runs, *site._windows()])
        for run in site.RUNS:
            work.append("sample", site._samples(*run))
    window = Window(site.SINCE, site.UNTIL)
    ensure_built(store, window)
    asked = {"since": "2026-10-19", "until": "2026-11-02"}
    answer = client(store).get("/report/evidence", params=asked).json()
    assert answer == evidence_report(store, window).to_dict()
    active = {run: gpus * util * site.HELD_HOURS for run, _, _, _, gpus, util in site.RUNS}
    told = {row["run_id"]: row for row in answer["rows"]}
    assert {row["class"] for row in answer["rows"]} == {"possibly_lost"}
    assert told["102"]["gpu_hours"] == pytest.approx(active["102"])
    assert told["102"]["text"] == "no checkpoint is known: at most all of it"
    one = client(store).get("/report/evidence", params={**asked, "job": "103"}).json()
    assert [row["job"] for row in one["rows"]] == ["103"]
