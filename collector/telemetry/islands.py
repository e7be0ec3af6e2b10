"""Groups of GPUs that reach each other over NVLink, inside a node and across nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from collector.telemetry.device import Device

# One node without a fabric manager over it has a cluster id of zeros: it says nothing of others.
_NO_FABRIC = "0" * 32


def islands(devices: Iterable[Device]) -> list[list[str]]:
    """UUIDs of each island, in index order; a GPU without active links is an island of its own.

    A link to a switch reaches every other GPU of the node that has one. Direct links join pairs;
    what is joined through others is one island, too.
    """
    known = list(devices)
    by_bus = {d.pci_bus_id: d.gpu_uuid for d in known if d.pci_bus_id is not None}
    group = {device.gpu_uuid: device.gpu_uuid for device in known}

    def root(uuid: str) -> str:
        while group[uuid] != uuid:
            uuid = group[uuid]
        return uuid

    switched = [d.gpu_uuid for d in known if any(n.remote_type == "switch" for n in d.links)]
    pairs = [(switched[0], other) for other in switched[1:]]
    pairs += [
        (device.gpu_uuid, by_bus[link.remote_pci_bus_id])
        for device in known
        for link in device.links
        if link.remote_pci_bus_id is not None and link.remote_pci_bus_id in by_bus
    ]
    for one, other in pairs:
        group[root(one)] = root(other)
    found: dict[str, list[str]] = {}
    for device in known:
        found.setdefault(root(device.gpu_uuid), []).append(device.gpu_uuid)
    return list(found.values())


def direct_links(devices: Iterable[Device]) -> Mapping[tuple[str, str], int]:
    """Number of direct NVLinks between each pair of GPUs, the smaller UUID first."""
    known = list(devices)
    by_bus = {d.pci_bus_id: d.gpu_uuid for d in known if d.pci_bus_id is not None}
    ends: Counter[tuple[str, str]] = Counter()
    for device in known:
        for link in device.links:
            peer = by_bus.get(link.remote_pci_bus_id or "")
            if peer is not None:
                ends[min(device.gpu_uuid, peer), max(device.gpu_uuid, peer)] += 1
    # Each link was counted from both of its ends.
    return {pair: count // 2 for pair, count in ends.items()}


def domain(device: Device) -> tuple[str, int] | None:
    """The NVLink domain over nodes that the GPU is a working member of; None for none."""
    fabric = device.fabric
    if fabric is None or fabric.state != "completed" or fabric.cluster_uuid == _NO_FABRIC:
        return None
    return fabric.cluster_uuid, fabric.clique_id
