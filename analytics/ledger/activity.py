"""Measured activity of held time: samples, each speaking for the time since its device's last
one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.ledger.kernel.measure import Samples, add_up, measure, number_devices
from analytics.ledger.kernel.state import Array
from analytics.window import from_us
from collector.store import Work

PPM = 1_000_000
_WIDEST_STEP = """
SELECT coalesce(max(step_s), 0) FROM sample WHERE cluster = ? AND ts > ? AND ts <= ?"""

# One row = one sample; activity in parts per million, -1 = not measured. Hashes stand for names.
_SAMPLES = """
SELECT epoch_us(ts) AS ts, CAST(step_s * 1e6 AS BIGINT) AS step_us,
  CASE WHEN util_ratio BETWEEN 0 AND 1 THEN CAST(round(util_ratio * 1e6) AS BIGINT) ELSE -1 END AS
  ppm,
  CASE WHEN mig_uuid IS NULL AND gpu_uuid IS NULL THEN 0 ELSE hash(coalesce(mig_uuid, gpu_uuid))
  END AS unit,
  hash(node) AS node, CASE WHEN run_id IS NULL THEN 0 ELSE hash(run_id) END AS run,
  coalesce(gpu_index, -1)::BIGINT AS idx
FROM sample WHERE cluster = ? AND ts > ? AND ts <= ?"""


@dataclass(frozen=True, slots=True)
class Spans:
    """Held time that samples can speak for: ``key`` = whose samples, ``[t0, t1)``, and for which
    part.

    Spans of one key do not overlap; they are in order of (key, t0). Several keys may speak for a
    part.
    """

    key: Array
    t0: Array
    t1: Array
    part: Array


def read_samples(work: Work, cluster: str, since: int, until: int) -> Samples:
    """Every sample that may speak for a part of ``[since, until)``."""
    day = 86_400_000_000
    near = [cluster, from_us(since - day), from_us(until + day)]
    reach = int(float(work.value(_WIDEST_STEP, near)) * 2e6)
    table = work.query(_SAMPLES, [cluster, from_us(since - 2 * reach - 1), from_us(until + reach)])
    return Samples(
        *(
            np.array(table.column(name).to_numpy().view(np.int64))
            if name in ("unit", "node", "run", "ppm")
            else table.column(name).to_numpy()
            for name in ("ts", "step_us", "ppm", "unit", "node", "run", "idx")
        )
    )


def measured(samples: Samples, spans: Spans, most: Array) -> tuple[Array, Array, Array]:
    """Per part: measured us, active ppm x us, and measured us beyond ``most``, what the part can
    hold."""
    time, active, over = (np.zeros(most.shape[0], np.int64) for _ in range(3))
    if spans.key.shape[0] == 0 or samples.ts.shape[0] == 0:
        return time, active, over
    device, devices, rising = number_devices(samples)
    order = np.empty(0, np.int64)
    if not rising:
        order = np.lexsort((samples.ppm, samples.ts, device))
    rows = measure(samples, device, devices, order, (spans.key, spans.t0, spans.t1))
    if rows.shape[0] == 0:
        return time, active, over
    rows[:, 0] = spans.part[rows[:, 0]]
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    add_up(rows, most, time, active, over)
    return time, active, over
