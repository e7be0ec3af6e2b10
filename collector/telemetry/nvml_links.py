"""NVLink and PCIe: traffic counters, what is at the other end, fabric and distances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from collector.nvml import (
    ALL_LINKS,
    Nvml,
    fabric_request,
    field_number,
    field_status,
    pointer,
)
from collector.telemetry.device import Device, Fabric, Link
from collector.telemetry.metrics import judge
from collector.telemetry.nvml_inventory import Opened
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick

_KIB = 1024.0
_LINK_COUNT = 91  # NVML_FI_DEV_NVLINK_LINK_COUNT
_TX_KIB, _RX_KIB = 138, 139  # NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX / _RX
_TX_BYTES, _RX_BYTES = 202, 204  # NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES / _RCV_BYTES (NVLink 5)
_PCIE = (("pcie_tx_total_bytes", 197), ("pcie_rx_total_bytes", 198))
_TOTALS = (("nvlink_tx_total_bytes", _TX_KIB), ("nvlink_rx_total_bytes", _RX_KIB))
_REMOTE = {0: "gpu", 1: "npu", 2: "switch"}
_FABRIC_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}
_NEAR = {0: "SAME", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


def read_traffic(nvml: Nvml, tick: DeviceTick, handle: Any, device: Device) -> None:
    """Put traffic counters into ``tick``: totals, and per active link."""
    links = [link.link for link in device.links]
    asked = [(field, 0) for _, field in _PCIE] + [(field, ALL_LINKS) for _, field in _TOTALS]
    asked += [(field, link) for link in links for field in (_TX_KIB, _RX_KIB)]
    asked += [(field, link) for link in links for field in (_TX_BYTES, _RX_BYTES)]
    answers, status = nvml.call("nvmlDeviceGetFieldValues", handle, asked)
    names = [name for name, _ in (*_PCIE, *_TOTALS)]
    if status is not Status.OK:
        for name in (*names, "pcie_replays_total"):
            tick.put(name, None, status)
        return
    for name, answer, unit in zip(names, answers, (1.0, 1.0, _KIB, _KIB), strict=False):
        tick.put(name, *_counter(name, answer, unit))
    per_link = answers[len(names) :]
    _per_link(tick, links, per_link[: 2 * len(links)], _KIB)
    if not tick.links:
        _per_link(tick, links, per_link[2 * len(links) :], 1.0)
        _totals_from_links(tick)
    replays, status = nvml.call("nvmlDeviceGetPcieReplayCounter", handle)
    if status is Status.OK:
        replays, status = judge("pcie_replays_total", replays)
    tick.put("pcie_replays_total", replays, status)


def _counter(name: str, answer: Any, unit: float) -> tuple[float | None, Status]:
    status = field_status(answer)
    raw = field_number(answer) if status is Status.OK else None
    return (None, status) if raw is None else judge(name, raw, unit)


def _per_link(tick: DeviceTick, links: list[int], answers: Any, unit: float) -> None:
    for position, link in enumerate(links):
        tx, tx_status = _counter("nvlink_tx_total_bytes", answers[2 * position], unit)
        rx, rx_status = _counter("nvlink_rx_total_bytes", answers[2 * position + 1], unit)
        if tx is not None and rx is not None and tx_status is rx_status is Status.OK:
            tick.links[link] = (tx, rx)


def _totals_from_links(tick: DeviceTick) -> None:
    if not tick.links or "nvlink_tx_total_bytes" in tick.values:
        return
    for name, side in (("nvlink_tx_total_bytes", 0), ("nvlink_rx_total_bytes", 1)):
        tick.faults.pop(name, None)
        tick.values[name] = sum(pair[side] for pair in tick.links.values())


def read_topology(nvml: Nvml, opened: list[Opened]) -> None:
    """Fill links, fabric and distances into the devices of ``opened``."""
    reachable = [one for one in opened if one.handle is not None]
    for one in reachable:
        near = {
            other.device.gpu_uuid: level
            for other in reachable
            if other is not one and (level := _distance(nvml, one, other)) is not None
        }
        one.device = replace(
            one.device,
            links=_links(nvml, one.handle),
            fabric=_fabric(nvml, one.handle),
            near=near,
        )


def _distance(nvml: Nvml, one: Opened, other: Opened) -> str | None:
    level, status = nvml.call("nvmlDeviceGetTopologyCommonAncestor", one.handle, other.handle)
    return _NEAR.get(int(level)) if status is Status.OK else None


def _links(nvml: Nvml, handle: Any) -> tuple[Link, ...]:
    answers, status = nvml.call("nvmlDeviceGetFieldValues", handle, [(_LINK_COUNT, 0)])
    if status is not Status.OK or field_status(answers[0]) is not Status.OK:
        return ()
    count = int(field_number(answers[0]) or 0)
    found = (_link(nvml, handle, number) for number in range(min(count, 72)))
    return tuple(link for link in found if link is not None)


def _link(nvml: Nvml, handle: Any, number: int) -> Link | None:
    active, status = nvml.call("nvmlDeviceGetNvLinkState", handle, number)
    if status is not Status.OK or not active:
        return None
    kind, _ = nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", handle, number)
    remote = _REMOTE.get(kind, "unknown")
    bus_id = None
    if remote == "gpu":
        pci, _ = nvml.call("nvmlDeviceGetNvLinkRemotePciInfo", handle, number)
        raw = None if pci is None else pci.busId
        bus_id = raw.decode("ascii", "replace") if isinstance(raw, bytes) else raw
    version, _ = nvml.call("nvmlDeviceGetNvLinkVersion", handle, number)
    return Link(number, remote, bus_id, version)


def _fabric(nvml: Nvml, handle: Any) -> Fabric | None:
    info = fabric_request()
    _, status = nvml.call("nvmlDeviceGetGpuFabricInfoV", handle, pointer(info))
    state = _FABRIC_STATES.get(int(info.state)) if status is Status.OK else None
    if state is None:
        return None
    return Fabric(bytes(info.clusterUuid).hex(), int(info.cliqueId), state, int(info.healthMask))
