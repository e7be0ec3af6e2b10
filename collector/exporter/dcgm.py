"""The names and labels of dcgm-exporter, for dashboards that exist already (Grafana 12239).

Behind a flag: next to a dcgm-exporter the same names would be there twice and double every sum.
Values of a board are given once, on the board: a MIG instance has no power of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from collector.agent.picture import Picture
from collector.exporter.family import Family, labels
from collector.mapping.attribution import Holding
from collector.telemetry.device import UNSEEN, Device, MigInstance
from collector.telemetry.tick import DeviceTick


class HostnameLabel(StrEnum):
    """The label was renamed upstream; old dashboards use one, new ones the other."""

    UPPER = "Hostname"
    LOWER = "hostname"
    BOTH = "both"


# (name, metric of ours, factor to DCGM's unit, counter, help)
_NAMES = (
    ("DCGM_FI_DEV_SM_CLOCK", "sm_clock_mhz", 1.0, False, "SM clock frequency (in MHz)."),
    ("DCGM_FI_DEV_MEM_CLOCK", "mem_clock_mhz", 1.0, False, "Memory clock frequency (in MHz)."),
    ("DCGM_FI_DEV_MEMORY_TEMP", "mem_temperature_c", 1.0, False, "Memory temperature (in C)."),
    ("DCGM_FI_DEV_GPU_TEMP", "temperature_c", 1.0, False, "GPU temperature (in C)."),
    ("DCGM_FI_DEV_POWER_USAGE", "power_mw", 1e-3, False, "Power draw (in W)."),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy_total_mj", 1.0, True, "Energy since driver load (in mJ)."),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pcie_replays_total", 1.0, True, "Number of PCIe retries."),
    ("DCGM_FI_DEV_GPU_UTIL", "util_ratio", 100.0, False, "GPU utilization (in %)."),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "mem_util_ratio", 100.0, False, "Memory utilization (in %)."),
    ("DCGM_FI_DEV_ENC_UTIL", "encoder_ratio", 100.0, False, "Encoder utilization (in %)."),
    ("DCGM_FI_DEV_DEC_UTIL", "decoder_ratio", 100.0, False, "Decoder utilization (in %)."),
    ("DCGM_FI_DEV_FB_USED", "mem_used_mib", 1.0, False, "Framebuffer memory used (in MiB)."),
    ("DCGM_FI_DEV_FB_RESERVED", "mem_reserved_mib", 1.0, False, "Framebuffer memory reserved (in MiB)."),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "remapped_rows_uncorrectable_total", 1.0, True, "Rows remapped for uncorrectable errors."),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "remapped_rows_correctable_total", 1.0, True, "Rows remapped for correctable errors."),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "remap_failed", 1.0, False, "Whether remapping of rows has failed."),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gr_active_ratio", 1.0, False, "Ratio of time the graphics engine is active."),
    ("DCGM_FI_PROF_SM_ACTIVE", "sm_active_ratio", 1.0, False, "Ratio of cycles an SM has a warp assigned."),
    ("DCGM_FI_PROF_SM_OCCUPANCY", "sm_occupancy_ratio", 1.0, False, "Ratio of warps resident on an SM."),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active_ratio", 1.0, False, "Ratio of cycles the tensor pipe is active."),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "dram_active_ratio", 1.0, False, "Ratio of cycles the memory interface is active."),
    # Rates, and therefore gauges, whatever old configuration files called them.
    ("DCGM_FI_PROF_PCIE_TX_BYTES", "pcie_tx_bytes_per_s", 1.0, False, "PCIe bytes sent (per second)."),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", "pcie_rx_bytes_per_s", 1.0, False, "PCIe bytes received (per second)."),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", "nvlink_tx_bytes_per_s", 1.0, False, "NVLink bytes sent (per second)."),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", "nvlink_rx_bytes_per_s", 1.0, False, "NVLink bytes received (per second)."),
)  # fmt: skip


def families(picture: Picture, hostname: str, casing: HostnameLabel) -> Iterator[Family]:
    """The DCGM set; a value that is unknown has no series, as dcgm-exporter drops blanks."""
    if picture.tick is None:
        return
    places = picture.attribution.by_place()
    devices = {device.gpu_uuid: device for device in picture.tick.inventory}
    labelled: list[tuple[str, DeviceTick]] = []
    for tick in picture.tick.devices:
        if tick.gpu_uuid.startswith(UNSEEN):
            continue
        device = devices[tick.gpu_uuid]
        instance = next((m for m in device.mig if m.mig_uuid == tick.mig_uuid), None)
        holders = places.get((tick.gpu_uuid, tick.mig_uuid), [])
        pairs = _labels(device, instance, hostname, casing) | _holder(holders)
        labelled.append((labels(pairs), tick))
    for name, metric, unit, counter, text in _NAMES:
        family = Family(name, "counter" if counter else "gauge", text)
        for label_text, tick in labelled:
            value = tick.values.get(metric)
            family.add(label_text, None if value is None else value * unit)
        yield family
    yield _free(labelled)
    yield _nvlink(labelled)
    yield _xid(picture, hostname, casing, devices)


def _labels(
    device: Device, instance: MigInstance | None, hostname: str, casing: HostnameLabel
) -> dict[str, object]:
    found: dict[str, object] = {
        "gpu": device.gpu_index,
        "UUID": device.gpu_uuid,
        "pci_bus_id": device.pci_bus_id,
        "device": f"nvidia{device.gpu_index}",
        "modelName": device.name,
    }
    if instance is not None:
        found["GPU_I_PROFILE"] = instance.profile
        found["GPU_I_ID"] = instance.gpu_instance_id
    if casing is not HostnameLabel.LOWER:
        found["Hostname"] = hostname
    if casing is not HostnameLabel.UPPER:
        found["hostname"] = hostname
    return {**found, "DCGM_FI_DRIVER_VERSION": device.driver_version}


def _holder(holders: list[Holding]) -> dict[str, object]:
    """Labels of the one holder. Copying a series per holder would double every sum."""
    if len(holders) != 1:
        return {}
    kind, _, name = holders[0].key.partition(":")
    if kind == "slurm":
        return {"hpc_job": name}
    if kind == "pod":
        namespace, _, pod = name.partition("/")
        return {"namespace": namespace, "pod": pod.partition("/")[0], "container": holders[0].name}
    return {}


def _free(labelled: list[tuple[str, DeviceTick]]) -> Family:
    family = Family("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).")
    for text, tick in labelled:
        total, used = tick.values.get("mem_total_mib"), tick.values.get("mem_used_mib")
        if total is not None and used is not None:
            family.add(text, total - used - tick.values.get("mem_reserved_mib", 0.0))
    return family


def _nvlink(labelled: list[tuple[str, DeviceTick]]) -> Family:
    """DCGM gives a rate of both directions in MB/s under a name that looks like a counter."""
    family = Family(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "gauge", "NVLink bandwidth of all lanes (in MB/s)."
    )
    for text, tick in labelled:
        sent, got = (tick.values.get(f"nvlink_{d}_bytes_per_s") for d in ("tx", "rx"))
        if sent is not None and got is not None:
            family.add(text, (sent + got) / 1024.0 / 1000.0)
    return family


def _xid(
    picture: Picture, hostname: str, casing: HostnameLabel, devices: dict[str, Device]
) -> Family:
    """The newest code per GPU, while the collector remembers it."""
    family = Family("DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.")
    newest: dict[str, tuple[object, int]] = {}
    for (gpu_uuid, code), (_, at) in picture.xids.items():
        if gpu_uuid in devices and (gpu_uuid not in newest or at >= newest[gpu_uuid][0]):  # type: ignore[operator]
            newest[gpu_uuid] = (at, code)
    for gpu_uuid, (_, code) in newest.items():
        pairs = _labels(devices[gpu_uuid], None, hostname, casing)
        family.add(labels({**pairs, "err_code": code}), float(code))
    return family
