"""Who caused it: stranded time split over runs, waiting time named after the job that waits.
Modelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.ledger.classes import LedgerClass
from analytics.ledger.frame import Frame
from analytics.ledger.heldrows import HeldRows
from analytics.ledger.host import HostShares
from analytics.ledger.kernel import state as k
from analytics.ledger.order import stable_order
from analytics.ledger.pending import PendingJobs
from analytics.ledger.preemptor import lost_causes
from analytics.ledger.stranders import split_stranded
from analytics.window import HOUR_US


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """How GPU time is blamed: class, role of the run named, rule."""

    name: str
    role: str
    rule: str


CAUSES = {
    k.C_CPU: Cause(LedgerClass.STRANDED_CPU, "causer", "profile"),
    k.C_MEM: Cause(LedgerClass.STRANDED_MEM, "causer", "profile"),
    k.C_CPU_REQUEST: Cause(LedgerClass.STRANDED_CPU, "causer", "request"),
    k.C_MEM_REQUEST: Cause(LedgerClass.STRANDED_MEM, "causer", "request"),
    k.C_SHAPE: Cause(LedgerClass.STRANDED_SHAPE, "causer", "blocks-shape"),
    k.C_TOPOLOGY: Cause(LedgerClass.STRANDED_TOPOLOGY, "causer", "blocks-shape"),
    k.C_GANG: Cause(LedgerClass.GANG_WAIT, "waiter", "waits"),
    k.C_ORDER: Cause(LedgerClass.POLICY_BLOCKED, "waiter", "order"),
    k.C_LIMIT: Cause(LedgerClass.POLICY_BLOCKED, "waiter", "limit"),
}
_LOST = tuple(
    Cause(LedgerClass.LOST, "causer", rule) for rule in ("preemptor", "unknown-or-hardware")
)
_GEOMETRY = Cause(LedgerClass.STRANDED_SHAPE, "causer", "mig-geometry")
_KINDS = sorted({*CAUSES.values(), *_LOST, _GEOMETRY})
_RANK = {cause: place for place, cause in enumerate(_KINDS)}
_OF_CODE = np.array([_RANK[CAUSES[c]] if c in CAUSES else -1 for c in range(k.CODES)], np.int64)
_WAITERS = [code for code, cause in CAUSES.items() if cause.role == "waiter"]

Named = tuple[int, int, str, str, str, str | None]
"""pool, slot, class, role, rule, run."""

# Columns of a blamed amount.
_POOL, _SLOT, _KIND, _RUN, _TIME, _CPU, _MEM = range(7)


def causes(
    frame: Frame, found: k.Array, pending: PendingJobs, host: HostShares, busy: HeldRows,
    geometry: list[tuple[Named, int]],
) -> pa.Table:  # fmt: skip
    """Rows of ``ledger_cause``; per (pool, slice, class) they add up to the class.

    ``found`` = causes as the sweep gives them, ``geometry`` = those of MIG slices.
    """
    other = [*lost_causes(frame, busy), *geometry]
    names = sorted(
        {*host.runs, *(r for r in pending.run_ids if r)} | {key[5] for key, _ in other if key[5]}
    )
    place = {name: at for at, name in enumerate(names)}
    place[""] = -1
    waits = np.isin(found[:, 2], _WAITERS)
    blamed = [
        _waiters(found[waits], np.array([place[r or ""] for r in pending.run_ids], np.int64)),
        _causers(frame, found[~waits], host, np.array([place[r] for r in host.runs], np.int64)),
        np.array(
            [
                (key[0], key[1], _RANK[Cause(*key[2:5])], place[key[5] or ""], time, -1, -1)
                for key, time in other
            ],
            np.int64,
        ).reshape(-1, 7),
    ]
    return _table(frame, _added_up(np.concatenate(blamed), len(names)), names)


def _waiters(rows: k.Array, run_of: k.Array) -> k.Array:
    nothing = np.full(rows.shape[0], -1, np.int64)
    run = run_of[rows[:, 3]] if rows.shape[0] else nothing
    return np.column_stack(
        [rows[:, 0], rows[:, 1], _OF_CODE[rows[:, 2]], run, rows[:, 5], nothing, nothing]
    )


def _causers(frame: Frame, rows: k.Array, host: HostShares, run_of: k.Array) -> k.Array:
    """Stranded time by the runs on the node; run -1 = the platform."""
    if not rows.shape[0]:
        return np.zeros((0, 7), np.int64)
    rows, parts = split_stranded(frame, rows, host)
    of = rows[parts[:, 0]]
    run = np.where(parts[:, 1] < 0, -1, run_of[parts[:, 1]] if run_of.size else -1)
    cpu = np.where(of[:, 2] == k.C_CPU, of[:, 7], -1)
    mem = np.where(of[:, 2] == k.C_MEM, of[:, 7], -1)
    return np.column_stack([of[:, 0], of[:, 1], _OF_CODE[of[:, 2]], run, parts[:, 2], cpu, mem])


def _added_up(rows: k.Array, names: int) -> k.Array:
    """One row per (slice, pool, cause, run), in that order; nobody comes before every run."""
    rows = rows[rows[:, _TIME] > 0]
    if not rows.shape[0]:
        return rows
    pools, kinds, runs = int(rows[:, _POOL].max()) + 1, len(_KINDS), names + 1
    key = rows[:, _SLOT] * pools + rows[:, _POOL]
    key = (key * kinds + rows[:, _KIND]) * runs + rows[:, _RUN] + 1
    order = stable_order(key)
    rows, key = rows[order], key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    result = rows[first].copy()
    result[:, _TIME] = np.add.reduceat(rows[:, _TIME], first)
    for column in (_CPU, _MEM):
        result[:, column] = np.maximum.reduceat(rows[:, column], first)
    return result


def _table(frame: Frame, rows: k.Array, names: list[str]) -> pa.Table:
    pools, slot = rows[:, _POOL], rows[:, _SLOT]
    some = np.unique(rows[:, _RUN])
    some = some[some >= 0]
    run = np.full((2, len(names) + 1), -1, np.int64)
    run[:, some] = frame.keys.of([names[place] for place in some.tolist()]).T
    begin, time = frame.bounds[:-1][slot], pa.timestamp("us")
    kind = rows[:, _KIND]
    return pa.table(
        {
            "hour": pa.array(begin // HOUR_US * HOUR_US, time),
            "since": pa.array(begin, time),
            "until": pa.array(frame.bounds[1:][slot], time),
            "pool_key": frame.pool_keys()[pools],
            "price_key": _or_null(frame.price_places()[pools, slot], pa.int32()),
            "posting": np.zeros(rows.shape[0], np.int32),
            "class": _words([str(cause.name) for cause in _KINDS], kind),
            "role": _words([cause.role for cause in _KINDS], kind),
            "rule": _words([cause.rule for cause in _KINDS], kind),
            "run_key": _or_null(run[0, rows[:, _RUN]], pa.int32()),
            "holder_key": _or_null(run[1, rows[:, _RUN]], pa.int32()),
            "gpu_us": rows[:, _TIME],
            "release_cpu_milli": _or_null(rows[:, _CPU], pa.int64()),
            "release_mem_mib": _or_null(rows[:, _MEM], pa.int64()),
        }
    )


def _words(words: list[str], places: k.Array) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), words)


def _or_null(values: k.Array, kind: Any) -> Any:
    return pa.array(values, kind, mask=values < 0)
