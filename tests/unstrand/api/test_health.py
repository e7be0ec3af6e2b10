"""What the Data health page shows, as JSON."""

from __future__ import annotations

WINDOW = {"since": "2026-10-19", "until": "2026-11-02"}


def test_the_span_names_the_clusters_and_how_far_the_ledger_is(api):
    assert api.get("/health/span").json() == {
        "since": "2026-10-19T00:00:00Z",
        "until": "2026-11-02T00:00:00Z",
        "clusters": ["small"],
        "ledger_until": "2026-11-02T00:00:00Z",
    }


def test_an_empty_store_has_no_span(client, store):
    assert client(store).get("/health/span").json() is None


def test_what_is_broken_now_is_the_drained_node(api):
    (found,) = api.get("/health/broken").json()
    assert (found["kind"], found["node"], found["gpus"]) == ("node_down", "big-2", 2)
    assert found["since"] == "2026-10-30T00:00:00Z"


def test_before_the_drain_nothing_was_broken(api):
    assert api.get("/health/broken", params={"at": "2026-10-29"}).json() == []


def test_the_gap_in_the_samples_is_found(api):
    (gap,) = api.get("/health/gaps", params=WINDOW).json()
    assert (gap["nodes"], gap["kind"]) == (["big-1"], "telemetry")
    assert (gap["since"], gap["until"]) == ("2026-10-21T06:00:00Z", "2026-10-21T08:00:00Z")


def test_nothing_is_unpriced_or_in_conflict(api):
    assert api.get("/health/unpriced", params=WINDOW).json() == []
    assert api.get("/health/conflicts", params=WINDOW).json() == []


def test_sources_say_where_facts_came_from(api):
    kinds = [(s["kind"], s["nodes"]) for s in api.get("/health/sources").json()]
    assert kinds == [("scheduler", 0), ("telemetry", 3)]


def test_the_status_says_what_this_is(api, site_store):
    status = api.get("/status").json()
    assert status["kind"] == "site"
    assert status["store"] == site_store.path
    assert {"ledger", "ledger_recent"} <= set(status["tasks"])
