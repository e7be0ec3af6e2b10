"""Fragmentation F against an independent figure for a real cluster."""

from __future__ import annotations

import csv

import pytest

from analytics.fragmentation import Machine, Task, fragmentation, total, typical


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
