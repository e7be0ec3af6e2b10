"""What-ifs, calibrations and replayed reports over HTTP: begun, followed, stopped, and right."""

from __future__ import annotations

import statistics
import threading
import time

import pytest

from collector.store import Store
from scheduler_advisor.running.runs import close_runs, runs_of
from unstrand.api.app import api_app
from unstrand.service.core import Service


@pytest.fixture(scope="module")
def waiting_store(waiting, tmp_path_factory):
    """The site on which whole-node jobs wait."""
    path = tmp_path_factory.mktemp("waiting") / "waiting.duckdb"
    with Store.open(path, clock=lambda: waiting.UNTIL) as store:
        waiting.fill(store)
        yield store
        close_runs(store)


@pytest.fixture(scope="module")
def service(waiting, waiting_store):
    """A service with a writer that runs and nothing in the background."""
    made = Service.over(waiting_store, lambda: waiting.UNTIL)
    made.writer.start()
    yield made
    made.writer.stop()


@pytest.fixture
def api(service, client, waiting_store):
    return type(client(waiting_store))(api_app(service))


@pytest.fixture
def span(waiting):
    return {"since": waiting.T0.isoformat(), "until": waiting.UNTIL.isoformat()}


def followed(api, run_id, within_s=400):
    until = time.monotonic() + within_s
    while (answer := api.get(f"/runs/{run_id}").json())["state"] == "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer


def test_a_whatif_is_begun_followed_and_its_values_are_those_of_a_plain_loop(api, waiting, span):
    wish = {**span, "cluster": "c", "base": "fifo", "values": {"backfill": "none"}}
    begun = api.post("/whatif", json=wish)
    assert begun.status_code == 202, begun.text
    assert (begun.json()["state"], begun.json()["kind"]) == ("running", "whatif")
    done = followed(api, begun.json()["run_id"])
    assert (done["error"], done["share"]) == (None, 1.0)
    assert api.get(f"/whatif/{done['run_id']}").json() == done
    result = done["result"]
    assert (result["jobs"], result["gpus"]) == (168, {"today": 16, "candidate": 16})
    rows = {row["measure"]: row for row in result["rows"]}
    expected = waiting.fifo_waits(waiting.works())
    assert rows["mean_wait_s"]["candidate"] == pytest.approx(statistics.mean(expected), abs=0.01)


def test_twice_the_nodes_leave_nobody_waiting(api, waiting, span):
    wish = {**span, "cluster": "c", "nodes": 2}
    done = followed(api, api.post("/whatif", json=wish).json()["run_id"])
    rows = {row["measure"]: row for row in done["result"]["rows"]}
    assert done["result"]["gpus"] == {"today": 16, "candidate": 32}
    assert rows["mean_wait_s"]["candidate"] == 0
    assert rows["blocked_gpu_hours"]["candidate"] == 0
    before, after = (row["mean_wait_s"][1] for row in done["result"]["boundary"][::2])
    assert 0 == before <= after


