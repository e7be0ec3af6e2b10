"""Our own metrics of a node: base units, ratios from 0 to 1, counters in `_total`.

Identity is in one info series; every other series carries the node and the UUID only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collector.agent.picture import Picture
from collector.exporter.family import Family, labels
from collector.telemetry.device import UNSEEN, Device
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick

_MIB = 2.0**20
_MEGA = 1e6
_MILLI = 1e-3
_NANO = 1e-9


@dataclass(frozen=True, slots=True)
class Published:
    """One metric of a tick under its public name; ``unit`` turns it into the base unit."""

    metric: str
    name: str
    help: str
    unit: float = 1.0

    @property
    def kind(self) -> str:
        """Counter or gauge, by the name as the convention has it."""
        return "counter" if self.name.endswith("_total") else "gauge"


PUBLISHED = (
    Published("util_ratio", "utilization_ratio", "Time with a kernel running, of the last sample period."),
    Published("util_mean_ratio", "utilization_mean_ratio", "Mean of every driver sample since the last reading."),
    Published("mem_util_ratio", "memory_busy_ratio", "Time in which memory was read or written."),
    Published("encoder_ratio", "encoder_ratio", "Load of the video encoder."),
    Published("decoder_ratio", "decoder_ratio", "Load of the video decoder."),
    Published("gr_active_ratio", "engine_active_ratio", "Time with any engine at work (GPM)."),
    Published("sm_active_ratio", "sm_active_ratio", "Mean part of the SMs with a warp (GPM)."),
    Published("sm_occupancy_ratio", "sm_occupancy_ratio", "Warps resident, of the most possible (GPM)."),
    Published("tensor_active_ratio", "tensor_active_ratio", "Tensor pipes at work (GPM)."),
    Published("dram_active_ratio", "dram_active_ratio", "Memory bandwidth in use (GPM)."),
    Published("fp64_active_ratio", "fp64_active_ratio", "FP64 pipes at work (GPM)."),
    Published("fp32_active_ratio", "fp32_active_ratio", "FP32 pipes at work (GPM)."),
    Published("fp16_active_ratio", "fp16_active_ratio", "FP16 pipes at work (GPM)."),
    Published("mem_total_mib", "memory_bytes", "Memory, the driver's part included.", _MIB),
    Published("mem_used_mib", "memory_used_bytes", "Memory in use, without the driver's part.", _MIB),
    Published("mem_reserved_mib", "memory_reserved_bytes", "Memory that the driver keeps.", _MIB),
    Published("power_mw", "power_watts", "Power of the board; averaged or instant as the model has it.", _MILLI),
    Published("power_average_mw", "power_average_watts", "Power averaged over a second.", _MILLI),
    Published("power_instant_mw", "power_instant_watts", "Power at the instant.", _MILLI),
    Published("power_module_mw", "power_module_watts", "Power of the module, its CPU included.", _MILLI),
    Published("power_limit_mw", "power_limit_watts", "Power cap in force.", _MILLI),
    Published("energy_total_mj", "energy_joules_total", "Energy since the driver was loaded.", _MILLI),
    Published("temperature_c", "temperature_celsius", "Temperature of the chip."),
    Published("mem_temperature_c", "memory_temperature_celsius", "Temperature of the memory."),
    Published("sm_clock_mhz", "sm_clock_hertz", "Clock of the SMs.", _MEGA),
    Published("mem_clock_mhz", "memory_clock_hertz", "Clock of the memory.", _MEGA),
    Published("clocks_event_reasons", "clocks_event_reasons", "Why clocks are held down, as NVML's bit mask."),
    Published("nvlink_tx_total_bytes", "nvlink_transmit_bytes_total", "Bytes sent over all NVLinks since driver load."),
    Published("nvlink_rx_total_bytes", "nvlink_receive_bytes_total", "Bytes received over all NVLinks since driver load."),
    Published("pcie_tx_total_bytes", "pcie_transmit_bytes_total", "Bytes sent over PCIe."),
    Published("pcie_rx_total_bytes", "pcie_receive_bytes_total", "Bytes received over PCIe."),
    Published("pcie_replays_total", "pcie_replays_total", "PCIe transfers that had to be repeated."),
    Published("power_slowdown_ns_total", "power_slowdown_seconds_total", "Time held down by the power cap.", _NANO),
    Published("thermal_slowdown_ns_total", "thermal_slowdown_seconds_total", "Time held down by heat.", _NANO),
    Published("sync_boost_slowdown_ns_total", "sync_boost_slowdown_seconds_total", "Time held down by sync boost.", _NANO),
    Published("board_limit_slowdown_ns_total", "board_limit_slowdown_seconds_total", "Time held down by the board.", _NANO),
    Published("low_util_slowdown_ns_total", "low_utilization_slowdown_seconds_total", "Time held down for want of work.", _NANO),
    Published("reliability_slowdown_ns_total", "reliability_slowdown_seconds_total", "Time held down for reliability.", _NANO),
    Published("sw_thermal_slowdown_ns_total", "software_thermal_slowdown_seconds_total", "Time held down by the driver for heat.", _NANO),
    Published("hw_thermal_slowdown_ns_total", "hardware_thermal_slowdown_seconds_total", "Time held down by hardware for heat.", _NANO),
    Published("hw_brake_slowdown_ns_total", "power_brake_slowdown_seconds_total", "Time held down by the power brake.", _NANO),
    Published("ecc_corrected_total", "ecc_corrected_errors_total", "Memory errors corrected since driver load."),
    Published("ecc_uncorrected_total", "ecc_uncorrected_errors_total", "Memory errors not corrected since driver load."),
    Published("ecc_corrected_lifetime_total", "ecc_corrected_lifetime_errors_total", "Memory errors corrected, ever."),
    Published("ecc_uncorrected_lifetime_total", "ecc_uncorrected_lifetime_errors_total", "Memory errors not corrected, ever."),
    Published("remapped_rows_correctable_total", "rows_remapped_correctable_total", "Memory rows replaced for correctable errors."),
    Published("remapped_rows_uncorrectable_total", "rows_remapped_uncorrectable_total", "Memory rows replaced for uncorrectable errors."),
    Published("remap_pending", "row_remap_pending", "1 while a row waits for a reset to be replaced."),
    Published("remap_failed", "row_remap_failed", "1 when a row could not be replaced: change the board."),
)  # fmt: skip


class Labels:
    """Label texts, kept between scrapes: they change only when the inventory does."""

    def __init__(self, node: str) -> None:
        self.node = node
        self._kept: dict[tuple[str, str | None], str] = {}
        self._functions: dict[str, str] = {}
        self._links: dict[str, tuple[tuple[int, ...], list[str]]] = {}
        self.inventory: tuple[list[Device], list[Family]] | None = None

    def of(self, device: DeviceTick) -> str:
        """Node, UUID, and the instance's UUID if it is one."""
        key = (device.gpu_uuid, device.mig_uuid)
        if key not in self._kept:
            self._kept[key] = labels(
                {"node": self.node, "gpu_uuid": device.gpu_uuid, "mig_uuid": device.mig_uuid}
            )
        return self._kept[key]

    def of_function(self, function: str) -> str:
        """Node and driver function; there are some dozens of those, for ever."""
        if function not in self._functions:
            self._functions[function] = labels({"node": self.node, "function": function})
        return self._functions[function]

    def of_links(self, device: DeviceTick) -> list[str]:
        """Node, UUID and link, for each link of the device."""
        links = tuple(device.links)
        known = self._links.get(device.gpu_uuid)
        if known is None or known[0] != links:
            head = self.of(device)[:-1]
            known = (links, [f'{head},link="{link}"}}' for link in links])
            self._links[device.gpu_uuid] = known
        return known[1]

    def forget_others(self, devices: list[DeviceTick]) -> None:
        """Keep the texts of these only: instances come and go, and texts must not pile up."""
        if len(self._kept) > 2 * len(devices) + 16:
            present = {(device.gpu_uuid, device.mig_uuid) for device in devices}
            self._kept = {key: text for key, text in self._kept.items() if key in present}


