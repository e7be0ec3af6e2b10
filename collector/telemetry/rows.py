"""From ticks to column batches for the store's tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from collector.mapping.attribution import Attribution, Holding, Place
from collector.telemetry.device import UNSEEN, Device
from collector.telemetry.status import Status
from collector.telemetry.tick import ENDED, DeviceTick, Tick

Columns = dict[str, list[Any]]
Tables = dict[str, Columns]

# column of `sample` -> metric of a tick. Counters go in as they are read: they count from the load
# of the driver, and whoever takes differences reads a decrease as a reset.
SAMPLE_METRICS = {
    "util_ratio": "util_ratio",
    "mem_util_ratio": "mem_util_ratio",
    "sm_active_ratio": "sm_active_ratio",
    "tensor_active_ratio": "tensor_active_ratio",
    "dram_active_ratio": "dram_active_ratio",
    "mem_used_mib": "mem_used_mib",
    "mem_total_mib": "mem_total_mib",
    "power_mw": "power_mw",
    "energy_mj": "energy_total_mj",
    "temperature_c": "temperature_c",
    "sm_clock_mhz": "sm_clock_mhz",
    "nvlink_tx_bytes": "nvlink_tx_total_bytes",
    "nvlink_rx_bytes": "nvlink_rx_total_bytes",
    "pcie_tx_bytes": "pcie_tx_total_bytes",
    "pcie_rx_bytes": "pcie_rx_total_bytes",
    "clocks_event_reasons": "clocks_event_reasons",
    "ecc_uncorrected": "ecc_uncorrected_total",
}
_WHOLE = frozenset({"clocks_event_reasons", "ecc_uncorrected"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(at: datetime) -> int:
    """Microseconds since 1970 of an aware time, as times travel and are stored."""
    delta = at - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def sample_rows(tick: Tick, attribution: Attribution, step_s: float) -> Tables:
    """`sample` and `process_sample` rows of one tick."""
    index = {device.gpu_uuid: device.gpu_index for device in tick.inventory}
    places = attribution.by_place()
    sample: Columns = {name: [] for name in _sample_columns()}
    process: Columns = {name: [] for name in _PROCESS_COLUMNS}
    ts = micros(tick.ts)
    for device in tick.devices:
        _add_sample(sample, device, index.get(device.gpu_uuid), ts, step_s)
        sample["run_id"].append(_only(places, (device.gpu_uuid, device.mig_uuid)))
        for use in device.processes or ():
            if device.mig_uuid is None and use.mig_uuid is not None:
                continue  # it is in the list of its instance, too
            owner = attribution.owners.get(use.pid)
            started = None if owner is None or owner.started_at is None else owner.started_at
            row = (
                device.gpu_uuid, use.mig_uuid, None if owner is None else owner.key, ts, use.pid,
                None if started is None else micros(started),
                None if owner is None else owner.user_name, use.kind, use.mem_used_mib,
                use.sm_util_ratio,
            )  # fmt: skip
            for name, value in zip(_PROCESS_COLUMNS, row, strict=True):
                process[name].append(value)
    return {"sample": sample, "process_sample": process}


_PROCESS_COLUMNS = (
    "gpu_uuid", "mig_uuid", "run_id", "ts", "pid", "started_at", "user_name", "kind",
    "mem_used_mib", "sm_util_ratio",
)  # fmt: skip


def _sample_columns() -> tuple[str, ...]:
    keys = ("gpu_uuid", "gpu_index", "mig_uuid", "run_id", "ts", "step_s")
    return (*keys, *SAMPLE_METRICS, "processes", "status")


def _add_sample(
    sample: Columns, device: DeviceTick, index: int | None, ts: int, step_s: float
) -> None:
    unseen = device.gpu_uuid.startswith(UNSEEN)
    sample["gpu_uuid"].append(None if unseen else device.gpu_uuid)
    sample["gpu_index"].append(index)
    sample["mig_uuid"].append(device.mig_uuid)
    sample["ts"].append(ts)
    sample["step_s"].append(step_s)
    for column, metric in SAMPLE_METRICS.items():
        value = device.values.get(metric)
        sample[column].append(int(value) if value is not None and column in _WHOLE else value)
    mean = device.values.get("util_mean_ratio")
    if mean is not None:  # every reading since the last tick is better than the last one
        sample["util_ratio"][-1] = mean
    running = [use for use in device.processes or () if use.kind != ENDED]
    sample["processes"].append(None if device.processes is None else len(running))
    sample["status"].append(_status(device))


def _status(device: DeviceTick) -> str | None:
    """``name=reason`` of what is missing in the row; unsupported values go without saying."""
    wanted = {metric: column for column, metric in SAMPLE_METRICS.items()}
    wanted |= {"device": "device", "processes": "processes"}
    said = [
        f"{wanted[metric]}={reason}"
        for metric, reason in device.faults.items()
        if metric in wanted and (reason is not Status.NOT_SUPPORTED or metric == "util_ratio")
    ]
    return ",".join(said) or None


def _only(places: dict[Place, list[Holding]], place: Place) -> str | None:
    """The holder of a device that has exactly one."""
    holders = places.get(place, ())
    return holders[0].key if len(holders) == 1 else None


def inventory_rows(
    ts: datetime, devices: list[Device], *, cpus: int | None, mem_mib: int | None
) -> Tables:
    """What the node holds now; whoever takes it in closes what changed and opens what is new."""
    known = [d for d in devices if not d.gpu_uuid.startswith(UNSEEN)]
    at = micros(ts)
    return {
        "device": _columns(
            ("gpu_uuid", "gpu_model", "raw_name", "mem_total_mib", "mem_reserved_mib", "ts"),
            [
                (d.gpu_uuid, d.name, d.name, _int(d.mem_total_mib), _int(d.mem_reserved_mib), at)
                for d in known
                if d.name is not None
            ],
        ),
        "device_seen": _columns(
            ("gpu_uuid", "gpu_index", "minor_number", "pci_bus_id", "driver_version", "ts"),
            [
                (d.gpu_uuid, d.gpu_index, d.minor_number, d.pci_bus_id, d.driver_version, at)
                for d in known
            ],
        ),
        "mig_instance": _columns(
            (
                "gpu_uuid", "mig_uuid", "profile", "gpu_instance_id", "compute_instance_id",
                "gpu_slices", "mem_mib", "placement_start", "ts",
            ),
            [
                (
                    d.gpu_uuid, m.mig_uuid, m.profile, m.gpu_instance_id, m.compute_instance_id,
                    m.gpu_slices, _int(m.mem_mib), m.placement_start, at,
                )
                for d in known
                for m in d.mig
            ],
        ),
        "nvlink": _columns(
            ("gpu_uuid", "link", "remote_type", "remote_pci_bus_id", "version", "ts"),
            [
                (d.gpu_uuid, n.link, n.remote_type, n.remote_pci_bus_id, n.version, at)
                for d in known
                for n in d.links
            ],
        ),
        "gpu_fabric": _columns(
            ("gpu_uuid", "fabric_uuid", "clique_id", "state", "health_mask", "ts"),
            [
                (d.gpu_uuid, f.cluster_uuid, f.clique_id, f.state, f.health_mask, at)
                for d in known
                if (f := d.fabric) is not None
            ],
        ),
        "gpu_near": _columns(
            ("gpu_uuid", "peer_uuid", "level", "ts"),
            [
                (d.gpu_uuid, peer, level, at)
                for d in known
                for peer, level in sorted(d.near.items())
                if d.gpu_uuid < peer
            ],
        ),
        "node": _node(known, at, cpus, mem_mib),
    }  # fmt: skip


def _node(known: list[Device], at: int, cpus: int | None, mem_mib: int | None) -> Columns:
    models: dict[str, int] = {}
    for device in known:
        if device.name is not None:
            models[device.name] = models.get(device.name, 0) + 1
    return _columns(
        ("gpu_model", "gpus", "cpus", "mem_mib", "ts"),
        [(model, count, cpus, mem_mib, at) for model, count in sorted(models.items())],
    )


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Columns:
    return {name: [row[position] for row in rows] for position, name in enumerate(names)}


def _int(value: float | None) -> int | None:
    return None if value is None else round(value)
