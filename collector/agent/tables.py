"""The tables that an agent may fill, and the kind of each column on the wire."""

from __future__ import annotations

T, F, I, B, AT = "text", "float", "int", "bool", "time"  # noqa: E741 - read as columns below

# Appended as they come; `cluster`, `node` and `source` are added by whoever takes the batch in.
APPENDED: dict[str, dict[str, str]] = {
    "sample": {
        "gpu_uuid": T, "gpu_index": I, "mig_uuid": T, "run_id": T, "ts": AT, "step_s": F,
        "util_ratio": F, "mem_util_ratio": F, "sm_active_ratio": F, "tensor_active_ratio": F,
        "dram_active_ratio": F, "mem_used_mib": F, "mem_total_mib": F, "power_mw": F,
        "energy_mj": F, "temperature_c": F, "sm_clock_mhz": F, "nvlink_tx_bytes": F,
        "nvlink_rx_bytes": F, "pcie_tx_bytes": F, "pcie_rx_bytes": F, "clocks_event_reasons": I,
        "ecc_uncorrected": I, "processes": I, "status": T,
    },
    "process_sample": {
        "gpu_uuid": T, "mig_uuid": T, "run_id": T, "ts": AT, "pid": I, "started_at": AT,
        "user_name": T, "kind": T, "mem_used_mib": F, "sm_util_ratio": F,
    },
    "host_sample": {
        "run_id": T, "ts": AT, "step_s": F, "cpu_used": F, "cpus": I, "mem_used_mib": F,
        "mem_total_mib": F, "cpu_pressure_ratio": F, "mem_pressure_ratio": F,
        "io_pressure_ratio": F, "net_rx_bytes": F, "net_tx_bytes": F,
    },
    "event": {"ts": AT, "kind": T, "gpu_uuid": T, "code": I, "fatal": B, "text": T},
}  # fmt: skip

# Snapshots: compared with what is open in the store.
SNAPSHOTS: dict[str, dict[str, str]] = {
    "device": {
        "gpu_uuid": T, "gpu_model": T, "raw_name": T, "mem_total_mib": I, "mem_reserved_mib": I,
        "ts": AT,
    },
    "device_seen": {
        "gpu_uuid": T, "gpu_index": I, "minor_number": I, "pci_bus_id": T, "driver_version": T,
        "ts": AT,
    },
    "mig_instance": {
        "gpu_uuid": T, "mig_uuid": T, "profile": T, "gpu_instance_id": I,
        "compute_instance_id": I, "gpu_slices": I, "mem_mib": I, "placement_start": I, "ts": AT,
    },
    "nvlink": {
        "gpu_uuid": T, "link": I, "remote_type": T, "remote_pci_bus_id": T, "version": I, "ts": AT,
    },
    "gpu_fabric": {
        "gpu_uuid": T, "fabric_uuid": T, "clique_id": I, "state": T, "health_mask": I, "ts": AT,
    },
    "gpu_near": {"gpu_uuid": T, "peer_uuid": T, "level": T, "ts": AT},
    "node": {"gpu_model": T, "gpus": I, "cpus": I, "mem_mib": I, "ts": AT},
    "holding": {
        "key": T, "gpu_uuid": T, "mig_uuid": T, "share_num": I, "share_den": I, "user_name": T,
        "account": T, "name": T, "ts": AT,
    },
}  # fmt: skip

# Without these a row means nothing.
REQUIRED: dict[str, frozenset[str]] = {
    "sample": frozenset({"ts", "step_s"}),
    "process_sample": frozenset({"ts", "pid", "gpu_uuid"}),
    "host_sample": frozenset({"ts", "step_s"}),
    "event": frozenset({"ts", "kind"}),
    "device": frozenset({"gpu_uuid", "ts"}),
    "device_seen": frozenset({"gpu_uuid", "ts"}),
    "mig_instance": frozenset({"gpu_uuid", "mig_uuid", "ts"}),
    "nvlink": frozenset({"gpu_uuid", "link", "ts"}),
    "gpu_fabric": frozenset({"gpu_uuid", "fabric_uuid", "clique_id", "state", "ts"}),
    "gpu_near": frozenset({"gpu_uuid", "peer_uuid", "level", "ts"}),
    "node": frozenset({"gpus", "ts"}),
    "holding": frozenset({"key", "gpu_uuid", "share_num", "share_den", "ts"}),
}
