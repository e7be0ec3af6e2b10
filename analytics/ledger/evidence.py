"""What the ledger rests on where it says that work is lost, or suspects that a run hangs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.ledger.classes import LedgerClass, Overlay
from analytics.ledger.frame import Frame
from analytics.ledger.heldrows import OVERLAYS, HeldRows
from analytics.ledger.kernel.state import Array
from analytics.ledger.lost import Durable
from analytics.window import HOUR_US
from collector.store import Work

HANGS = {
    "idle_floor": "busy while power, SM-active and links sit at their idle floor: look at the "
    "ranks' stacks and at the collective they wait in",
    "no_process": "some of its GPUs have no process: look whether a rank died or never started",
}
_LOST_COLUMN = 1
_SEEN = """
SELECT cluster, hour, run_id, class, evidence, gpu_us, text FROM ledger_evidence
WHERE cluster = ? AND hour IN (SELECT unnest(CAST(? AS TIMESTAMP[]))) AND class = ? ORDER BY ALL"""


def evidence_table(
    frame: Frame, busy: HeldRows, points: dict[str, Durable], late: dict[tuple[int, str], str]
) -> pa.Table:
    """Rows of ``ledger_evidence``, one per hour, run and kind; ``late``: per (hour, run) which
    ranks started apart."""
    hour = frame.bounds[:-1][busy.slot] // HOUR_US * HOUR_US
    rows: list[tuple[int, str, str, str, int, str]] = []
    for name, amount in (
        (LedgerClass.LOST.value, busy.classes[:, _LOST_COLUMN]),
        (Overlay.POSSIBLY_LOST.value, busy.overlays[:, OVERLAYS.index(Overlay.POSSIBLY_LOST)]),
    ):
        for at, run, time in _by_hour(hour, busy.run, amount):
            point = points[busy.runs[run]]
            rows.append((at, busy.runs[run], name, point.evidence, time, point.text))
    suspect = busy.overlays[:, OVERLAYS.index(Overlay.SUSPECT_HANG)]
    kinds = {
        "idle_floor": suspect - busy.no_process - busy.apart,
        "no_process": busy.no_process,
        "started_apart": busy.apart,
    }
    for kind, amount in kinds.items():
        for at, run, time in _by_hour(hour, busy.run, amount):
            text = late[at, busy.runs[run]] if kind == "started_apart" else HANGS[kind]
            rows.append((at, busy.runs[run], Overlay.SUSPECT_HANG.value, kind, time, text))
    rows.sort()
    size, words = len(rows), pa.string()
    return pa.table(
        {
            "cluster": pa.array([frame.facts.cluster] * size, words),
            "hour": pa.array([row[0] for row in rows], pa.timestamp("us")),
            "run_id": pa.array([row[1] for row in rows], words),
            "class": pa.array([row[2] for row in rows], words),
            "evidence": pa.array([row[3] for row in rows], words),
            "gpu_us": pa.array([row[4] for row in rows], pa.int64()),
            "text": pa.array([row[5] for row in rows], words),
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


def seen_before(work: Work, fresh: pa.Table, cluster: str, gone: Collection[datetime]) -> pa.Table:
    """``fresh``, where the hours whose samples were dropped keep what was said of hangs in them:
    activity that is kept tells how long, and no more why."""
    if not gone:
        return fresh
    hours = pa.array([hour.replace(tzinfo=None) for hour in gone], pa.timestamp("us"))
    stale = pc.and_(
        pc.is_in(fresh.column("hour"), hours),
        pc.equal(fresh.column("class"), Overlay.SUSPECT_HANG.value),
    )
    old = work.query(_SEEN, [cluster, hours.to_pylist(), Overlay.SUSPECT_HANG.value])
    return pa.concat_tables([fresh.filter(pc.invert(stale)), old.cast(fresh.schema)])
