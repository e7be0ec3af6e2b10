"""What the node part of the doctor says, with and without a driver."""

from __future__ import annotations

import pytest

from collector.agent.doctor import examine, running
from collector.agent.reader import ReaderSettings


@pytest.fixture
def findings(tmp_path):
    def look(**reader):
        settings = ReaderSettings(**reader)
        return list(examine(settings, proc=tmp_path, sys=tmp_path / "sys", timeout_s=15.0))

    return look


def of(found, check):
    return [one for one in found if one.check == check]


def test_a_node_without_a_driver_is_as_it_should_be_on_some_machines(
    findings, stub_library, scenario
):
    scenario.set({"error.nvmlInit": 12})
    driver = of(findings(library=stub_library), "driver")[0]
    assert driver.state == "absent"
    assert "no NVIDIA driver library found" in driver.found
    assert driver.remedy


def test_a_driver_that_does_not_load_is_a_failure_with_the_remedy(findings, stub_library, scenario):
    scenario.set({"error.nvmlInit": 18})
    driver = of(findings(library=stub_library), "driver")[0]
    assert driver.state == "failed"
    assert "nvidia-smi" in driver.remedy


def test_a_driver_that_hangs_is_found_out_in_time(findings, stub_library, scenario):
    scenario.set({"hang.nvmlDeviceGetCount_v2": 600})
    settings = ReaderSettings(library=stub_library, call_deadline_s=1.0)
    driver = next(examine(settings, timeout_s=6.0))
    assert driver.state == "failed"
    assert "nvmlDeviceGetCount has not returned" in driver.found


def test_gpus_are_named_with_what_is_wrong_with_them(findings, stub_library, scenario):
    scenario.set({"count": 3, "gpu1.lost": 1})
    found = findings(library=stub_library)
    assert [one.found for one in of(found, "gpu") if one.state == "ok"] == [
        "2 x NVIDIA H100 80GB HBM3"
    ]
    assert any("lost" in one.found and one.remedy for one in of(found, "gpu"))


def test_a_missing_permission_is_named_with_what_it_costs(findings, stub_library, scenario):
    scenario.set({"error.nvmlDeviceGetTotalEnergyConsumption": 4})
    found = of(findings(library=stub_library), "permissions")[0]
    assert "energy_total_mj" in found.found
    assert "CAP_SYS_ADMIN" in found.remedy


def test_mig_without_gpm_says_plainly_that_utilisation_is_not_to_be_had(
    findings, stub_library, scenario
):
    scenario.set({"gpu.mig": 1, "gpu0.mig0.uuid": "MIG-1", "gpu0.mig0.mem_mib": 1})
    found = of(findings(library=stub_library), "mig")[0]
    assert found.found == "MIG utilization is not available on this GPU"


def test_another_exporter_on_the_node_is_found_by_its_program(tmp_path, findings, scenario):
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "comm").write_text("dcgm-exporter\n")
    assert running(tmp_path, frozenset({"dcgm-exporter"})) == ["dcgm-exporter"]
    found = of(findings(kind="scenario", path=str(scenario.path)), "exporters")[0]
    assert "two exporters with the same names double every sum" in found.remedy


def test_each_missing_capability_is_named_with_what_it_costs(tmp_path, findings, scenario):
    (tmp_path / "self").mkdir()
    # All but 19 (SYS_PTRACE) and 34 (SYSLOG).
    mask = (1 << 41) - 1 & ~(1 << 19) & ~(1 << 34)
    (tmp_path / "self/status").write_text(f"Name:\tx\nCapEff:\t{mask:016x}\n")
    found = of(findings(kind="scenario", path=str(scenario.path)), "permissions")
    assert [one.found for one in found] == ["CAP_SYS_PTRACE is missing", "CAP_SYSLOG is missing"]
    assert "known by its user only" in found[0].remedy
    assert "Xids" in found[1].remedy


def test_what_of_the_host_cannot_be_read_is_named_with_what_it_costs(findings, scenario, tmp_path):
    found = findings(kind="scenario", path=str(scenario.path))
    assert "CPU, memory and pressure of jobs stay unknown" in of(found, "control groups")[0].remedy
    assert "a crowded network is not seen" in of(found, "network")[0].remedy
    assert "waiting for CPU, memory or disk is not seen" in of(found, "pressure")[0].remedy
    card = tmp_path / "sys/class/net/eth0"
    (card / "device").mkdir(parents=True)
    (card / "statistics").mkdir()
    (card / "statistics/rx_bytes").write_text("1")
    (card / "statistics/tx_bytes").write_text("2")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu")
    found = findings(kind="scenario", path=str(scenario.path))
    assert of(found, "network") == of(found, "control groups") == []


def test_the_driver_is_named_with_the_version_of_the_binding(findings, stub_library):
    """A binding that misreads its driver shows in scrambled process ids; both versions tell."""
    found = of(findings(library=stub_library), "driver")[0]
    assert found.found.startswith("version 590.48.01, 1 GPUs, binding 13.")
