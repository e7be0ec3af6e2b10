"""Small numbers for pools, runs and holders, handed out once and kept for ever."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.labels import kept
from analytics.ledger.kernel.state import Array
from analytics.ledger.runs import Holder, Runs
from analytics.org import label_keys
from collector.store import Work

_HOLDER = ("user_name", "account", "project", "queue", "qos", "labels")
_LABELS = """
SELECT r.run_id, max(j.labels) AS labels FROM job_run r
JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE r.cluster = ? AND j.labels IS NOT NULL
  AND r.run_id IN (SELECT run_id FROM asked_run) GROUP BY r.run_id"""


def pool_keys(work: Work, cluster: str, pools: Sequence[tuple[str, str]]) -> Array:
    """The key of each (node, gpu_model) of a cluster, new ones made in the order given."""
    known = {
        (row["node"], row["gpu_model"]): row["pool_key"]
        for row in work.rows("SELECT * FROM ledger_pool WHERE cluster = ?", [cluster])
    }
    new = [pool for pool in pools if pool not in known]
    first = _next(work, "ledger_pool", "pool_key")
    known.update({pool: first + nth for nth, pool in enumerate(new)})
    work.append(
        "ledger_pool",
        {"pool_key": [known[pool] for pool in new], "cluster": [cluster] * len(new),
         "node": [node for node, _ in new], "gpu_model": [model for _, model in new]},
    )  # fmt: skip
    return np.array([known[pool] for pool in pools], np.int32)


class Keys:
    """The numbers of one cluster's runs and their holders, each asked for once."""

    def __init__(self, work: Work, cluster: str, runs: Runs) -> None:
        self._work, self._cluster, self._runs = work, cluster, runs
        self._place: dict[str, int] = {}
        self._rows = np.zeros((0, 2), np.int64)

    def of(self, run_ids: list[str]) -> Array:
        """Rows ``(run_key, holder_key)``, new ones made in the order given; a run that the facts
        do not describe has an empty holder."""
        ask = [run_id for run_id in run_ids if run_id not in self._place]
        if ask:
            runs = self._run_keys(ask)
            whose, of = self._labelled(ask, *self._runs.holders(ask))
            holders = np.array(self._holder_keys(whose), np.int64)[of]
            self._place.update(zip(ask, itertools.count(len(self._place))))
            self._rows = np.concatenate([self._rows, np.column_stack([runs, holders])])
        places = np.fromiter(map(self._place.__getitem__, run_ids), np.int64, len(run_ids))
        return self._rows[places]

    def _labelled(
        self, ask: list[str], whose: list[Holder], of: Array
    ) -> tuple[list[Holder], Array]:
        """Holders with the labels of their jobs that the org map is about, if it is about any."""
        keys = label_keys(self._work)
        if not keys:
            return [(*holder, None) for holder in whose], of
        rows = self._work.rows(_LABELS, [self._cluster])
        labels = {row["run_id"]: kept(row["labels"], keys) for row in rows}
        each = [(*whose[at], labels.get(name)) for name, at in zip(ask, of.tolist(), strict=True)]
        found = {holder: place for place, holder in enumerate(dict.fromkeys(each))}
        return list(found), np.array([found[holder] for holder in each], np.int64)

    def _run_keys(self, ask: list[str]) -> Array:
        # A table: a list of many names as a parameter takes longer than all the rest.
        self._work.execute("CREATE OR REPLACE TEMP TABLE asked_run (run_id VARCHAR)")
        self._work.append("asked_run", {"run_id": pa.array(ask, pa.string())})
        found = self._work.query(
            "SELECT run_id, run_key FROM ledger_run JOIN asked_run USING (run_id) "
            "WHERE cluster = ?",
            [self._cluster],
        )
        names, known = (column.to_pylist() for column in found.columns)
        key_of: dict[str, int] = dict(zip(names, known, strict=True))
        keys = np.fromiter(map(key_of.get, ask, itertools.repeat(0)), np.int64, len(ask))
        new = np.flatnonzero(keys == 0)
        keys[new] = _next(self._work, "ledger_run", "run_key") + np.arange(new.shape[0])
        named = [ask[at] for at in new.tolist()]
        self._work.append(
            "ledger_run",
            {"run_key": keys[new], "cluster": pa.repeat(self._cluster, new.shape[0]),
             "run_id": pa.array(named, pa.string()), "job_id": self._runs.jobs(named)},
        )  # fmt: skip
        return keys

    def _holder_keys(self, holders: list[Holder]) -> list[int]:
        work, cluster = self._work, self._cluster
        rows = work.rows("SELECT * FROM ledger_holder WHERE cluster = ?", [cluster])
        known: dict[Any, int] = {tuple(row[n] for n in _HOLDER): row["holder_key"] for row in rows}
        new = [holder for holder in holders if holder not in known]
        first = _next(work, "ledger_holder", "holder_key")
        known.update({holder: first + nth for nth, holder in enumerate(new)})
        columns: dict[str, list[Any]] = {
            name: [holder[i] for holder in new] for i, name in enumerate(_HOLDER)
        }
        columns |= {"holder_key": [known[h] for h in new], "cluster": [cluster] * len(new)}
        work.append("ledger_holder", columns)
        return [known[holder] for holder in holders]


def _next(work: Work, table: str, column: str) -> int:
    return int(work.value(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}"))  # noqa: S608 - our own names
