"""From ticks to the rows of the store."""

from __future__ import annotations

from datetime import UTC, datetime

from collector.mapping.attribution import Attribution, Holding, ProcessOwner
from collector.telemetry.outages import Outages
from collector.telemetry.rows import inventory_rows, micros, sample_rows
from collector.telemetry.tick import decode

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
GPU = "GPU-00000000-0000-0000-0000-000000000000"


def rows(tables, name):
    columns = tables[name]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_a_tick_survives_the_pipe(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1,30", "gpu.fabric_state": 3, "xid": "0,31,1", "count": 2})
    read()
    tick = read()
    assert decode(tick.encode()) == tick


def test_a_sample_carries_the_run_of_its_only_holder(read):
    attribution = Attribution((Holding("slurm:17", GPU),))
    assert rows(sample_rows(read(), attribution, 15.0), "sample")[0]["run_id"] == "slurm:17"


def test_a_gpu_with_several_holders_has_no_single_run(read):
    holders = (Holding("pod:a/x", GPU, None, 1, 2), Holding("pod:a/y", GPU, None, 1, 2))
    assert rows(sample_rows(read(), Attribution(holders), 15.0), "sample")[0]["run_id"] is None


def test_a_process_carries_its_user_and_start(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1024,0"})
    attribution = Attribution(owners={77: ProcessOwner(NOW, "ada", "slurm:17")})
    row = rows(sample_rows(read(), attribution, 15.0), "process_sample")[0]
    assert (row["user_name"], row["run_id"], row["started_at"]) == ("ada", "slurm:17", micros(NOW))


def test_a_process_that_is_nobodys_keeps_its_memory_in_the_total(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1024,0"})
    row = rows(sample_rows(read(), Attribution(), 15.0), "process_sample")[0]
    assert (row["run_id"], row["user_name"], row["mem_used_mib"]) == (None, None, 1024.0)


def test_a_process_in_an_instance_is_one_row(read, scenario):
    scenario.set(
        {"gpu.mig": 1, "gpu0.mig0.uuid": "MIG-1", "gpu0.mig0.gi": 1, "gpu0.mig0.mem_mib": 9}
    )
    scenario.set({"gpu.proc0": "77,C,5,0,1,0"})
    found = rows(sample_rows(read(), Attribution(), 15.0), "process_sample")
    assert [(row["pid"], row["mig_uuid"]) for row in found] == [(77, "MIG-1")]


def test_the_mean_of_the_buffer_is_better_than_the_last_reading(read, scenario):
    scenario.set({"gpu.samples": "0", "gpu.sample_clock_us": 1_000_000})
    read()
    scenario.set({"gpu.samples": "90,70", "gpu.sample_clock_us": 3_000_000, "gpu.util": 0})
    assert rows(sample_rows(read(), Attribution(), 15.0), "sample")[0]["util_ratio"] == 0.8


def test_what_did_not_come_is_null_with_its_reason(read, scenario):
    scenario.set({"gpu.util": 999, "error.nvmlDeviceGetTotalEnergyConsumption": 4})
    row = rows(sample_rows(read(), Attribution(), 15.0), "sample")[0]
    assert (row["util_ratio"], row["energy_mj"]) == (None, None)
    reasons = set(row["status"].split(","))
    assert {"util_ratio=implausible", "energy_mj=no_permission"} <= reasons


def test_a_sample_of_a_healthy_gpu_has_no_remark(read):
    assert rows(sample_rows(read(), Attribution(), 15.0), "sample")[0]["status"] is None


def test_a_lost_gpu_still_has_its_row(read, scenario):
    read()
    scenario.set({"gpu0.lost": 1})
    row = rows(sample_rows(read(), Attribution(), 15.0), "sample")[0]
    assert (row["gpu_uuid"], row["status"], row["util_ratio"]) == (GPU, "device=lost", None)


def told(outages, tick):
    events = outages.events(tick)
    return list(zip(events["kind"], events["code"], events["fatal"], strict=True))


def test_a_loss_is_told_of_once_and_so_is_its_end(read, scenario):
    outages = Outages()
    assert told(outages, read()) == []
    scenario.set({"gpu0.lost": 1})
    assert told(outages, read()) == [("gpu_lost", None, True)]
    assert told(outages, read()) == []
    scenario.set({"gpu0.lost": 0})
    assert told(outages, read()) == [("gpu_back", None, False)]
    assert told(outages, read()) == []


def test_an_xid_that_needs_a_reset_is_fatal_until_the_counters_start_over(read, scenario):
    outages = Outages()
    read()
    scenario.set({"xid": "0,119,1", "gpu.util": 0})
    assert told(outages, read()) == [("xid", 119, True)]
    assert told(outages, read()) == []
    scenario.set({"gpu.energy_mj": 5})
    assert told(outages, read()) == [("gpu_back", None, False)]


def test_an_xid_of_a_program_leaves_the_gpu_in_order(read, scenario):
    outages = Outages()
    read()
    scenario.set(xid="0,31,1")
    assert told(outages, read()) == [("xid", 31, False)]
    assert told(outages, read()) == []


def test_a_gpu_that_works_again_after_a_fatal_xid_is_back(read, scenario, clock):
    outages = Outages()
    read()
    scenario.set(xid="0,79,1")
    assert told(outages, read()) == [("xid", 79, True)]
    assert told(outages, read()) == [], "what was running shows use for a moment longer"
    clock.seconds += 60
    assert told(outages, read()) == [("gpu_back", None, False)]


def test_a_platform_that_answers_nothing_has_a_row_and_no_value(read, scenario):
    scenario.only({"count": 1})
    row = rows(sample_rows(read(), Attribution(), 15.0), "sample")[0]
    assert [row[name] for name in ("util_ratio", "mem_used_mib", "power_mw")] == [None] * 3
    assert "util_ratio=not_supported" in row["status"]


def test_the_inventory_counts_gpus_by_model_and_keeps_index_as_an_attribute(read, scenario):
    scenario.set({"count": 3, "gpu2.name": "Tesla T4", "gpu1.minor": 5})
    tables = inventory_rows(NOW, read().inventory, cpus=64, mem_mib=1000)
    assert [(r["gpu_model"], r["gpus"]) for r in rows(tables, "node")] == [
        ("NVIDIA H100 80GB HBM3", 2),
        ("Tesla T4", 1),
    ]
    assert [(r["gpu_index"], r["minor_number"]) for r in rows(tables, "device_seen")] == [
        (0, 0),
        (1, 5),
        (2, 2),
    ]
