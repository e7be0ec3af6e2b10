"""Cross-checks and bounds of the collection: energy, the kernel's log, the schedule, memory."""

from __future__ import annotations

import ast
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import collector
from collector.agent.carry import Carry
from collector.agent.schedule import Intervals, Schedule
from collector.agent.sources import unreported
from collector.exporter.own import Labels, device_families
from collector.host.kernel_log import KernelLog, same_bus, xids
from collector.mapping.device_ids import Places
from collector.mapping.kubernetes import PodDevice, holdings
from collector.telemetry.device import Device
from collector.telemetry.energy_check import EnergyCheck
from collector.telemetry.metrics import judge
from collector.telemetry.source import Group
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick, DriverEvent, Tick

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
SLOT = "00000000:3B:00.0"


def a_tick(mono_s, energy_mj, power_mw):
    device = DeviceTick("GPU-a", values={"energy_total_mj": energy_mj, "power_mw": power_mw})
    return Tick(NOW, mono_s, [], [device])


def hour(power_mw, counted_mw, steps=None):
    check = EnergyCheck()
    energy = 1e6
    for mono_s in steps or range(0, 3616, 15):
        check.add(a_tick(float(mono_s), energy + counted_mw * mono_s, power_mw))
    return check.disagreement


def test_a_counter_that_agrees_with_the_power_is_trusted():
    assert hour(300_000, 300_000)["GPU-a"] == pytest.approx(0.0)


def test_a_counter_that_is_far_from_the_power_is_reported():
    assert hour(187_000, 327_000)["GPU-a"] == pytest.approx(1 - 187 / 327)


def test_power_is_not_integrated_over_a_gap():
    """A suspended machine draws nothing, and its clock goes on."""
    check, energy = EnergyCheck(), 1e6
    for mono_s in [*range(0, 1800, 15), *range(90_000, 91_900, 15)]:
        check.add(a_tick(float(mono_s), energy, 300_000.0))
        energy += 300_000.0 * 15
    assert check.disagreement["GPU-a"] < 0.02


def test_a_reset_of_the_counter_is_no_disagreement():
    check = EnergyCheck()
    for mono_s in range(0, 3700, 15):
        base = 1e9 if mono_s < 1800 else 0.0
        check.add(a_tick(float(mono_s), base + 300_000.0 * mono_s, 300_000.0))
    assert check.disagreement["GPU-a"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    "blank", [9223372036854775792, 9223372036854775794, 140737488355328, 2147483632, 4294967295]
)
@pytest.mark.parametrize("metric", ["energy_total_mj", "power_mw", "mem_used_mib", "util_ratio"])
def test_a_blank_of_dcgm_or_nvml_is_never_a_value(metric, blank):
    assert judge(metric, blank) == (None, Status.IMPLAUSIBLE)


@given(st.floats())
def test_a_value_is_within_its_bounds_or_none_at_all(raw):
    value, status = judge("util_ratio", raw, 0.01)
    assert (value is None) == (status is not Status.OK)
    assert value is None or 0.0 <= value <= 1.0


# --- the kernel's log --------------------------------------------------------------------------

LINES = [
    "6,1,2,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
    "3,2,3,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
    "3,3,4,-;NVRM: Xid (PCI:0000:86:00): 31, pid='<unknown>', name=<unknown>",
]


def test_xids_are_found_in_the_kernels_log():
    assert xids(LINES) == [("0000:3b:00", 79), ("0000:86:00", 31)]


def test_two_spellings_of_a_slot_are_one():
    assert same_bus("0000:3b:00", SLOT)
    assert not same_bus("0000:3c:00", SLOT)
    assert not same_bus("0001:3b:00", SLOT)


def test_an_xid_that_only_the_kernel_reports_is_an_event_and_a_known_one_is_not_twice():
    known = DriverEvent(NOW, "GPU-a", 79)
    devices = [Device("GPU-a", 0, pci_bus_id=SLOT)]
    assert unreported(Tick(NOW, 1.0, devices, [], [known]), xids(LINES)) == []
    found = unreported(Tick(NOW, 1.0, devices, []), xids(LINES))
    assert [(e.gpu_uuid, e.code) for e in found] == [("GPU-a", 79)]


def test_a_log_that_may_not_be_read_costs_nothing(tmp_path):
    log = KernelLog(tmp_path / "none")
    assert (log.readable, log.read()) == (False, [])


# --- the schedule ------------------------------------------------------------------------------


