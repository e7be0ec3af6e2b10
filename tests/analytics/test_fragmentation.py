"""Fragmentation F against an independent figure for a real cluster."""

from __future__ import annotations

import csv

import pytest

from analytics.fragmentation import Machine, Task, fragmentation, total, typical
from analytics.ledger.settings import put_setting
from analytics.questions.fragmentation import fragmentation as fragmentation_of
from analytics.questions.fragmentation import fragmentation_report
from analytics.reports import stranding_report
from analytics.window import EPOCH


def test_idle_gpus_that_no_task_can_use_are_all_fragmentation():
    starved = Machine("A100", 1_000, (1000, 1000))
    assert fragmentation(starved, typical([Task(8_000, 1, 1000)])) == 2000


def test_a_task_that_fits_leaves_only_gpus_too_full_for_it():
    machine = Machine("A100", 64_000, (1000, 300))
    assert fragmentation(machine, typical([Task(1_000, 1, 500)])) == 300
    half = typical([Task(1_000, 1, 500), Task(1_000, 0, 0)])
    assert fragmentation(machine, half) == pytest.approx((300 + 1300) / 2)


def test_the_rarest_shapes_are_not_typical():
    tasks = [Task(1_000, 1, 1000)] * 96 + [Task(2_000, 8, 1000)] * 4
    assert [task for task, _ in typical(tasks).tasks] == [Task(1_000, 1, 1000)]


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_f_of_the_empty_openb_cluster_is_the_published_programs_figure(shared_data):
    folder = shared_data / "traces" / "openb"
    machines = [
        Machine(row["model"], int(row["cpu_milli"]), (1000,) * int(row["gpu"]))
        for row in rows_of(folder / "openb_node_list_gpu_node.csv")
    ]
    tasks = [
        Task(
            int(row["cpu_milli"]), int(row["num_gpu"]), int(row["gpu_milli"]),
            tuple(row["gpu_spec"].split("|")) if row["gpu_spec"] else (),
        )
        for row in rows_of(folder / "openb_pod_list_default.csv")
    ]  # fmt: skip
    assert float(total(machines, typical(tasks))) == pytest.approx(866_232.55, abs=0.005)


def test_f_over_time_is_what_a_typical_job_could_not_use(site):
    """Yesterday's jobs held 4 GPUs and 32 CPUs of a node; today 6 of 8 GPUs are held for half an
    hour, then none. Two free GPUs serve no such job, eight do."""
    site.node("n1", rack="a", since=-30).node("n2", rack="b", gpus=2, cpus=16, since=-30)
    site.known(since=-24)
    with site.store.work() as work:
        put_setting(work, "demand_min_jobs", 1, since=EPOCH, actor="test")
    site.run(gpus=4, cpus=32, since=-20, until=-19)
    site.run(gpus=6, cpus=8, until=0.5)
    site.built()
    (cluster,) = fragmentation_of(site.store, site.window)
    assert cluster.free_gpu_hours == pytest.approx(0.5 * 2 + 0.5 * 8 + 2)
    assert cluster.fragmented_gpu_hours == pytest.approx(0.5 * 2 + 2)
    racks = {
        row.name: row.fragmented_gpu_hours
        for row in fragmentation_of(site.store, site.window, "rack")
    }
    assert racks == {"a": pytest.approx(1.0), "b": pytest.approx(2.0)}
    nodes = fragmentation_of(site.store, site.window, "node", "c")
    assert sum(row.fragmented_gpu_hours for row in nodes) == pytest.approx(3.0)
    document = fragmentation_report(site.store, site.window)
    (tasks,) = document["tasks"].values()
    assert [(task["gpus"], task["cpu_milli"], task["jobs"]) for task in tasks] == [(4, 32_000, 1)]
    total = stranding_report(site.store, site.window).total
    assert float(total["fragmented_gpu_hours"]) == pytest.approx(3.0)
    assert total["task_distribution"] == cluster.distribution


def test_nodes_that_are_down_or_unknown_have_nothing_free_to_be_fragmented(site):
    site.node("n1", since=-30).node("n2", since=-30).known(since=-24).state("down", node="n2")
    with site.store.work() as work:
        put_setting(work, "demand_min_jobs", 1, since=EPOCH, actor="test")
    site.run(gpus=8, cpus=999, since=-20, until=-19)
    site.built()
    assert [row.name for row in fragmentation_of(site.store, site.window, "node")] == ["n1"]


def test_parts_of_a_gpu_count_by_the_thousandth(site):
    site.node("n1", gpus=1, since=-30).known(since=-24)
    with site.store.work() as work:
        put_setting(work, "demand_min_jobs", 1, since=EPOCH, actor="test")
    site.run(uuids=["g0"], share=(3, 4), since=-20, until=-19)
    site.run(uuids=["g0"], share=(1, 2), until=0.5)
    site.built()
    (row,) = fragmentation_of(site.store, site.window)
    # Half a GPU is free for half an hour and too little for three quarters, then the whole GPU.
    assert row.free_gpu_hours == pytest.approx(0.25 + 0.5)
    assert row.fragmented_gpu_hours == pytest.approx(0.25)
