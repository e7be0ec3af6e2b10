"""The report, its states, marks and job cards over HTTP."""

from __future__ import annotations

import base64

import pytest

from collector.store import Store
from unstrand.api.app import api_app
from unstrand.service.core import Service


@pytest.fixture(scope="module")
def own_store(site, tmp_path_factory):
    """A small site of this module's own, which may be written to."""
    path = tmp_path_factory.mktemp("own") / "own.duckdb"
    with Store.open(path, clock=lambda: site.UNTIL) as store:
        site.fill(store)
        yield store


@pytest.fixture
def api(site, own_store, client):
    """The API over it, with a writer that runs."""
    service = Service.over(own_store, lambda: site.UNTIL)
    service.writer.start()
    yield type(client(own_store))(api_app(service))
    service.writer.stop()


def test_without_a_report_the_answer_says_how_to_make_one(api):
    answer = api.get("/advice")
    assert answer.status_code == 404
    assert "unstrand advise" in answer.json()["error"]["remedy"]


def test_a_report_is_made_kept_and_read_again(api, site):
    span = {"since": site.SINCE.isoformat(), "until": site.UNTIL.isoformat()}
    made = api.post("/advice", json={**span, "forms": ["html", "md"], "language": "ko"})
    assert made.status_code == 200, made.text
    files = made.json()["files"]
    assert base64.b64decode(files["html"]).startswith(b"<!doctype html>")
    newest = api.get("/advice").json()
    assert newest["report_id"] == made.json()["report_id"]
    assert newest["language"] == "en"
    assert newest["window"]["until"] == site.UNTIL.isoformat().replace("+00:00", "Z")
    assert set(newest) >= {"recommendations", "diagnosis", "measurements", "fidelity", "window",
                           "coverage_ratio"}  # fmt: skip


def test_goals_that_cannot_be_read_are_refused_with_the_key(api):
    answer = api.post("/advice", json={"goals": "first = 'luck'"})
    assert answer.status_code == 400
    assert "first" in answer.json()["error"]["what"]


def test_a_state_of_an_unknown_recommendation_is_refused(api):
    answer = api.post("/advice/state/nothing", json={"state": "accepted", "actor": "ann"})
    assert answer.status_code == 400
    assert "no recommendation" in answer.json()["error"]["what"]


def test_a_mark_by_http_is_an_event(api):
    answer = api.post("/marks", json={"kind": "checkpoint-end", "job_id": "1"})
    assert answer.status_code == 200, answer.text
    refused = api.post("/marks", json={"kind": "checkpoint-end"})
    assert refused.status_code == 400
    assert "--job" in refused.json()["error"]["what"]


def test_an_unknown_job_is_refused_with_a_remedy(api):
    answer = api.get("/job/no-such-job")
    assert answer.status_code == 400
    assert "imported" in answer.json()["error"]["what"]


@pytest.mark.parametrize("name", ["waits", "spread", "breakers", "checkpoints", "reclaims"])
def test_every_measurement_answers_with_its_window_and_rows(api, name):
    document = api.get(f"/report/{name}?rows=true").json()
    assert set(document) == {"window", "kind", "rows", "remarks"}
    assert document["kind"] == "observed"
