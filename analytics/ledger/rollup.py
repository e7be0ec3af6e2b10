"""Activity that outlives its samples, kept so that any hour can be built again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from analytics.ledger.fleet import Fleet
from analytics.ledger.frame import Frame
from analytics.ledger.idlememory import Where
from analytics.ledger.kernel.state import Array
from analytics.ledger.parts import Parts
from analytics.window import HOUR_US, from_us
from collector.store import Work

Name = tuple[str, str, str | None, str | None, str]
"""node, gpu_model, gpu, mig, run."""

Kept = tuple[int, int, tuple[int, ...]]
"""t0, t1, and the amounts: measured, active, hang, untouched."""

_KEPT = """
SELECT node, gpu_model, gpu_uuid, mig_uuid, run_id, epoch_us(since) AS t0, epoch_us(until) AS t1,
  measured_us, active_ppm_us, hang_us, untouched_ppm_us
FROM activity_hour JOIN ledger_pool USING (pool_key) JOIN ledger_run USING (run_key)
WHERE ledger_pool.cluster = ? AND hour IN (SELECT unnest(CAST(? AS TIMESTAMP[])))
ORDER BY ALL"""


def activity_table(frame: Frame, parts: Parts) -> pa.Table:
    """Rows of ``activity_hour`` for the parts that were measured."""
    some = np.flatnonzero(parts.time)
    columns = parts.columns
    piece = parts.piece[some]
    there, run = np.unique(columns.run[piece], return_inverse=True)
    keys = frame.keys.of([columns.runs[place] for place in there.tolist()])[:, 0].astype(np.int32)
    time = pa.timestamp("us")
    return pa.table(
        {
            "hour": pa.array(parts.t0[some] // HOUR_US * HOUR_US, time),
            "pool_key": frame.pool_keys()[columns.pool[piece]],
            "gpu_uuid": _named(columns.gpus, columns.gpu[piece]),
            "mig_uuid": _named(columns.migs, columns.mig[piece]),
            "run_key": keys[run],
            "since": pa.array(parts.t0[some], time),
            "until": pa.array(parts.t1[some], time),
            "measured_us": parts.time[some],
            "active_ppm_us": parts.active[some],
            "hang_us": parts.hang[some],
            "untouched_ppm_us": parts.untouched[some],
        }
    )


def _named(names: list[str], places: Array) -> pa.Array:
    """The name at each place; -1 becomes null."""
    index = pa.array(places.astype(np.int32), mask=places < 0)
    return pa.DictionaryArray.from_arrays(index, pa.array(names, pa.string()))


def idle_memory_table(frame: Frame, posted: dict[Where, int]) -> pa.Table:
    """Rows of ``idle_memory_hour``."""
    places = list(posted)
    slot = np.array([place[2] for place in places], np.int64)
    begin = frame.bounds[:-1][slot]
    pools = [frame.fleet.pools[place[0]] for place in places]
    time, text = pa.timestamp("us"), pa.string()
    return pa.table(
        {
            "cluster": pa.array([frame.facts.cluster] * len(places), text),
            "hour": pa.array(begin // HOUR_US * HOUR_US, time),
            "since": pa.array(begin, time),
            "until": pa.array(frame.bounds[1:][slot], time),
            "node": pa.array([node for node, _ in pools], text),
            "gpu_model": pa.array([model for _, model in pools], text),
            "gpu_uuid": pa.array([place[1] for place in places], text),
            "untouched_us": pa.array(list(posted.values()), pa.int64()),
        }
    )


def recall(work: Work, cluster: str, fleet: Fleet, parts: Parts, gone: Iterable[int]) -> None:
    """Replace the activity of hours (us) whose samples were dropped by what was kept.

    A part that the roll-up did not know is taken to be as active as the roll-up it lies in.
    """
    hours = sorted(gone)
    if not hours:
        return
    kept: dict[Name, list[Kept]] = defaultdict(list)
    naive = [from_us(hour).replace(tzinfo=None) for hour in hours]
    for row in work.rows(_KEPT, [cluster, naive]):
        name = (row["node"], row["gpu_model"], row["gpu_uuid"], row["mig_uuid"], row["run_id"])
        amounts = (row["measured_us"], row["active_ppm_us"], row["hang_us"] or 0)
        kept[name].append((row["t0"], row["t1"], (*amounts, row["untouched_ppm_us"] or 0)))
    chosen = np.isin(parts.t0 // HOUR_US * HOUR_US, hours)
    columns = parts.columns
    gpus: list[str | None] = [*columns.gpus, None]
    migs: list[str | None] = [*columns.migs, None]
    for place in np.flatnonzero(chosen).tolist():
        piece = int(parts.piece[place])
        name = (
            *fleet.pools[columns.pool[piece]], gpus[columns.gpu[piece]], migs[columns.mig[piece]],
            columns.runs[columns.run[piece]],
        )  # fmt: skip
        span = (int(parts.t0[place]), int(parts.t1[place]))
        found = (0, 0, 0, 0) if columns.failed[piece] else _within(kept[name], span)
        parts.time[place], parts.active[place], parts.hang[place], parts.untouched[place] = found


def _within(rows: list[Kept], span: tuple[int, int]) -> tuple[int, ...]:
    found = [0, 0, 0, 0]
    for t0, t1, amounts in rows:
        common = min(t1, span[1]) - max(t0, span[0])
        if common > 0:
            for place, amount in enumerate(amounts):
                found[place] += amount * common // (t1 - t0)
    return tuple(found)
