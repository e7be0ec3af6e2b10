"""A made-up /proc and /sys: what waits for CPU, memory, disk or a crowded network is told apart."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.host import pressure, usage
from collector.host.network import Network
from collector.host.sampler import HostSampler
from collector.mapping.attribution import Attribution
from collector.mapping.cgroup import owner_path

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
JOB = "/system.slice/slurmstepd.scope/job_17"


class Node:
    """The files of a node."""

    def __init__(self, root):
        self.proc, self.sys = root / "proc", root / "sys"
        self.cgroups = root / "cgroup"
        self.put(self.proc / "meminfo", "MemTotal: 4096000 kB\nMemAvailable: 1024000 kB\n")
        self.cpu(0)
        for name in pressure.RESOURCES:
            self.put(
                self.proc / "pressure" / name, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            )

    def put(self, file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cpu(self, busy_s, waited_s=0):
        ticks = int(busy_s * 100)
        line = f"cpu {ticks} 0 0 5 {int(waited_s * 100)} 0 0 0 0 0\n"
        self.put(self.proc / "stat", line + "cpu0 1\ncpu1 1\nintr 5\n")

    def stall(self, name, total_us):
        self.put(
            self.proc / "pressure" / name,
            f"some avg10=1 avg60=1 avg300=1 total={total_us}\nfull total=9\n",
        )

    def group(self, path, cpu_us, memory):
        folder = self.cgroups / path.lstrip("/")
        self.put(folder / "cpu.stat", f"usage_usec {cpu_us}\nuser_usec 1\n")
        self.put(folder / "memory.current", str(memory))
        self.put(folder / "memory.max", "max")
        self.put(folder / "cpuset.cpus.effective", "0-3,8")
        self.put(folder / "io.pressure", "some avg10=0 avg60=0 avg300=0 total=0\n")

    def port(self, name, received, sent, state="4: ACTIVE"):
        folder = self.sys / "class/infiniband" / name / "ports/1"
        self.put(folder / "state", state)
        self.put(folder / "counters/port_rcv_data", str(received))
        self.put(folder / "counters/port_xmit_data", str(sent))

    def card(self, name, received, sent, physical=True):
        folder = self.sys / "class/net" / name
        self.put(folder / "statistics/rx_bytes", str(received))
        self.put(folder / "statistics/tx_bytes", str(sent))
        if physical:
            (folder / "device").mkdir()


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.fixture
def sampler(node):
    return HostSampler(proc=node.proc, sys=node.sys, cgroups=node.cgroups)


def read(sampler, mono_s, **cgroups):
    rows = sampler.read(NOW, mono_s, Attribution(cgroups=cgroups), 15.0)
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


def test_cpu_is_the_cores_in_use_since_the_tick_before_and_waiting_is_no_use(node, sampler):
    first = read(sampler, 100.0)[0]
    node.cpu(busy_s=20, waited_s=500)
    second = read(sampler, 110.0)[0]
    assert (first["cpu_used"], second["cpu_used"]) == (None, 2.0)
    assert (second["cpus"], second["mem_used_mib"], second["mem_total_mib"]) == (2, 3000.0, 4000.0)


@pytest.mark.parametrize(
    ("resource", "column"),
    [("cpu", "cpu_pressure_ratio"), ("memory", "mem_pressure_ratio"), ("io", "io_pressure_ratio")],
)
def test_pressure_is_the_part_of_time_in_which_somebody_waited(node, sampler, resource, column):
    read(sampler, 100.0)
    node.stall(resource, 2_500_000)
    assert read(sampler, 110.0)[0][column] == 0.25


def test_a_kernel_without_pressure_gives_unknown_and_not_zero(node, sampler):
    for name in pressure.RESOURCES:
        (node.proc / "pressure" / name).unlink()
    read(sampler, 100.0)
    assert read(sampler, 110.0)[0]["io_pressure_ratio"] is None


def test_a_job_has_its_own_cpu_and_memory(node, sampler):
    node.group(JOB, 0, 2**30)
    read(sampler, 100.0, **{"slurm:17": JOB})
    node.group(JOB, 30_000_000, 2**31)
    rows = read(sampler, 110.0, **{"slurm:17": JOB})
    assert [row["run_id"] for row in rows] == [None, "slurm:17"]
    job = rows[1]
    assert (job["cpu_used"], job["cpus"], job["mem_used_mib"]) == (3.0, 5, 2048.0)
    assert (job["mem_total_mib"], job["net_rx_bytes"]) == (None, None)


def test_the_old_hierarchy_is_read_where_the_new_one_is_not(node):
    path = "/slurm/uid_1/job_7"
    node.put(node.cgroups / "cpu,cpuacct/slurm/uid_1/job_7/cpuacct.usage", "3000000000")
    node.put(node.cgroups / "memory/slurm/uid_1/job_7/memory.usage_in_bytes", str(2**30))
    node.put(node.cgroups / "memory/slurm/uid_1/job_7/memory.limit_in_bytes", str(2**63 - 4096))
    found = usage.group_usage(node.cgroups, path)
    assert (found.cpu_s, found.mem_used_mib, found.mem_total_mib) == (3.0, 1024.0, None)


def test_a_group_that_ended_has_no_row(node, sampler):
    assert [row["run_id"] for row in read(sampler, 100.0, **{"slurm:17": JOB})] == [None]


def test_a_counter_that_went_back_is_unknown_and_never_negative(node, sampler):
    node.cpu(100)
    read(sampler, 100.0)
    node.cpu(5)
    assert read(sampler, 110.0)[0]["cpu_used"] is None


def test_a_clock_that_stands_still_divides_nothing_by_zero(sampler):
    read(sampler, 100.0)
    assert read(sampler, 100.0)[0]["cpu_used"] is None


def test_infiniband_counts_lanes_of_four_octets_and_only_ports_that_are_up(node):
    node.port("mlx5_0", 100, 10)
    node.port("mlx5_1", 200, 20)
    node.port("mlx5_2", 9999, 9999, state="1: DOWN")
    node.card("eth0", 7, 7)
    assert Network(node.sys).counters() == (1200.0, 120.0)


def test_without_a_fast_network_the_nodes_own_cards_are_counted_and_no_bridge(node):
    node.card("eth0", 100, 10)
    node.card("docker0", 100, 10, physical=False)
    assert Network(node.sys).counters() == (100.0, 10.0)


def test_without_any_card_the_traffic_is_unknown(node):
    assert Network(node.sys).counters() == (None, None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{JOB}/step_0/user/task_0", JOB),
        ("/slurm/uid_1000/job_7/step_batch", "/slurm/uid_1000/job_7"),
        (
            "/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_0",
            "/system.slice/slurmstepd.scope/s8FXKTA79XAR00",
        ),
        (
            "/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666/abc",
            "/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666",
        ),
        (f"/docker/{'ab' * 32}/inner", f"/docker/{'ab' * 32}"),
        (
            f"/machine.slice/libpod-{'ab' * 32}.scope/container",
            f"/machine.slice/libpod-{'ab' * 32}.scope",
        ),
        ("/user.slice/user-1000.slice", None),
    ],
)
def test_the_group_of_an_owner_holds_all_of_it(path, expected):
    assert owner_path(path) == expected


def test_the_real_node_gives_a_row(tmp_path):
    sampler = HostSampler()
    sampler.read(NOW, 1.0, Attribution(), 15.0)
    rows = sampler.read(NOW, 2.0, Attribution(), 15.0)
    assert rows["mem_total_mib"][0] > 0
    assert rows["cpus"][0] >= 1
