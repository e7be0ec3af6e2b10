"""The collector inside the service, with a real child process on the stub driver."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from collector.agent.reader import ReaderState

GPU = "GPU-00000000-0000-0000-0000-000000000000"


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_gpu_appears_in_the_store_with_its_identity_and_load(
    collector, quick, until, store, stub_library, scenario
):
    scenario.set({"gpu.proc0": f"{os.getpid()},C,4096,37"})
    made = collector(quick(library=stub_library))
    until(lambda: store.value("SELECT count(*) FROM sample") >= 2, "two samples")
    row = store.rows("SELECT * FROM sample ORDER BY ts LIMIT 1")[0]
    assert (row["gpu_uuid"], row["util_ratio"], row["power_mw"]) == (GPU, 0.4, 350_000.0)
    assert row["mem_used_mib"] == 10240.0
    assert store.rows("SELECT gpu_uuid, raw_name FROM device") == [
        {"gpu_uuid": GPU, "raw_name": "NVIDIA H100 80GB HBM3"}
    ]
    assert store.value("SELECT gpus FROM node WHERE valid_to IS NULL") == 1
    process = store.rows("SELECT * FROM process_sample LIMIT 1")[0]
    assert (process["pid"], process["mem_used_mib"]) == (os.getpid(), 4096.0)
    assert process["started_at"] is not None
    assert made.words() == "reading 1 GPUs of n1"


def test_without_a_driver_the_state_says_so_in_words(
    collector, quick, until, stub_library, scenario
):
    scenario.set({"error.nvmlInit": 12})
    made = collector(quick(library=stub_library))
    until(lambda: made.picture.state is ReaderState.NO_DRIVER)
    assert "no NVIDIA driver library found" in made.words()
    scenario.set({"error.nvmlInit": None})
    until(lambda: made.picture.state is ReaderState.READING, "a driver that came later")


def test_a_call_that_never_returns_is_ended_reported_and_survived(
    collector, quick, until, store, stub_library, scenario
):
    made = collector(quick(library=stub_library))
    until(lambda: made.picture.ticks >= 2)
    scenario.set({"gpu.hang.nvmlDeviceGetPowerUsage": 3600})
    until(lambda: made.picture.hangs >= 1, "the hang is noticed")
    assert "nvmlDeviceGetPowerUsage has not returned" in made.picture.message
    assert made.words().startswith("collector hung")
    scenario.set({"gpu.hang.nvmlDeviceGetPowerUsage": None})
    before = made.picture.ticks
    until(lambda: made.picture.ticks >= before + 2, "ticks after the hang")


def test_a_reader_that_is_killed_is_started_again(collector, quick, until, stub_library, scenario):
    made = collector(quick(library=stub_library))
    until(lambda: made.picture.ticks >= 1)
    os.kill(made._collection._reader.pid, signal.SIGKILL)
    until(lambda: made.picture.starts >= 2)
    before = made.picture.ticks
    until(lambda: made.picture.ticks > before)


def test_the_reader_is_a_new_interpreter_and_no_fork(
    collector, quick, until, stub_library, scenario
):
    made = collector(quick(library=stub_library))
    until(lambda: made.picture.ticks >= 1)
    command = Path(f"/proc/{made._collection._reader.pid}/cmdline").read_bytes().split(b"\0")
    assert command[1:3] == [b"-m", b"collector.agent.child"]


def test_a_driver_that_goes_away_and_comes_back_is_found_again(
    collector, quick, until, stub_library, scenario
):
    made = collector(quick(library=stub_library))
    until(lambda: made.picture.ticks >= 1)
    scenario.set(driver_gone=1)
    until(lambda: made.picture.state is ReaderState.DRIVER_GONE)
    scenario.set(driver_gone=None)
    until(lambda: made.picture.state is ReaderState.READING)


def test_stopping_ends_the_reader_even_inside_a_call(
    collector, quick, until, stub_library, scenario
):
    scenario.set({"hang.nvmlDeviceGetCount_v2": 3600})
    made = collector(quick(library=stub_library, call_deadline_s=600.0))
    until(lambda: made._collection._reader.pid is not None)
    pid = made._collection._reader.pid
    assert made.stop(10.0)
    until(lambda: not alive(pid))


def test_a_batch_without_room_is_kept_and_offered_again(collector, quick, until, scenario):
    taken, refusing = [], [True]

    def deliver(batch):
        if refusing:
            raise RuntimeError("no room")
        taken.append(batch.sequence)

    made = collector(quick(kind="scenario", path=str(scenario.path)), deliver=deliver)
    until(lambda: made.picture.undelivered >= 2)
    refusing.clear()
    until(lambda: len(taken) >= 3)
    assert taken == list(range(1, len(taken) + 1))


@pytest.mark.parametrize("count", [1, 16])
def test_a_made_up_node_goes_the_same_way(collector, quick, until, store, scenario, count):
    scenario.set(count=count)
    collector(quick(kind="scenario", path=str(scenario.path)))
    until(lambda: store.value("SELECT count(DISTINCT gpu_uuid) FROM sample") == count)
