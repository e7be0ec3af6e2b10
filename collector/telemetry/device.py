"""What exists: GPUs, their MIG instances and their links. Identity is the UUID and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from collector.telemetry.status import Status

UNSEEN = "unseen:"  # + index: stands for the UUID of a device that never gave one


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One compute instance of one GPU instance; dies and comes back with a reconfiguration."""

    mig_uuid: str
    gpu_instance_id: int | None
    compute_instance_id: int | None
    profile: str | None = None
    gpu_slices: int | None = None
    mem_mib: float | None = None
    placement_start: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One NVLink; ``remote_type`` gpu, switch, npu or unknown."""

    link: int
    remote_type: str
    remote_pci_bus_id: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Fabric:
    """An NVLink domain over nodes: GPUs of one (cluster_uuid, clique_id) reach each other."""

    cluster_uuid: str
    clique_id: int
    state: str
    health_mask: int | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A physical GPU as this node sees it now. Index, minor number and bus id are attributes."""

    gpu_uuid: str
    gpu_index: int
    status: Status = Status.OK
    name: str | None = None
    minor_number: int | None = None
    pci_bus_id: str | None = None
    driver_version: str | None = None
    architecture: int | None = None
    mem_total_mib: float | None = None
    mem_reserved_mib: float | None = None
    mem_unified: bool = False  # memory is the host's (GB10, Jetson): NVML gives no total
    mig_enabled: bool | None = None
    numa_node: int | None = None
    compute_mode: str | None = None
    mig: tuple[MigInstance, ...] = ()
    links: tuple[Link, ...] = ()
    fabric: Fabric | None = None
    near: dict[str, str] = field(default_factory=dict)  # peer UUID -> PIX, PXB, PHB, NODE, SYS
