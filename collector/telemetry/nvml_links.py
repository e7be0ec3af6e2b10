"""NVLink and PCIe: traffic counters, what is at the other end, fabric and distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from collector.nvml import ALL_LINKS, Field, FieldIds, Nvml, fabric_request, pointer
from collector.telemetry.device import Device, Fabric, Link
from collector.telemetry.metrics import METRICS, judge
from collector.telemetry.nvml_inventory import Opened
from collector.telemetry.nvml_load import POWER_FIELDS, put_fields
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick

_KIB = 1024.0
_LINK_COUNT = 91  # NVML_FI_DEV_NVLINK_LINK_COUNT
_TX_KIB, _RX_KIB = 138, 139  # NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX / _RX
# NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES / _RCV_BYTES (NVLink 5)
_OLD, _NEW = ((_TX_KIB, _RX_KIB), _KIB), ((202, 204), 1.0)
_PCIE = (("pcie_tx_total_bytes", 197), ("pcie_rx_total_bytes", 198))
_TOTALS = (("nvlink_tx_total_bytes", _TX_KIB), ("nvlink_rx_total_bytes", _RX_KIB))
_REMOTE = {0: "gpu", 1: "npu", 2: "switch"}
_FABRIC_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}
_NEAR = {0: "SAME", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


class TrafficReader:
    """Reads traffic counters; remembers per GPU whether its links count in the new way."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._per_link: dict[str, tuple[tuple[int, int], float]] = {}

    def read(
        self, tick: DeviceTick, handle: Any, device: Device, *, each: bool, power: bool
    ) -> None:
        """Put traffic counters into ``tick``: totals, and with ``each`` those of every link.

        ``power``: the power fields too, because one question costs less than two.
        """
        names = [name for name, _ in (*_PCIE, *_TOTALS)]
        also = POWER_FIELDS if power else ()
        fields, unit = self._per_link.get(device.gpu_uuid, _OLD)
        first = device.gpu_uuid not in self._per_link
        wanted = each or first or unit == 1.0  # the new way has no totals but the links' own
        links = [link.link for link in device.links] if wanted else []
        answers, status = self._nvml.fields(handle, _question(tuple(links), fields, also))
        if status is not Status.OK:
            for name in (*names, *(metric for metric, _, _ in also)):
                tick.put(name, None, status)
            return
        put_fields(tick, also, answers[: len(also)])
        answers = answers[len(also) :]
        for name, answer, scale in zip(names, answers, (1.0, 1.0, _KIB, _KIB), strict=False):
            tick.put(name, *_counter(name, answer, scale))
        _put_links(tick, links, answers[len(names) :], unit)
        if links and first:
            if tick.links:
                self._per_link[device.gpu_uuid] = _OLD
            else:
                self._new_way(tick, handle, links)
        elif unit == 1.0:
            _totals_from_links(tick)

    def _new_way(self, tick: DeviceTick, handle: Any, links: list[int]) -> None:
        """Blackwell counts bytes per link, and has no totals."""
        fields, unit = _NEW
        answers, status = self._nvml.fields(handle, _of_links(links, fields))
        if status is Status.OK:
            _put_links(tick, links, answers, unit)
            _totals_from_links(tick)
        self._per_link[tick.gpu_uuid] = _NEW if tick.links else _OLD


@lru_cache(maxsize=64)
def _question(
    links: tuple[int, ...], fields: tuple[int, int], also: tuple[tuple[str, int, int], ...]
) -> FieldIds:
    """``also``, totals, then two counters per link; GPUs of a node ask the same."""
    first = tuple((field, scope) for _, field, scope in also)
    pcie = tuple((field, 0) for _, field in _PCIE)
    totals = tuple((field, ALL_LINKS) for _, field in _TOTALS)
    return first + pcie + totals + _of_links(list(links), fields)


def _of_links(links: list[int], fields: tuple[int, int]) -> FieldIds:
    return tuple((field, link) for link in links for field in fields)


def _counter(name: str, answer: Field, unit: float) -> Field:
    raw, status = answer
    return (None, status) if raw is None else judge(name, raw, unit)


def _put_links(tick: DeviceTick, links: list[int], answers: Sequence[Field], unit: float) -> None:
    most = METRICS["nvlink_tx_total_bytes"].high / unit
    for link, (tx, _), (rx, _) in zip(links, answers[::2], answers[1::2], strict=False):
        if tx is not None and rx is not None and tx <= most and rx <= most:
            tick.links[link] = (tx * unit, rx * unit)


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
    answers, status = nvml.fields(handle, ((_LINK_COUNT, 0),))
    count = int(answers[0][0] or 0) if status is Status.OK else 0
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
