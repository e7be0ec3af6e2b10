"""What the Fleet page shows, as JSON, and what is asked of the last instant."""

from __future__ import annotations

import pytest

WINDOW = {"since": "2026-10-19", "until": "2026-11-02"}


@pytest.fixture
def wired(client, store, site):
    """The small site with a board cut in two, a link, and traffic, up to the end of its facts."""
    site.fill(store)
    since = {"valid_from": [site.SINCE], "source": ["test"], "cluster": [site.CLUSTER]}
    on = since | {"node": ["big-1"], "gpu_uuid": ["G"]}
    with store.work() as work:
        work.append("mig_instance", on | {"mig_uuid": ["M"], "valid_to": [site.UNTIL]})
        work.append("device_seen", on | {"gpu_index": [0]})
        work.append("nvlink", on | {"link": [0], "remote_type": ["switch"]})
    return client(store)


def test_islands_come_with_their_links(wired):
    (island,) = wired.get("/cluster/nvlink").json()
    assert (island["node"], island["gpus"], island["kind"]) == ("big-1", [0], "switch")
    assert island["tx_bytes_per_s"] is None, "not measured"


def test_what_stood_until_the_end_stands_when_the_last_instant_is_asked_for(wired, site):
    assert [m["mig_uuid"] for m in wired.get("/cluster/mig").json()] == ["M"]
    end = {"at": site.UNTIL.isoformat()}
    assert len(wired.get("/cluster/mig", params=end).json()) == 1
    assert len(wired.get("/cluster/blast-radius").json()) == len(
        wired.get("/cluster/blast-radius", params=end).json()
    )


def test_the_blast_radius_is_what_jobs_hold(wired):
    parts = {(p["level"], p["name"]): p for p in wired.get("/cluster/blast-radius").json()}
    assert {name for level, name in parts if level == "node"} == {"big-1", "big-2", "old-1"}
    assert parts["node", "big-2"]["jobs"] == 0, "it is drained"
    assert parts["node", "big-1"]["job_gpus"] >= 1


def test_a_network_without_counters_is_an_empty_answer_and_not_a_row_of_noughts(wired):
    assert wired.get("/cluster/network", params=WINDOW).json() == []


@pytest.mark.parametrize("path", ["nvlink", "blast-radius", "network", "mig"])
def test_an_unknown_cluster_is_refused(wired, path):
    assert wired.get(f"/cluster/{path}", params={"cluster": "nowhere"}).status_code == 404
