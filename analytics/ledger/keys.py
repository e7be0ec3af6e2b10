"""Small numbers for pools, runs and holders, handed out once and kept for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.labels import kept
from analytics.ledger.facts import Facts
from analytics.org import label_keys
from collector.store import Work


def pool_keys(
    work: Work, cluster: str, pools: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], int]:
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
    return known


Holder = tuple[str | None, ...]
"""user, account, project, queue, qos, and the labels that the org map is about."""
_LABELS = """
SELECT r.run_id, max(j.labels) AS labels FROM job_run r
JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE r.cluster = ? AND j.labels IS NOT NULL
  AND r.run_id IN (SELECT unnest(CAST(? AS VARCHAR[]))) GROUP BY r.run_id"""


def run_keys(work: Work, facts: Facts, run_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """``(run_key, holder_key)`` of each run; a run that the facts do not describe has an empty
    holder."""
    known = {
        row["run_id"]: row["run_key"]
        for row in work.rows(
            "SELECT run_id, run_key FROM ledger_run WHERE cluster = ? "
            "AND run_id IN (SELECT unnest(CAST(? AS VARCHAR[])))",
            [facts.cluster, list(run_ids)],
        )
    }
    new = [run_id for run_id in run_ids if run_id not in known]
    first = _next(work, "ledger_run", "run_key")
    known.update({run_id: first + nth for nth, run_id in enumerate(new)})
    jobs = [facts.runs[run_id].job_id if run_id in facts.runs else run_id for run_id in new]
    work.append(
        "ledger_run",
        {"run_key": [known[run_id] for run_id in new], "cluster": [facts.cluster] * len(new),
         "run_id": list(new), "job_id": jobs},
    )  # fmt: skip
    labels = _labels(work, facts.cluster, run_ids)
    holders = {run_id: (*_holder(facts, run_id), labels.get(run_id)) for run_id in run_ids}
    keys = _holder_keys(work, facts.cluster, list(dict.fromkeys(holders.values())))
    return {run_id: (known[run_id], keys[holders[run_id]]) for run_id in run_ids}


def _labels(work: Work, cluster: str, run_ids: Sequence[str]) -> dict[str, str | None]:
    """Per run the labels of its job that the org map is about."""
    keys = label_keys(work)
    if not keys:
        return {}
    rows = work.rows(_LABELS, [cluster, list(run_ids)])
    return {row["run_id"]: kept(row["labels"], keys) for row in rows}


def _holder(facts: Facts, run_id: str) -> Holder:
    run = facts.runs.get(run_id)
    if run is None:
        return (None, None, None, None, None)
    return (run.user, run.account, run.project, run.queue, run.qos)


def _holder_keys(work: Work, cluster: str, holders: list[Holder]) -> dict[Holder, int]:
    names = ("user_name", "account", "project", "queue", "qos", "labels")
    rows = work.rows("SELECT * FROM ledger_holder WHERE cluster = ?", [cluster])
    known: dict[Any, int] = {tuple(row[n] for n in names): row["holder_key"] for row in rows}
    new = [holder for holder in holders if holder not in known]
    first = _next(work, "ledger_holder", "holder_key")
    known.update({holder: first + nth for nth, holder in enumerate(new)})
    columns: dict[str, list[Any]] = {name: [h[i] for h in new] for i, name in enumerate(names)}
    columns |= {"holder_key": [known[h] for h in new], "cluster": [cluster] * len(new)}
    work.append("ledger_holder", columns)
    return known


def _next(work: Work, table: str, column: str) -> int:
    return int(work.value(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}"))  # noqa: S608 - our own names
