"""Every value a device can give: unit in the name, and the range in which it can be true."""

from __future__ import annotations

import math
from dataclasses import dataclass

from collector.telemetry.source import Group
from collector.telemetry.status import Status

_TIB_IN_MIB = 1024.0 * 1024.0


@dataclass(frozen=True, slots=True)
class Metric:
    """One value. ``counter``: it only grows, and a decrease means that the driver was reloaded."""

    name: str
    group: Group
    high: float
    low: float = 0.0
    counter: bool = False


def _ratios(group: Group, *names: str) -> list[Metric]:
    return [Metric(name, group, 1.0) for name in names]


def _counters(group: Group, *names: str) -> list[Metric]:
    return [Metric(name, group, float(2**62), counter=True) for name in names]


GPM_RATIOS = (
    "gr_active_ratio", "sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio",
    "dram_active_ratio", "fp64_active_ratio", "fp32_active_ratio", "fp16_active_ratio",
)  # fmt: skip
GPM_RATES = (
    "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", "nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s",
)  # fmt: skip
# nvml.h: NVML_GPM_METRIC_*
GPM_IDS = {
    "gr_active_ratio": 1, "sm_active_ratio": 2, "sm_occupancy_ratio": 3, "tensor_active_ratio": 5,
    "dram_active_ratio": 10, "fp64_active_ratio": 11, "fp32_active_ratio": 12,
    "fp16_active_ratio": 13, "pcie_tx_bytes_per_s": 20, "pcie_rx_bytes_per_s": 21,
    "nvlink_rx_bytes_per_s": 60, "nvlink_tx_bytes_per_s": 61,
}  # fmt: skip
SLOWDOWNS = (
    "power_slowdown_ns_total", "thermal_slowdown_ns_total", "sync_boost_slowdown_ns_total",
    "board_limit_slowdown_ns_total", "low_util_slowdown_ns_total", "reliability_slowdown_ns_total",
    "sw_thermal_slowdown_ns_total", "hw_thermal_slowdown_ns_total", "hw_brake_slowdown_ns_total",
)  # fmt: skip

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *_ratios(
            Group.LOAD, "util_ratio", "mem_util_ratio", "util_mean_ratio", *GPM_RATIOS,
        ),
        *_ratios(Group.HEALTH, "encoder_ratio", "decoder_ratio"),
        Metric("mem_total_mib", Group.LOAD, 16 * _TIB_IN_MIB, low=1.0),
        Metric("mem_used_mib", Group.LOAD, 16 * _TIB_IN_MIB),
        Metric("mem_reserved_mib", Group.LOAD, 16 * _TIB_IN_MIB),
        # No board draws 20 kW; GB200 superchips are below 3 kW.
        Metric("power_mw", Group.LOAD, 20e6),
        Metric("power_instant_mw", Group.LOAD, 20e6),
        Metric("power_average_mw", Group.LOAD, 20e6),
        Metric("power_module_mw", Group.LOAD, 20e6),
        Metric("power_limit_mw", Group.HEALTH, 20e6),
        *_counters(Group.LOAD, "energy_total_mj"),
        Metric("temperature_c", Group.LOAD, 150.0, low=-40.0),
        Metric("mem_temperature_c", Group.HEALTH, 150.0, low=-40.0),
        Metric("sm_clock_mhz", Group.LOAD, 10_000.0),
        Metric("mem_clock_mhz", Group.HEALTH, 50_000.0),
        Metric("clocks_event_reasons", Group.LOAD, float(2**53)),
        *(Metric(name, Group.LOAD, 1e13) for name in GPM_RATES),
        *_counters(
            Group.LINK, "nvlink_tx_total_bytes", "nvlink_rx_total_bytes", "pcie_tx_total_bytes",
            "pcie_rx_total_bytes",
        ),
        *_counters(Group.HEALTH, "pcie_replays_total", *SLOWDOWNS),
        *_counters(
            Group.HEALTH, "ecc_corrected_total", "ecc_uncorrected_total",
            "ecc_corrected_lifetime_total", "ecc_uncorrected_lifetime_total",
            "remapped_rows_correctable_total", "remapped_rows_uncorrectable_total",
        ),
        Metric("remap_pending", Group.HEALTH, 1.0),
        Metric("remap_failed", Group.HEALTH, 1.0),
    )
}  # fmt: skip

# What drivers and DCGM put where a number is unknown: all ones, the largest signed numbers, and
# DCGM's blanks just below them (not found, not supported, not permitted).
_SENTINELS = frozenset(
    float(value)
    for value in (
        *range(0x7FFFFFF0, 0x80000000),
        0xFFFFFFFF,
        140737488355328,  # DCGM's blank as a double
        *range(0x7FFFFFFFFFFFFFF0, 0x8000000000000000),
        0xFFFFFFFFFFFFFFFF,
    )
)


def is_blank(value: float) -> bool:
    """Whether the number stands for "unknown" in NVML or DCGM."""
    return value in _SENTINELS or not math.isfinite(value)


def judge(name: str, value: float, unit: float = 1.0) -> tuple[float | None, Status]:
    """``value`` times ``unit`` in the metric's own unit, or why it cannot be true."""
    metric, scaled = METRICS[name], value * unit
    # What is not finite is in no range.
    if metric.low <= scaled <= metric.high and value not in _SENTINELS:
        return scaled, Status.OK
    return None, Status.IMPLAUSIBLE
