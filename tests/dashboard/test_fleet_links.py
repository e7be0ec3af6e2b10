"""The Fleet page's islands, network, blast radius and boards to scale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.questions.blast_radius import blast_radius
from analytics.questions.mig_layout import MigInstance
from analytics.questions.network_by_rack import network_by_rack
from analytics.questions.nvlink_islands import nvlink_islands
from analytics.window import Window
from dashboard.fleet.links import gpu_text
from dashboard.fleet.mig import placed
from dashboard.fleet.network import by_hour

AT = datetime(2026, 10, 31, 12, tzinfo=UTC)


def add(store, table, rows, **same):
    """Rows as dicts, with columns that are the same in all of them."""
    names = {name for row in rows for name in row}
    columns = {name: [row.get(name) for row in rows] for name in names}
    with store.work() as work:
        work.append(table, columns | {name: [value] * len(rows) for name, value in same.items()})


@pytest.fixture
def linked(store, site):
    """big-1: two GPUs joined directly and one alone; big-2: four over switches, in a domain."""
    site.fill(store)
    since = {"cluster": site.CLUSTER, "valid_from": site.SINCE, "source": "test"}
    seen = [
        {"node": node, "gpu_uuid": f"{node}/{n}", "gpu_index": n, "pci_bus_id": f"{node}:{n}"}
        for node, count in (("big-1", 3), ("big-2", 4))
        for n in range(count)
    ]
    add(store, "device_seen", seen, **since)
    direct = [
        {"gpu_uuid": f"big-1/{a}", "link": link, "remote_pci_bus_id": f"big-1:{b}"}
        for a, b in ((0, 1), (1, 0))
        for link in range(4)
    ]
    add(store, "nvlink", direct, node="big-1", remote_type="gpu", **since)
    switched = [{"gpu_uuid": f"big-2/{n}", "link": link} for n in range(4) for link in range(18)]
    add(store, "nvlink", switched, node="big-2", remote_type="switch", **since)
    members = [{"gpu_uuid": f"big-2/{n}"} for n in range(4)]
    domain = {"fabric_uuid": "ab" * 16, "clique_id": 3, "state": "completed", "node": "big-2"}
    add(store, "gpu_fabric", members, **domain, **since)
    ticks = [{"ts": AT - timedelta(minutes=m), "count": 40 - m} for m in (40, 20, 0.001)]
    samples = [
        {
            "node": gpu["node"], "gpu_uuid": gpu["gpu_uuid"], "ts": tick["ts"],
            "nvlink_tx_bytes": 6e9 * tick["count"], "nvlink_rx_bytes": 3e9 * tick["count"],
        }
        for gpu in seen
        for tick in ticks
    ]  # fmt: skip
    # This one's driver was loaded anew: its counter fell, and nothing is known of its traffic.
    samples[2]["nvlink_tx_bytes"] = 1.0
    samples[2]["nvlink_rx_bytes"] = 1.0
    add(store, "sample", samples, cluster=site.CLUSTER, step_s=1200.0, source="test")
    return store


def test_islands_are_what_links_join(linked):
    found = {(one.node, one.gpus): one for one in nvlink_islands(linked, AT)}
    assert set(found) == {("big-1", (0, 1)), ("big-1", (2,)), ("big-2", (0, 1, 2, 3))}
    pair, alone, switched = (found[key] for key in sorted(found))
    assert (pair.kind, pair.links, pair.fabric) == ("direct", (4, 4), None)
    assert (alone.kind, alone.links) == ("none", None)
    assert (switched.kind, switched.links, switched.fabric) == ("switch", None, "abababab/3")


def test_traffic_is_what_counters_grew_by_and_a_reset_is_no_traffic(linked):
    found = {(one.node, one.gpus): one for one in nvlink_islands(linked, AT)}
    switched, pair = found["big-2", (0, 1, 2, 3)], found["big-1", (0, 1)]
    assert switched.tx_bytes_per_s == pytest.approx(4 * 0.1e9, rel=1e-3)
    assert switched.rx_bytes_per_s == pytest.approx(4 * 0.05e9, rel=1e-3)
    assert (switched.measured, pair.measured) == (4, 1), "the other one began anew"


def test_a_counter_that_was_reset_and_rose_past_its_first_reading_gained_all_since_the_reset(
    linked,
):
    early, middle = AT - timedelta(minutes=40), AT - timedelta(minutes=20)
    with linked.work() as work:
        for at, value in ((early, 100e9), (middle, 0.0)):
            work.execute(
                "UPDATE sample SET nvlink_tx_bytes = ? WHERE gpu_uuid = 'big-2/0' AND ts = ?",
                [value, at],
            )
    found = {(one.node, one.gpus): one for one in nvlink_islands(linked, AT)}
    # From 0 to 240 GB over 40 minutes, as the three others; from its first reading it were 140.
    assert found["big-2", (0, 1, 2, 3)].tx_bytes_per_s == pytest.approx(4 * 0.1e9, rel=1e-3)


def test_without_links_the_page_says_where_they_would_come_from(site_store, open_page, site):
    assert nvlink_islands(site_store, AT) == []
    text = open_page(site_store, "fleet", from_="2026-10-19", to="2026-11-01").text
    assert "No NVLink on record: the node agent reports links" in text
    assert "No network counters on record" in text


def test_the_page_shows_islands_with_their_traffic(linked, open_page):
    text = open_page(linked, "fleet", from_="2026-10-19", to="2026-10-30").text
    assert "1 × 4 GPUs over switches; 1 × 2 GPUs joined directly; 1 × 1 GPUs without NVLink" in text
    korean = open_page(linked, "fleet", from_="2026-10-19", to="2026-10-30", lang="ko").text
    assert "1 × GPU 4개 스위치 경유" in korean


@pytest.fixture
def crowded(store, site):
    """big-1 moves 2 GB/s from 10 to 11 and nothing at 11; old-1's counter is reset at 10."""
    site.fill(store)
    first = AT.replace(hour=10)
    rows = [
        {"node": "big-1", "ts": first + timedelta(minutes=m), "net_rx_bytes": 60e9 * min(m, 59)}
        for m in (0, 30, 59, 60, 90, 119)
    ]
    rows += [
        {"node": "old-1", "ts": first, "net_rx_bytes": 5e9},
        {"node": "old-1", "ts": first + timedelta(minutes=30), "net_rx_bytes": 9e9},
        {"node": "old-1", "ts": first + timedelta(minutes=50), "net_rx_bytes": 7e9},
    ]
    for row in rows:
        row["net_tx_bytes"] = row["net_rx_bytes"]
    add(store, "host_sample", rows, cluster=site.CLUSTER, step_s=60.0, source="test")
    return store