def device_families(picture: Picture, kept: Labels) -> Iterator[Family]:
    """Every value of every device; what a tick does not have has no series."""
    if picture.tick is None:
        return
    kept.forget_others(picture.tick.devices)
    ticks = [(kept.of(d), d) for d in picture.tick.devices if not d.gpu_uuid.startswith(UNSEEN)]
    for published in PUBLISHED:
        family = Family(f"unstrand_gpu_{published.name}", published.kind, published.help)
        metric, unit = published.metric, published.unit
        family.samples = [
            (text, device.values[metric] * unit)
            for text, device in ticks
            if metric in device.values
        ]
        yield family
    yield from _links(picture, kept)
    processes = Family("unstrand_gpu_processes", "gauge", "Processes on the device.")
    missing = Family("unstrand_gpu_missing_values", "gauge", "Values that did not come, by reason.")
    for text, device in ticks:
        if device.processes is not None:
            processes.add(text, float(len(device.processes)))
        counts: dict[Status, int] = {}
        for reason in device.faults.values():
            counts[reason] = counts.get(reason, 0) + 1
        for reason, count in counts.items():
            missing.add(f'{text[:-1]},reason="{reason}"}}', float(count))
    yield from (processes, missing)


def _links(picture: Picture, kept: Labels) -> Iterator[Family]:
    sent = Family(
        "unstrand_gpu_nvlink_link_transmit_bytes_total", "counter", "Bytes sent over one NVLink."
    )
    got = Family(
        "unstrand_gpu_nvlink_link_receive_bytes_total", "counter", "Bytes received over one NVLink."
    )
    for device in picture.tick.devices if picture.tick is not None else ():
        if not device.links:
            continue
        texts, pairs = kept.of_links(device), device.links.values()
        sent.samples.extend([(text, tx) for text, (tx, _) in zip(texts, pairs, strict=True)])
        got.samples.extend([(text, rx) for text, (_, rx) in zip(texts, pairs, strict=True)])
    yield from (sent, got)


