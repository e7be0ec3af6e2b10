"""When a GPU breaks and when it is in order again, as events for the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from collector.telemetry.device import UNSEEN
from collector.telemetry.rows import Columns, micros
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick, Tick

# Xids after which the GPU does no work until it is reset (NVIDIA's catalogue: immediate action
# "reset GPU" or "restart"). Others end a program and leave the GPU in order.
FATAL_XIDS = frozenset({46, 62, 64, 79, 95, 109, 110, 119, 120, 140, 143})
# A program that dies with its GPU shows use for a moment longer.
_SETTLED_S = 60.0
_NAMES = ("ts", "kind", "gpu_uuid", "code", "fatal")


@dataclass(slots=True)
class _Broken:
    since_s: float
    was_lost: bool
    energy_mj: float | None


class Outages:
    """Follows each GPU. A loss is told of once, and its end once.

    ``gpu_back``: it answers again after a loss; or, after a fatal Xid, its counters started over
    (it was reset) or it works again.
    """

    def __init__(self) -> None:
        self._broken: dict[str, _Broken] = {}

    def events(self, tick: Tick) -> Columns:
        """`event` rows of the tick."""
        rows: list[tuple[int, str, str | None, int | None, bool]] = []
        boards = {d.gpu_uuid: d for d in tick.devices if d.mig_uuid is None}
        for event in tick.events:
            fatal = event.code in FATAL_XIDS
            rows.append((micros(event.ts), "xid", event.gpu_uuid, event.code, fatal))
            if fatal and event.gpu_uuid is not None:
                energy = _energy(boards.get(event.gpu_uuid))
                broken = _Broken(tick.mono_s, False, energy)
                self._broken.setdefault(event.gpu_uuid, broken)
        now = micros(tick.ts)
        for device in tick.inventory:
            uuid, broken_before = device.gpu_uuid, self._broken.get(device.gpu_uuid)
            if uuid.startswith(UNSEEN):
                continue
            if device.status is Status.LOST:
                if broken_before is None or not broken_before.was_lost:
                    rows.append((now, "gpu_lost", uuid, None, True))
                    self._broken[uuid] = _Broken(tick.mono_s, True, None)
            elif broken_before is not None and _is_back(broken_before, boards.get(uuid), tick):
                rows.append((now, "gpu_back", uuid, None, False))
                del self._broken[uuid]
        return {name: [row[i] for row in rows] for i, name in enumerate(_NAMES)}


def _is_back(broken: _Broken, board: DeviceTick | None, tick: Tick) -> bool:
    if board is None or tick.mono_s == broken.since_s:
        return False
    if broken.was_lost:
        return True
    energy = _energy(board)
    if energy is not None and broken.energy_mj is not None and energy < broken.energy_mj:
        return True
    works = board.values.get("util_ratio", 0.0) > 0
    return works and tick.mono_s - broken.since_s >= _SETTLED_S


def _energy(board: DeviceTick | None) -> float | None:
    return None if board is None else board.values.get("energy_total_mj")
