"""Which GPUs reach each other over NVLink."""

from __future__ import annotations

from collector.telemetry.device import Device, Fabric, Link
from collector.telemetry.islands import direct_links, domain, islands


def bus(index):
    return f"00000000:{0x10 + index:02X}:00.0"


def a_gpu(index, links=(), fabric=None):
    return Device(f"GPU-{index}", index, pci_bus_id=bus(index), links=tuple(links), fabric=fabric)


def to(index, count=1, first=0):
    return [Link(first + n, "gpu", bus(index), 4) for n in range(count)]


def switch(count=18):
    return [Link(n, "switch", None, 4) for n in range(count)]


def test_gpus_on_a_switch_are_one_island():
    assert islands(a_gpu(n, switch()) for n in range(8)) == [[f"GPU-{n}" for n in range(8)]]


def test_pairs_are_islands_of_two():
    gpus = [a_gpu(0, to(1, 12)), a_gpu(1, to(0, 12)), a_gpu(2, to(3, 12)), a_gpu(3, to(2, 12))]
    assert islands(gpus) == [["GPU-0", "GPU-1"], ["GPU-2", "GPU-3"]]
    assert direct_links(gpus) == {("GPU-0", "GPU-1"): 12, ("GPU-2", "GPU-3"): 12}


def test_a_chain_is_one_island():
    gpus = [a_gpu(0, to(1)), a_gpu(1, [*to(0), *to(2, first=1)]), a_gpu(2, to(1))]
    assert islands(gpus) == [["GPU-0", "GPU-1", "GPU-2"]]


def test_a_gpu_without_links_is_alone():
    assert islands([a_gpu(0), a_gpu(1)]) == [["GPU-0"], ["GPU-1"]]


def test_a_link_to_a_gpu_of_another_machine_joins_nothing_here():
    assert islands([a_gpu(0, to(40)), a_gpu(1)]) == [["GPU-0"], ["GPU-1"]]


def test_a_domain_over_nodes_is_cluster_and_clique_once_it_is_up():
    up = Fabric("ab" * 16, 3, "completed")
    assert domain(a_gpu(0, fabric=up)) == ("ab" * 16, 3)
    assert domain(a_gpu(0, fabric=Fabric("ab" * 16, 3, "in_progress"))) is None
    assert domain(a_gpu(0, fabric=Fabric("00" * 16, 0, "completed"))) is None
    assert domain(a_gpu(0)) is None


def test_what_the_driver_says_becomes_islands(read, scenario):
    scenario.set({"count": 4, "gpu.links": 4, "gpu.link_remote": 0})
    scenario.set(
        {"gpu0.link_peer": 1, "gpu1.link_peer": 0, "gpu2.link_peer": 3, "gpu3.link_peer": 2}
    )
    assert [len(island) for island in islands(read().inventory)] == [2, 2]
    scenario.set({"gpu.link_remote": 2, **{f"gpu{n}.link_peer": None for n in range(4)}})