def test_the_dear_values_are_read_more_rarely():
    schedule = Schedule(Intervals(5.0, 15.0, 15.0, 60.0, 600.0))
    reads = dict.fromkeys(Group, 0)
    for step in range(120):
        for group in schedule.due(100.0 + step * 5.0):
            reads[group] += 1
    assert reads == {
        Group.LOAD: 120, Group.PROCESS: 40, Group.LINK: 40, Group.HEALTH: 10, Group.TOPOLOGY: 1,
    }  # fmt: skip


def test_a_tick_that_comes_a_little_early_is_on_time():
    schedule = Schedule(Intervals())
    schedule.due(100.0)
    assert Group.LOAD in schedule.due(114.9)


def test_a_value_that_is_read_rarely_stays_in_sight_until_its_next_reading_is_overdue():
    carry = Carry(Intervals())

    def seen(mono_s, **values):
        device = DeviceTick("GPU-a", values=values)
        return carry.over(Tick(NOW, mono_s, [], [device])).devices[0].values

    assert seen(0.0, util_ratio=0.5, ecc_corrected_total=3.0)["ecc_corrected_total"] == 3.0
    later = seen(15.0, power_mw=1.0)
    assert later == {"power_mw": 1.0, "ecc_corrected_total": 3.0}, "and nothing that is read often"
    assert "ecc_corrected_total" not in seen(151.0, power_mw=1.0)


def test_a_lost_gpu_keeps_no_value_from_before():
    carry = Carry(Intervals())
    well = DeviceTick("GPU-a", values={"ecc_corrected_total": 3.0})
    lost = DeviceTick("GPU-a", faults={"device": Status.LOST})
    back = DeviceTick("GPU-a", values={"power_mw": 1.0})
    ticks = [Tick(NOW, 15.0 * n, [], [one]) for n, one in enumerate((well, lost, back))]
    assert [carry.over(tick).devices[0].values for tick in ticks][1:] == [{}, {"power_mw": 1.0}]


# --- what the readers may do -------------------------------------------------------------------


def test_nothing_but_reading_is_asked_of_the_driver():
    called = set()
    package = Path(collector.__file__).parent
    for file in (*package.glob("telemetry/nvml_*.py"), *package.glob("nvml/*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text.startswith("nvml") and text.isidentifier():
                called.add(text)
    changing = ("Set", "Reset", "Clear", "Create", "Destroy", "Modify", "Enable", "Freeze")
    assert len(called) > 30
    suspicious = {
        name for name in called
        if any(word in name.removeprefix("nvmlEventSet") for word in changing)
    }  # fmt: skip
    assert suspicious <= {"nvmlEventSetCreate"}
    assert not any("Prof" in name or "Dcp" in name for name in called), "no profiling lock"


# --- conservation and bounds -------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["GPU-1", "GPU-2"]), st.integers(0, 9)),
        max_size=40,
    ),
    st.integers(0, 12),
)
def test_the_shares_of_a_device_are_never_more_than_the_device(held, advertised):
    from collections import Counter
    from fractions import Fraction

    devices = [PodDevice("ns", pod, "c", "r", f"{gpu}::{n}") for pod, gpu, n in held]
    places = Places(frozenset({"GPU-1", "GPU-2"}), {}, {}, {})
    known = Counter({"GPU-1": advertised})
    found, _ = holdings(devices, known, places, lambda _: False)
    for gpu in ("GPU-1", "GPU-2"):
        parts = [Fraction(h.share_num, h.share_den) for h in found if h.gpu_uuid == gpu]
        assert sum(parts) <= 1


def test_memory_does_not_grow_with_the_processes_and_instances_that_come_and_go(scenario):
    from collector.agent.picture import Picture
    from collector.agent.reader import ReaderState
    from collector.mapping.node import NodeMapper
    from collector.telemetry.rows import sample_rows
    from collector.telemetry.scenario import ScenarioSource

    values = {"count": "4", "gpu.util": "1", "gpu.mem_mib": "9", "gpu.mig": "1"}
    source = ScenarioSource(values, clock=lambda: NOW, monotonic=lambda: 1.0)
    mapper, kept = NodeMapper(), Labels("n1")

    def turn(number):
        values["gpu0.mig0.uuid"] = f"MIG-{number}"
        values["gpu1.proc0"] = f"{1000 + number},C,1,0"
        tick = source.read(frozenset(Group))
        attribution = mapper.attribute(tick)
        sample_rows(tick, attribution, 15.0)
        list(device_families(Picture(ReaderState.READING, "", tick, attribution, 1.0), kept))

    for number in range(300):
        turn(number)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(300, 1300):
        turn(number)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 200_000
