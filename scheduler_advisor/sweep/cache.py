"""Replays that were run already, in the store, by what they were made of."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from scheduler_advisor.engine.hashes import VERSION
from scheduler_advisor.sweep.cells import Cell
from scheduler_advisor.sweep.replay import Replayed

if TYPE_CHECKING:
    from collector.store import Store

_FIND = """
SELECT policy_hash, seed, last(result ORDER BY ts) AS result FROM simulation
WHERE workload_hash = ? AND cluster_hash = ? AND engine_version = ? GROUP BY policy_hash, seed
"""


class Cache:
    """The results for one workload on one cluster, by policy and seed."""

    def __init__(self, store: Store, workload_hash: str, cluster_hash: str) -> None:
        self._store = store
        self._key = (workload_hash, cluster_hash)
        rows = store.rows(_FIND, [*self._key, VERSION])
        self._known = {(row["policy_hash"], row["seed"]): row["result"] for row in rows}

    def get(self, cell: Cell) -> Replayed | None:
        """The result of an equal replay by the same version of the engine."""
        text = self._known.get((cell.policy.hash, cell.seed))
        if text is None:
            return None
        stored = json.loads(text)
        return Replayed(stored["summary"], stored["outcome_hash"], 0.0, cached=True)

    def put(self, cell: Cell, result: Replayed, now: datetime) -> None:
        """Keep a result for good."""
        workload, cluster = self._key
        content = {"summary": result.summary, "outcome_hash": result.outcome_hash}
        with self._store.work() as work:
            work.append(
                "simulation",
                {
                    "workload_hash": [workload],
                    "cluster_hash": [cluster],
                    "policy_hash": [cell.policy.hash],
                    "engine_version": [VERSION],
                    "seed": [cell.seed],
                    "ts": [now],
                    "result": [json.dumps(content)],
                },
            )