def test_a_racks_traffic_is_that_of_its_nodes_hour_by_hour(crowded, site):
    found = network_by_rack(crowded, Window(site.SINCE, site.UNTIL))
    assert [(one.hour.hour, one.busiest_node) for one in found] == [(10, "big-1"), (11, "big-1")]
    assert [one.bytes_per_s for one in found] == [2e9, 0.0]
    assert all(one.nodes == 1 for one in found), "a counter that was reset says nothing"


def test_a_nodes_traffic_after_a_reset_counts_from_the_least_reading(crowded, site):
    first = AT.replace(hour=11)
    rows = [
        {"node": "old-1", "ts": first + timedelta(minutes=m), "net_rx_bytes": v, "net_tx_bytes": v}
        for m, v in ((0, 9e9), (20, 1e9), (40, 25e9))
    ]
    add(crowded, "host_sample", rows, cluster=site.CLUSTER, step_s=60.0, source="test")
    found = network_by_rack(crowded, Window(site.SINCE, site.UNTIL))
    [one] = [one for one in found if one.busiest_node == "old-1"]
    assert one.busiest_bytes_per_s == pytest.approx(2 * 24e9 / 2400)


def test_hours_of_the_day_are_those_of_the_zone_that_is_looked_at(crowded, site):
    found = network_by_rack(crowded, Window(site.SINCE, site.UNTIL))
    rack = found[0].rack or "unknown"
    assert by_hour(found, "UTC", "unknown") == {(rack, 10): 2e9, (rack, 11): 0.0}
    assert set(by_hour(found, "Asia/Seoul", "unknown")) == {(rack, 19), (rack, 20)}


