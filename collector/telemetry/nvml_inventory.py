"""Which GPUs and MIG instances there are now, through NVML. Asked anew at each cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from collector.nvml import Nvml
from collector.telemetry.device import UNSEEN, Device, MigInstance
from collector.telemetry.metrics import judge
from collector.telemetry.status import Status

_MIB = 1.0 / 2**20
_COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}


@dataclass(slots=True)
class Opened:
    """A device with the driver's handles, which are good for this cycle only."""

    device: Device
    handle: Any  # None: lost or not permitted
    mig: dict[str, Any]  # mig_uuid -> handle


class Inventory:
    """Remembers every GPU it ever saw, so that one that falls off the bus stays as lost."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._known: dict[str, Device] = {}
        self._driver = nvml.call("nvmlSystemGetDriverVersion")[0]

    def scan(self) -> list[Opened]:
        """Every GPU present or remembered, in index order."""
        count, status = self._nvml.call("nvmlDeviceGetCount")
        found = [self._open(index) for index in range(count if status is Status.OK else 0)]
        present = {opened.device.gpu_uuid for opened in found}
        gone = [
            Opened(replace(device, status=Status.LOST, mig=()), None, {})
            for uuid, device in self._known.items()
            if uuid not in present
        ]
        return [*found, *gone]

    def remember(self, device: Device) -> None:
        """Keep what was found out about the device beyond its identity."""
        self._known[device.gpu_uuid] = device

    def _open(self, index: int) -> Opened:
        handle, status = self._nvml.call("nvmlDeviceGetHandleByIndex", index)
        if status is not Status.OK:
            return self._closed(index, status)
        uuid, status = self._nvml.call("nvmlDeviceGetUUID", handle)
        if status is not Status.OK or not uuid:
            return self._closed(index, status)
        device = self._known.get(uuid)
        if device is None or device.status is not Status.OK:
            device = self._identify(uuid, index, handle)
        enabled, instances = self._mig(handle)
        mig = tuple(instance for instance, _ in instances)
        if (device.gpu_index, device.mig_enabled, device.mig) != (index, enabled, mig):
            device = replace(device, gpu_index=index, mig_enabled=enabled, mig=mig)
        self._known[uuid] = device
        return Opened(device, handle, {i.mig_uuid: h for i, h in instances})

    def _closed(self, index: int, status: Status) -> Opened:
        """A device that cannot be opened: the one that was last seen at this index, if any."""
        for device in self._known.values():
            if device.gpu_index == index:
                return Opened(replace(device, status=status, mig=()), None, {})
        reason = Status.FAILED if status is Status.OK else status
        return Opened(Device(f"{UNSEEN}{index}", index, status=reason), None, {})

    def _identify(self, uuid: str, index: int, handle: Any) -> Device:
        ask = self._nvml.call
        pci, _ = ask("nvmlDeviceGetPciInfo", handle)
        total, reserved = self._memory(handle)
        name, _ = ask("nvmlDeviceGetName", handle)
        numa, _ = ask("nvmlDeviceGetNumaNodeId", handle)
        return Device(
            gpu_uuid=uuid,
            gpu_index=index,
            name=name,
            minor_number=ask("nvmlDeviceGetMinorNumber", handle)[0],
            pci_bus_id=None if pci is None else _text(pci.busId),
            driver_version=self._driver,
            architecture=ask("nvmlDeviceGetArchitecture", handle)[0],
            mem_total_mib=total,
            mem_reserved_mib=reserved,
            mem_unified=name is not None and total is None,
            numa_node=None if numa is None else int(numa),
            compute_mode=_COMPUTE_MODES.get(ask("nvmlDeviceGetComputeMode", handle)[0]),
        )

    def _memory(self, handle: Any) -> tuple[float | None, float | None]:
        info, status = self._nvml.call("nvmlDeviceGetMemoryInfo_v2", handle)
        if status is Status.OK:
            total = judge("mem_total_mib", info.total, _MIB)[0]
            return total, judge("mem_reserved_mib", info.reserved, _MIB)[0]
        info, status = self._nvml.call("nvmlDeviceGetMemoryInfo", handle)
        if status is not Status.OK:
            return None, None
        return judge("mem_total_mib", info.total, _MIB)[0], None

    def _mig(self, handle: Any) -> tuple[bool | None, list[tuple[MigInstance, Any]]]:
        mode, status = self._nvml.call("nvmlDeviceGetMigMode", handle)
        if status is not Status.OK:
            return None, []
        if not mode[0]:
            return False, []
        most, status = self._nvml.call("nvmlDeviceGetMaxMigDeviceCount", handle)
        instances = []
        for slot in range(most if status is Status.OK else 0):
            # Slots are sparse: an empty one says "not found" and later ones may be taken.
            mig, status = self._nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
            if status is Status.OK:
                instance = self._instance(handle, mig)
                if instance is not None:
                    instances.append((instance, mig))
        return True, instances

    def _instance(self, parent: Any, mig: Any) -> MigInstance | None:
        ask = self._nvml.call
        uuid, status = ask("nvmlDeviceGetUUID", mig)
        if status is not Status.OK or not uuid:
            return None  # it went away between the two calls
        attributes, _ = ask("nvmlDeviceGetAttributes", mig)
        name, _ = ask("nvmlDeviceGetName", mig)
        gpu_instance = ask("nvmlDeviceGetGpuInstanceId", mig)[0]
        return MigInstance(
            mig_uuid=uuid,
            gpu_instance_id=gpu_instance,
            compute_instance_id=ask("nvmlDeviceGetComputeInstanceId", mig)[0],
            profile=profile_of(name),
            gpu_slices=None if attributes is None else int(attributes.gpuInstanceSliceCount),
            mem_mib=None if attributes is None else float(attributes.memorySizeMB),
            placement_start=self._placement(parent, gpu_instance),
        )

    def _placement(self, parent: Any, gpu_instance_id: int | None) -> int | None:
        """Where the instance sits on the board; needs a privilege that agents often lack."""
        if gpu_instance_id is None:
            return None
        instance, status = self._nvml.call("nvmlDeviceGetGpuInstanceById", parent, gpu_instance_id)
        if status is not Status.OK:
            return None
        info, status = self._nvml.call("nvmlGpuInstanceGetInfo", instance)
        return int(info.placement.start) if status is Status.OK else None


def profile_of(name: str | None) -> str | None:
    """``1g.10gb`` of ``NVIDIA H100 80GB HBM3 MIG 1g.10gb``."""
    if name is None or " MIG " not in name:
        return None
    return name.rpartition(" MIG ")[2].strip() or None


def _text(raw: bytes | str) -> str:
    return raw.decode("ascii", "replace") if isinstance(raw, bytes) else raw