@pytest.mark.parametrize(
    ("wish", "code", "complaint"),
    [
        ({"cluster": "nowhere"}, 404, "no cluster 'nowhere'"),
        ({"cluster": "c", "load": 99}, 400, "load goes from"),
        ({"cluster": "c", "alter": "cap_time"}, 400, "no change of requests cap_time"),
        ({"cluster": "c", "nodes": 99_999}, 400, "less than or equal to 10000"),
        ({"cluster": "c", "nodes": -(10**9)}, 400, "greater than or equal to -10000"),
        ({"cluster": "c", "nodes": True}, 400, "valid integer"),
        ({"cluster": "c", "load": -1}, 400, "load goes from"),
        ({"cluster": "c", "estimate": 1e308}, 400, "load goes from"),
        ({"cluster": "c", "base": "x" * 200_000}, 400, "at most 100000 characters"),
        ({"cluster": "c", "values": {"order": 1}}, 400, "valid string"),
        ({"cluster": "c", "wind": 1}, 400, "not permitted"),
        ({}, 400, "Field required"),
    ],
)
def test_a_whatif_that_makes_no_sense_is_refused_at_once(api, wish, code, complaint):
    answer = api.post("/whatif", json=wish)
    assert answer.status_code == code
    assert complaint in answer.json()["error"]["what"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(api, number):
    body = f'{{"cluster": "c", "load": {number}}}'
    answer = api.post("/whatif", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/advice/rows/nothing", "/runs/nothing", "/whatif/nothing"])
def test_what_there_is_not_is_not_found(api, path):
    answer = api.get(path)
    assert answer.status_code == 404
    assert "nothing" in answer.json()["error"]["what"]


def test_a_wrong_method_is_told(api):
    for answer in (api.get("/whatif"), api.delete("/advice"), api.post("/runs")):
        assert answer.status_code == 405
        assert "/docs" in answer.json()["error"]["remedy"]


def test_fewer_nodes_than_none_fail_the_run_in_words(api, span):
    wish = {**span, "cluster": "c", "nodes": -2}
    done = followed(api, api.post("/whatif", json=wish).json()["run_id"])
    assert done["state"] == "failed"
    assert "node" in done["error"]


def test_a_key_that_no_policy_has_fails_the_run_in_words(api, span):
    wish = {**span, "cluster": "c", "values": {"order": "wrong"}}
    done = followed(api, api.post("/whatif", json=wish).json()["run_id"])
    assert done["state"] == "failed"
    assert "order = wrong" in done["error"]
    kept = api.post(f"/whatif/{done['run_id']}/proposal", json={"name": "x"})
    assert kept.status_code == 409


def test_a_finished_whatif_is_kept_as_a_proposal(api, span):
    wish = {**span, "cluster": "c", "nodes": 2}
    run_id = api.post("/whatif", json=wish).json()["run_id"]
    followed(api, run_id)
    kept = api.post(f"/whatif/{run_id}/proposal", json={"name": "two more", "actor": "ann"})
    assert kept.status_code == 200, kept.text
    [row] = api.get("/proposals?cluster=c").json()["rows"]
    assert (row["name"], row["actor"], row["proposal_id"]) == (
        "two more", "ann", kept.json()["proposal_id"],
    )  # fmt: skip
    assert api.get("/proposals?cluster=none").json()["rows"] == []


def test_one_that_is_unknown_is_refused_with_the_list_of_what_there_is(api):
    for answer in (api.get("/whatif/nothing"), api.delete("/runs/nothing")):
        assert answer.status_code == 404
        assert "/api/v1/runs" in answer.json()["error"]["remedy"]


def test_the_calibration_states_the_real_waits_and_a_grade_with_its_limits(api, waiting, span):
    answer = api.get("/calibration", params={**span, "cluster": "c"}).json()
    assert (answer["cluster"], answer["jobs"], answer["policy_source"]) == ("c", 168, "search")
    # 2,700 s in full; who starts after the window counts until its end.
    assert answer["mean_wait_s"]["observed"] == 2614.3
    assert all(len(mark["limits"]) == 3 and mark["reason"] for mark in answer["marks"])
    assert answer["grade"] == max(mark["grade"] for mark in answer["marks"])
    whole = [row for row in answer["classes"] if row["size"] == "5-8"]
    assert [(row["jobs"], round(row["observed_s"][0])) for row in whole] == [
        (21, round((20 * 21_600 + 7_200) / 21))  # the last has waited two of its six hours
    ]
    short = api.get("/calibration", params={"until": "2026-10-07", "since": "2026-10-05"})
    assert short.status_code == 400
    assert "The window holds 2 days; a replay needs a week" in short.json()["error"]["what"]


def test_a_report_with_replay_is_long_work_and_is_kept(api, waiting_store, span):
    begun = api.post("/advice", json={**span, "replay": True, "forms": ["md"]})
    assert begun.status_code == 202, begun.text
    assert begun.json()["kind"] == "advice"
    done = followed(api, begun.json()["run_id"])
    assert done["state"] == "done", done["error"]
    assert done["result"]["fidelity"][0]["cluster"] == "c"
    assert set(done["result"]["files"]) == {"md"}
    assert api.get("/advice").json()["report_id"] == done["result"]["report_id"]
    listed = {row["run_id"]: row for row in api.get("/runs").json()["rows"]}
    assert (listed[done["run_id"]]["state"], listed[done["run_id"]]["kind"]) == ("done", "advice")


def test_a_cancelled_report_keeps_nothing(api, waiting_store, span):
    before = waiting_store.value("SELECT count(*) FROM advice_report")
    run_id = api.post("/advice", json={**span, "replay": True}).json()["run_id"]
    assert api.delete(f"/runs/{run_id}").status_code == 200
    assert followed(api, run_id)["state"] == "cancelled"
    assert waiting_store.value("SELECT count(*) FROM advice_report") == before


def test_other_questions_are_answered_while_a_report_is_made(service, api, waiting, span):
    gate, inside = threading.Event(), threading.Event()

    def doing(run, crew):
        inside.set()
        gate.wait(60)
        run.tell("report")
        return {}

    runs = runs_of(service.store, service.clock)
    run = runs.begin("advice", None, service_window(waiting), doing)
    assert inside.wait(10)
    assert api.get("/status").json()["long_work"] == [
        {"run_id": run.run_id, "kind": "advice", "stage": "read", "share": 0.05}
    ]
    wish = {**span, "cluster": "c", "nodes": 2}
    assert followed(api, api.post("/whatif", json=wish).json()["run_id"])["state"] == "done"
    gate.set()
    assert followed(api, run.run_id)["state"] == "done"
    assert api.get("/status").json()["long_work"] == []


def service_window(waiting):
    from scheduler_advisor.window import Window

    return Window(waiting.T0, waiting.UNTIL)
