"""What the ledger rests on where it says that work is lost, or suspects that a run hangs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from analytics.ledger.classes import LedgerClass, Overlay
from analytics.ledger.frame import Frame
from analytics.ledger.heldrows import OVERLAYS, HeldRows
from analytics.ledger.kernel.state import Array
from analytics.ledger.lost import Durable
from analytics.window import HOUR_US

HANGS = {
    "idle_floor": "busy while power, SM-active and links sit at their idle floor: look at the "
    "ranks' stacks and at the collective they wait in",
    "no_process": "some of its GPUs have no process: look whether a rank died or never started",
}
_LOST_COLUMN = 1


def evidence_table(frame: Frame, busy: HeldRows, points: dict[str, Durable]) -> pa.Table:
    """Rows of ``ledger_evidence``, one per hour, run and kind."""
    hour = frame.bounds[:-1][busy.slot] // HOUR_US * HOUR_US
    rows: list[tuple[int, str, str, str, int, str]] = []
    for name, amount in (
        (LedgerClass.LOST.value, busy.classes[:, _LOST_COLUMN]),
        (Overlay.POSSIBLY_LOST.value, busy.overlays[:, OVERLAYS.index(Overlay.POSSIBLY_LOST)]),
    ):
        for at, run, time in _by_hour(hour, busy.run, amount):
            point = points[busy.runs[run]]
            rows.append((at, busy.runs[run], name, point.evidence, time, point.text))
    absent = np.minimum(busy.no_process, busy.overlays[:, OVERLAYS.index(Overlay.SUSPECT_HANG)])
    calm = busy.overlays[:, OVERLAYS.index(Overlay.SUSPECT_HANG)] - absent
    for kind, amount in (("idle_floor", calm), ("no_process", absent)):
        for at, run, time in _by_hour(hour, busy.run, amount):
            name = Overlay.SUSPECT_HANG.value
            rows.append((at, busy.runs[run], name, kind, time, HANGS[kind]))
    rows.sort()
    size, text = len(rows), pa.string()
    return pa.table(
        {
            "cluster": pa.array([frame.facts.cluster] * size, text),
            "hour": pa.array([row[0] for row in rows], pa.timestamp("us")),
            "run_id": pa.array([row[1] for row in rows], text),
            "class": pa.array([row[2] for row in rows], text),
            "evidence": pa.array([row[3] for row in rows], text),
            "gpu_us": pa.array([row[4] for row in rows], pa.int64()),
            "text": pa.array([row[5] for row in rows], text),
        }
    )


def _by_hour(hour: Array, run: Array, amount: Array) -> list[tuple[int, int, int]]:
    some = np.flatnonzero(amount)
    found: dict[tuple[int, int], int] = {}
    for at, who, time in zip(
        hour[some].tolist(), run[some].tolist(), amount[some].tolist(), strict=True
    ):
        found[at, who] = found.get((at, who), 0) + time
    return [(at, who, time) for (at, who), time in found.items()]
