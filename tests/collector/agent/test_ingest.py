"""Batches into the store: each once, whatever the network and the clocks do."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector import model
from collector.errors import AgentConflictError, BatchRefusedError
from collector.ingest.runs import retag
from collector.ingest.take import prune
from collector.store import Store
from collector.telemetry.rows import micros

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
GPU = "GPU-00000000-0000-0000-0000-000000000000"


def a_run(run_id, start, end=None, state="RUNNING"):
    return model.JobRun(
        cluster="c", run_id=run_id, job_id="17", submit_at=NOW, start_at=later(start),
        end_at=None if end is None else later(end), state=state, source="slurm",
    )  # fmt: skip


def later(seconds):
    return NOW + timedelta(seconds=seconds)


def seen(at=NOW, **changes):
    row = {
        "gpu_uuid": GPU, "gpu_index": 0, "minor_number": 0, "pci_bus_id": "x",
        "driver_version": "590",
    }  # fmt: skip
    return {name: [value] for name, value in (row | changes).items()} | {"ts": [micros(at)]}


def holding(at=NOW, key="pod:research/train-0", **changes):
    row = {
        "key": key, "gpu_uuid": GPU, "mig_uuid": None, "share_num": 1, "share_den": 1,
        "user_name": None, "account": "research", "name": "train-0",
    }  # fmt: skip
    return {name: [value] for name, value in (row | changes).items()} | {"ts": [micros(at)]}


NOBODY = {name: [] for name in holding()}


def test_a_batch_is_written_with_cluster_and_node_of_its_sender(ingest, store, a_batch):
    assert ingest(a_batch()) == 1
    row = store.rows("SELECT * FROM sample")[0]
    assert (row["cluster"], row["node"], row["source"]) == ("c", "n1", "agent")
    assert (row["ts"], row["util_ratio"], row["power_mw"]) == (NOW, 0.5, None)


def test_a_batch_that_comes_twice_is_written_once(ingest, store, a_batch):
    assert [ingest(a_batch()), ingest(a_batch())] == [1, 0]
    assert store.value("SELECT count(*) FROM sample") == 1


def test_batches_out_of_order_are_all_written(ingest, store, a_batch):
    for sequence in (3, 1, 2, 3, 1):
        ingest(a_batch(sequence, at=later(15 * sequence)), now=later(60))
    assert store.value("SELECT count(*) FROM sample") == 3
    windows = store.rows("SELECT since, until FROM fact_window")
    assert windows == [{"since": NOW, "until": later(45)}]


def test_a_batch_that_cannot_be_written_leaves_nothing_at_all(ingest, store, a_batch):
    batch = a_batch()
    batch.tables["event"] = {"ts": [micros(NOW)], "kind": ["xid"], "code": ["no number"]}
    with pytest.raises(BatchRefusedError, match=r"event\.code"):
        ingest(batch)
    assert store.value("SELECT count(*) FROM sample") == 0
    assert ingest(a_batch()) == 1


def test_a_second_agent_for_a_node_is_told_so_and_taken_when_the_first_is_silent(
    ingest, store, a_batch
):
    ingest(a_batch())
    other = a_batch(agent_id="other", at=later(30))
    with pytest.raises(AgentConflictError, match="agent a spoke for n1"):
        ingest(other, now=later(30))
    assert ingest(other, now=later(200)) == 1


def test_a_clock_far_ahead_is_refused_and_one_behind_is_not(ingest, a_batch):
    with pytest.raises(BatchRefusedError, match="clock of n1"):
        ingest(a_batch(at=later(3600)))
    assert ingest(a_batch(2, at=later(-86_400))) == 1


def test_a_gap_in_the_batches_is_a_gap_in_what_is_covered(ingest, store, a_batch):
    for sequence, seconds in enumerate((0, 15, 600, 615)):
        ingest(a_batch(sequence, at=later(seconds)), now=later(700))
    windows = store.rows("SELECT since, until FROM fact_window ORDER BY since")
    assert windows == [
        {"since": later(-15), "until": later(15)},
        {"since": later(585), "until": later(615)},
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(order=st.lists(st.integers(0, 7), min_size=1, max_size=20))
def test_any_order_with_any_repeats_gives_each_batch_once(a_batch, order):
    from collector.ingest import take

    with Store.open(":memory:", clock=lambda: NOW) as store:
        for sequence in order:
            batch = a_batch(sequence, at=later(15 * sequence))
            with store.work() as work, work.transaction():
                take(work, batch, later(200))
        assert store.value("SELECT count(*) FROM sample") == len(set(order))
        covered = store.value("SELECT sum(epoch(until) - epoch(since))::BIGINT FROM fact_window")
        # A single missing batch is bridged (a late tick is no gap), longer gaps are not.
        ticks = sorted(set(order))
        expected = 15 + sum(
            15 * (b - a) if b - a <= 2 else 15 for a, b in itertools.pairwise(ticks)
        )
        assert covered == expected


# --- inventory ---------------------------------------------------------------------------------


def test_an_unchanged_device_is_one_row_however_often_it_is_told(ingest, store, a_batch):
    for sequence in range(3):
        ingest(a_batch(sequence, tables={"device_seen": seen(later(sequence))}))
    assert store.rows("SELECT valid_from, valid_to FROM device_seen") == [
        {"valid_from": NOW, "valid_to": None}
    ]


def test_a_changed_index_closes_the_row_and_opens_one(ingest, store, a_batch):
    ingest(a_batch(1, tables={"device_seen": seen()}))
    ingest(a_batch(2, tables={"device_seen": seen(later(60), gpu_index=3)}))
    rows = store.rows("SELECT gpu_index, valid_from, valid_to FROM device_seen ORDER BY valid_from")
    assert rows == [
        {"gpu_index": 0, "valid_from": NOW, "valid_to": later(60)},
        {"gpu_index": 3, "valid_from": later(60), "valid_to": None},
    ]


def test_a_gpu_that_is_back_begins_a_new_stay_which_ends_its_outage(ingest, store, a_batch):
    ingest(a_batch(1, tables={"device_seen": seen()}))
    back = {"ts": [micros(later(60))], "kind": ["gpu_back"], "gpu_uuid": [GPU]}
    ingest(a_batch(2, tables={"device_seen": seen(later(60)), "event": back}))
    rows = store.rows("SELECT valid_from, valid_to FROM device_seen ORDER BY valid_from")
    assert rows == [
        {"valid_from": NOW, "valid_to": later(60)},
        {"valid_from": later(60), "valid_to": None},
    ]


def test_a_gpu_that_moved_to_another_node_is_in_one_place_at_a_time(ingest, store, a_batch):
    ingest(a_batch(1, tables={"device_seen": seen()}))
    ingest(a_batch(1, node="n2", tables={"device_seen": seen(later(60))}))
    assert store.rows("SELECT node FROM device_seen WHERE valid_to IS NULL") == [{"node": "n2"}]


def test_a_gpu_missing_from_a_snapshot_stays_and_a_mig_instance_ends(ingest, store, a_batch):
    mig = {
        "gpu_uuid": [GPU], "mig_uuid": ["MIG-1"], "profile": ["1g"], "gpu_instance_id": [1],
        "compute_instance_id": [0], "gpu_slices": [1], "mem_mib": [9984],
        "placement_start": [None], "ts": [micros(NOW)],
    }  # fmt: skip
    ingest(a_batch(1, tables={"device_seen": seen(), "mig_instance": mig}))
    empty = {"device_seen": {k: [] for k in seen()}, "mig_instance": {k: [] for k in mig}}
    ingest(a_batch(2, at=later(60), tables=empty))
    assert store.value("SELECT count(*) FROM device_seen WHERE valid_to IS NULL") == 1
    assert store.value("SELECT valid_to FROM mig_instance") == later(60)


def test_a_physical_gpu_is_written_once_for_ever(ingest, store, a_batch):
    device = {
        "gpu_uuid": [GPU], "gpu_model": ["NVIDIA H200"], "raw_name": ["NVIDIA H200"],
        "mem_total_mib": [143_771], "mem_reserved_mib": [614], "ts": [micros(NOW)],
    }  # fmt: skip
    for sequence in range(2):
        ingest(a_batch(sequence, tables={"device": device}))
    assert store.rows("SELECT gpu_uuid, mem_total_mib, first_seen_at FROM device") == [
        {"gpu_uuid": GPU, "mem_total_mib": 143_771, "first_seen_at": NOW}
    ]


def test_capacity_comes_from_one_source_only_and_the_schedulers_goes_first(ingest, store, a_batch):
    node = {
        "gpu_model": ["NVIDIA H200"], "gpus": [8], "cpus": [64], "mem_mib": [1],
        "ts": [micros(NOW)],
    }  # fmt: skip
    ingest(a_batch(1, tables={"node": node}))
    assert store.value("SELECT sum(gpus)::INT FROM node") == 8
    with store.work() as work:
        work.append_facts(
            [
                model.Node(
                    cluster="c", node="n1", gpu_model="h200", gpus=8, valid_from=NOW, source="slurm"
                )
            ]
        )
    ingest(a_batch(2, tables={"node": node}))
    assert store.rows("SELECT gpus, source FROM node") == [{"gpus": 8, "source": "slurm"}]


# --- holders -----------------------------------------------------------------------------------


def test_a_pod_that_holds_a_gpu_without_a_process_is_an_allocation(ingest, store, a_batch):
    ingest(a_batch(1, tables={"holding": holding()}))
    row = store.rows(
        "SELECT r.account, r.state, a.gpu_uuid, a.gpus, a.end_at "
        "FROM job_run r JOIN allocation a USING (run_id)"
    )
    assert row == [
        {"account": "research", "state": "RUNNING", "gpu_uuid": GPU, "gpus": 1, "end_at": None}
    ]


@pytest.mark.parametrize(("seen_missing", "end"), [(75, 60), (120, 105), (3600, 60)])
def test_a_pod_that_let_go_held_until_the_tick_before_and_never_through_a_silence(
    ingest, store, a_batch, seen_missing, end
):
    ingest(a_batch(1, tables={"holding": holding()}))
    ingest(a_batch(2, at=later(60), tables={"holding": holding(later(60))}), now=later(60))
    last = a_batch(3, at=later(seen_missing))
    last.tables["holding"] = NOBODY
    ingest(last, now=later(seen_missing))
    assert store.rows("SELECT start_at, end_at FROM job_run") == [
        {"start_at": NOW, "end_at": later(end)}
    ]
    assert store.rows("SELECT end_at FROM allocation") == [{"end_at": later(end)}]


def test_a_pod_of_the_same_name_that_comes_back_is_a_run_of_its_own(ingest, store, a_batch):
    ingest(a_batch(1, tables={"holding": holding()}))
    ingest(a_batch(2, at=later(60), tables={"holding": NOBODY}))
    ingest(a_batch(3, at=later(120), tables={"holding": holding(later(120))}))
    assert store.value("SELECT count(DISTINCT run_id) FROM job_run") == 2
    assert store.value("SELECT count(*) FROM job") == 1


def test_slurms_holders_make_no_second_run(ingest, store, a_batch):
    ingest(a_batch(1, tables={"holding": holding(key="slurm:17")}))
    assert store.value("SELECT count(*) FROM job_run") == 0


def test_a_sample_of_a_slurm_job_is_tagged_with_the_run_of_that_time(ingest, store, a_batch):
    with store.work() as work:
        work.append_facts([a_run("17.first", -900, -300, "PREEMPTED"), a_run("17.second", -120)])
    for sequence, seconds in ((1, -600), (2, 0)):
        batch = a_batch(sequence, at=later(seconds))
        batch.tables["sample"]["run_id"] = ["slurm:17"]
        ingest(batch)
    assert [r["run_id"] for r in store.rows("SELECT run_id FROM sample ORDER BY ts")] == [
        "17.first",
        "17.second",
    ]


def test_a_sample_that_came_before_its_job_was_imported_is_tagged_afterwards(
    ingest, store, a_batch
):
    batch = a_batch()
    batch.tables["sample"]["run_id"] = ["slurm:17"]
    ingest(batch)
    assert store.value("SELECT run_id FROM sample") == "slurm:17"
    with store.work() as work:
        work.append_facts([a_run("17.x", -60)])
        retag(work, "c", later(-3600))
    assert store.value("SELECT run_id FROM sample") == "17.x"


def test_forgetting_old_batches_keeps_the_new_ones(ingest, store, a_batch):
    ingest(a_batch(1, boot_id="old"))
    ingest(a_batch(2, at=later(60), boot_id="new"), now=later(60))
    with store.work() as work:
        prune(work, later(30))
    assert store.value("SELECT list(boot_id) FROM ingest_range") == ["new"]


def test_how_near_gpus_are_is_kept_with_its_time(ingest, store, a_batch):
    pair = {"gpu_uuid": ["A", "A"], "peer_uuid": ["B", "C"], "level": ["PIX", "SYS"]}
    told = pair | {"ts": [micros(NOW)] * 2}
    ingest(a_batch(1, tables={"gpu_near": told}))
    ingest(a_batch(2, tables={"gpu_near": told}))
    moved = pair | {"level": ["PIX", "NODE"], "ts": [micros(later(60))] * 2}
    ingest(a_batch(3, at=later(60), tables={"gpu_near": moved}))
    rows = store.rows(
        "SELECT peer_uuid, level, valid_to FROM gpu_near ORDER BY peer_uuid, valid_from"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("B", "PIX", None),
        ("C", "SYS", later(60)),
        ("C", "NODE", None),
    ]


def test_a_domain_over_nodes_is_kept_with_its_time(ingest, store, a_batch):
    member = {
        "gpu_uuid": [GPU], "fabric_uuid": ["ab" * 16], "clique_id": [3], "state": ["completed"],
        "health_mask": [2], "ts": [micros(NOW)],
    }  # fmt: skip
    ingest(a_batch(1, tables={"gpu_fabric": member}))
    ingest(
        a_batch(2, tables={"gpu_fabric": member | {"clique_id": [4], "ts": [micros(later(60))]}})
    )
    rows = store.rows("SELECT clique_id, valid_to FROM gpu_fabric ORDER BY valid_from")
    assert rows == [{"clique_id": 3, "valid_to": later(60)}, {"clique_id": 4, "valid_to": None}]