def test_a_node_that_fails_stops_whole_jobs_with_what_they_have_not_saved(store):
    start = AT - timedelta(hours=10)
    same = {"cluster": "c", "source": "test"}
    nodes = [{"node": n, "rack": r} for n, r in (("a", "r1"), ("b", "r1"), ("d", "r2"))]
    add(store, "node", nodes, gpu_model="m", gpus=8, owned=True, valid_from=start, **same)
    runs = [{"run_id": "gang", "account": "x"}, {"run_id": "one", "account": "y"}]
    add(
        store,
        "job_run",
        runs,
        job_id="j",
        attempt=1,
        submit_at=start,
        start_at=start,
        state="RUNNING",
        **same,
    )
    held = [
        {"run_id": "gang", "node": "a", "gpus": 8}, {"run_id": "gang", "node": "d", "gpus": 8},
        {"run_id": "one", "node": "b", "gpus": 1},
    ]  # fmt: skip
    add(store, "allocation", held, share_num=1, share_den=1, start_at=start, **same)
    saved = [{"run_id": "gang", "ts": AT - timedelta(hours=2), "kind": "checkpoint_end"}]
    add(store, "event", saved, **same)
    found = {(one.level, one.name): one for one in blast_radius(store, AT)}
    assert set(found) == {("node", n) for n in "abd"} | {("rack", "r1"), ("rack", "r2")}
    lost = found["node", "d"]
    assert (lost.gpus, lost.jobs, lost.job_gpus, lost.accounts) == (8, 1, 16.0, 1)
    assert lost.at_risk_gpu_hours == pytest.approx(16 * 2), "saved two hours ago"
    rack = found["rack", "r1"]
    assert (rack.nodes, rack.gpus, rack.jobs, rack.job_gpus, rack.accounts) == (2, 16, 2, 17.0, 2)
    assert rack.at_risk_gpu_hours == pytest.approx(16 * 2 + 10)


def instance(start, mem_mib, profile, gi, model="NVIDIA H100 80GB HBM3", total=81559, slices=1):
    return MigInstance(
        cluster="c", node="n", gpu_uuid="g", mig_uuid=f"m{gi}{profile}", profile=profile,
        gpu_instance_id=gi, gpu_slices=slices, mem_mib=mem_mib, placement_start=start,
        gpu_model=model, mem_total_mib=total,
    )  # fmt: skip


def test_instances_stand_at_their_place_with_the_gap_between_them():
    board = [instance(0, 9984, "1g.10gb", 7), instance(4, 40448, "3g.40gb", 2, slices=3)]
    assert [(left, width) for left, width, _ in placed(board)] == [(0, 1 / 8), (0.5, 0.5)]


def test_compute_instances_of_one_gpu_instance_are_drawn_once():
    board = [instance(0, 40448, "1c.3g.40gb", 2, slices=3)] * 2
    assert [(width, len(of)) for _, width, of in placed(board)] == [(0.5, 2)]


def test_where_no_place_is_known_slices_stand_side_by_side():
    board = [instance(None, None, "3g.40gb", 1, slices=3), instance(None, None, "2g", 2, slices=2)]
    assert [(left, width) for left, width, _ in placed(board)] == [(0, 3 / 7), (3 / 7, 2 / 7)]


def test_an_a30_has_four_memory_slices():
    board = [instance(2, 11968, "2g.12gb", 1, "NVIDIA A30", 24576, 2)]
    assert [(left, width) for left, width, _ in placed(board)] == [(0.5, 0.5)]


def test_indexes_read_as_ranges():
    assert gpu_text((7, 0, 1, 2, 4)) == "0–2, 4, 7"
