"""Whether a GPU's energy counter and its power agree: on some they are apart by far.

Both are kept as they are. This only says which GPUs to distrust.
"""

from __future__ import annotations

from dataclasses import dataclass

from collector.telemetry.tick import Tick

WINDOW_S = 3600.0
# A longer step is a gap (a suspend, a hang): power of now says nothing about it.
_LONGEST_STEP_S = 120.0


@dataclass(slots=True)
class _Sum:
    mono_s: float
    energy_mj: float
    power_mw: float
    covered_s: float = 0.0
    counted_mj: float = 0.0
    integrated_mj: float = 0.0


class EnergyCheck:
    """Compares over windows of an hour. ``disagreement``: GPU -> |counter - power| / larger."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._sums: dict[str, _Sum] = {}
        self.disagreement: dict[str, float] = {}

    def add(self, tick: Tick) -> None:
        """Take a tick into the running window of each GPU."""
        for device in tick.devices:
            energy, power = device.values.get("energy_total_mj"), device.values.get("power_mw")
            if device.mig_uuid is None and energy is not None and power is not None:
                self._step(device.gpu_uuid, tick.mono_s, energy, power)

    def _step(self, gpu_uuid: str, mono_s: float, energy_mj: float, power_mw: float) -> None:
        before = self._sums.get(gpu_uuid)
        if before is None:
            self._sums[gpu_uuid] = _Sum(mono_s, energy_mj, power_mw)
            return
        step_s = mono_s - before.mono_s
        if 0 < step_s <= _LONGEST_STEP_S and energy_mj >= before.energy_mj:
            before.covered_s += step_s
            before.counted_mj += energy_mj - before.energy_mj
            before.integrated_mj += (power_mw + before.power_mw) / 2 * step_s
        before.mono_s, before.energy_mj, before.power_mw = mono_s, energy_mj, power_mw
        if before.covered_s >= self._window_s:
            larger = max(before.counted_mj, before.integrated_mj)
            apart = abs(before.counted_mj - before.integrated_mj)
            self.disagreement[gpu_uuid] = apart / larger if larger else 0.0
            self._sums[gpu_uuid] = _Sum(mono_s, energy_mj, power_mw)