def inventory_families(picture: Picture, kept: Labels) -> list[Family]:
    """Identity and presence: a lost GPU stays, with 0 and its reason.

    Made anew only when the inventory is: between changes every tick has the same list.
    """
    inventory = picture.tick.inventory if picture.tick is not None else []
    if kept.inventory is None or kept.inventory[0] is not inventory:
        kept.inventory = (inventory, _inventory_families(inventory, kept))
    return kept.inventory[1]


def _inventory_families(inventory: list[Device], kept: Labels) -> list[Family]:
    info = Family("unstrand_gpu_info", "gauge", "1 per GPU, with its identity.")
    mig = Family("unstrand_gpu_mig_info", "gauge", "1 per MIG instance, with its shape.")
    up = Family("unstrand_gpu_up", "gauge", "1 if the GPU answers, 0 if it is lost or shut.")
    status = Family(
        "unstrand_gpu_status_info", "gauge", "1 per GPU that does not answer, with why."
    )
    for device in inventory:
        key = {"node": kept.node, "gpu_uuid": device.gpu_uuid}
        if device.gpu_uuid.startswith(UNSEEN):
            key = {"node": kept.node, "gpu_index": str(device.gpu_index)}
        ok = device.status is Status.OK
        up.add(labels(key), float(ok))
        if not ok:
            status.add(labels({**key, "status": str(device.status)}), 1.0)
        if device.name is not None:
            info.add(labels(key | _identity(device)), 1.0)
        for instance in device.mig:
            shape = {
                "mig_uuid": instance.mig_uuid, "profile": instance.profile,
                "gpu_instance_id": instance.gpu_instance_id,
                "compute_instance_id": instance.compute_instance_id,
            }  # fmt: skip
            mig.add(labels({**key, **shape}), 1.0)
    return [info, mig, up, status]


def _identity(device: Device) -> dict[str, str]:
    found = {
        "gpu_index": device.gpu_index, "minor_number": device.minor_number,
        "pci_bus_id": device.pci_bus_id, "model": device.name,
        "driver_version": device.driver_version,
        "memory_kind": "unified" if device.mem_unified else "own",
    }  # fmt: skip
    return {name: str(value) for name, value in found.items() if value is not None}
