"""Whose work threw another's away: the runs that took the preempted run's node. Modelled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from analytics.ledger.classes import LedgerClass
from analytics.ledger.frame import Frame
from analytics.ledger.heldrows import HeldRows
from analytics.ledger.split import split

# A run that starts on the node within five minutes of the preemption is taken for the preemptor.
_NEXT = """
SELECT r.run_id, held.node, taker.run_id AS taker, CAST(sum(taker.gpus) AS BIGINT) AS gpus
FROM (SELECT run_id, max(end_at) AS end_at FROM job_run WHERE cluster = $1
  AND run_id IN (SELECT unnest(CAST($2 AS VARCHAR[]))) GROUP BY run_id) r
JOIN (SELECT DISTINCT run_id, node FROM allocation WHERE cluster = $1) held USING (run_id)
JOIN (SELECT DISTINCT run_id, node, gpu_uuid, gpus, start_at FROM allocation
  WHERE cluster = $1) taker
  ON taker.node = held.node AND taker.run_id <> r.run_id AND taker.gpus > 0
  AND taker.start_at BETWEEN r.end_at AND r.end_at + INTERVAL 5 MINUTE
GROUP BY ALL ORDER BY ALL"""

Place = tuple[int, int, str, str, str, str | None]
_LOST = 1


def lost_causes(frame: Frame, busy: HeldRows) -> Iterator[tuple[Place, int]]:
    """Key of `causes` and GPU time of everything that is lost; run None = the platform."""
    takers = _takers(frame)
    for row in np.flatnonzero(busy.classes[:, _LOST]).tolist():
        pool, slot = int(busy.pool[row]), int(busy.slot[row])
        node = frame.fleet.pools[pool][0]
        weights = takers.get((busy.runs[int(busy.run[row])], node), [(None, 1)])
        rule = "preemptor" if weights[0][0] is not None else "unknown-or-hardware"
        for run, part in split(int(busy.classes[row, _LOST]), weights):
            yield (pool, slot, LedgerClass.LOST.value, "causer", rule, run), part


def _takers(frame: Frame) -> dict[tuple[str, str], list[tuple[str | None, int]]]:
    """Per preempted (run, node) the runs that came next there, by the GPUs they took."""
    preempted = [run.run_id for run in frame.facts.runs.in_states(("PREEMPTED",))]
    found: dict[tuple[str, str], list[tuple[str | None, int]]] = defaultdict(list)
    if preempted:
        for row in frame.work.rows(_NEXT, [frame.facts.cluster, preempted]):
            found[row["run_id"], row["node"]].append((row["taker"], row["gpus"]))
    return found
