"""The runs of a batch spread over their nodes, as one column batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm import hostlist
from collector.slurm.sacct import RunBatch
from collector.slurm.split import Inventory, Share, shares
from collector.slurm.tres import Tres

_LISTED = 8


@dataclass(frozen=True, slots=True)
class Spread:
    """Allocations: ``run`` is the row of the run in the batch, ``exact`` whether its split over
    nodes is the controller's own; and what to say about them."""

    run: np.ndarray
    exact: np.ndarray
    columns: dict[str, pa.Array]
    without_gpus: int
    remarks: tuple[str, ...]


def spread(batch: RunBatch, inventory: Inventory, exact: Mapping[str, Sequence[Share]]) -> Spread:
    """What each started run holds on each node.

    ``exact``: by run id, what the controller itself said per node; the other runs are split by the
    rule in `split`. Runs without GPUs are kept on GPU nodes only: they hold CPUs and memory there.
    """
    table = batch.table
    runs, vague = _started(batch)
    known = _known(batch, runs, exact)
    ruled = runs[~np.isin(runs, list(known))] if known else runs
    pairs, which = _combinations(table, ruled)
    per_pair = [
        shares(batch.alloc[alloc] or Tres(), batch.nodelists[nodes], inventory)
        for alloc, nodes in pairs
    ]
    lists = per_pair + list(known.values())
    owner = np.concatenate([ruled, np.fromiter(known, dtype=np.int64, count=len(known))])
    which = np.concatenate([which, np.arange(len(per_pair), len(lists), dtype=np.int64)])
    kept, without = _on_gpus(lists, inventory)
    repeats = np.array([len(each) for each in kept], dtype=np.int64)
    columns = _columns(kept, repeats, which)
    lost = int(np.array(without, dtype=np.int64)[which].sum()) if lists else 0
    remarks = _remarks(batch, pairs, lists, inventory)
    times = repeats[which]
    run, exactly = np.repeat(owner, times), np.repeat(which >= len(per_pair), times)
    return Spread(run, exactly, columns, lost, (*vague, *remarks))


def _started(batch: RunBatch) -> tuple[np.ndarray, list[str]]:
    """The rows of runs that held something somewhere, and a remark on those that do not say so."""
    table = batch.table
    if not len(table):
        return np.zeros(0, dtype=np.int64), []
    placed = np.array([bool(names) for names in batch.nodelists], dtype=bool)
    holds = np.array([held is not None for held in batch.alloc], dtype=bool)
    placed = placed[np.asarray(table["node_code"])]
    holds = holds[np.asarray(table["alloc_code"])]
    started = np.asarray(pc.is_valid(table["start"]))
    vague = int((started & (placed != holds)).sum())
    remark = (
        f"{vague} runs have only one of AllocTRES and NodeList: what they held is not known, and "
        "they hold nothing here"
    )
    return np.flatnonzero(started & placed & holds), [remark] if vague else []


def _known(
    batch: RunBatch, runs: np.ndarray, exact: Mapping[str, Sequence[Share]]
) -> dict[int, list[Share]]:
    """The controller's split by row, where it says the same number of GPUs as accounting."""
    if not exact:
        return {}
    ids = batch.table["run_id"].to_pylist()
    codes = np.asarray(batch.table["alloc_code"])
    found = {}
    for row in runs:
        split = exact.get(ids[row])
        held = batch.alloc[codes[row]]
        if split and held is not None and sum(share.gpus for share in split) == held.gpus:
            found[int(row)] = list(split)
    return found


def _combinations(table: pa.Table, runs: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """The distinct (alloc_code, node_code), and which of them each run has."""
    if not len(runs):
        return [], np.zeros(0, dtype=np.int64)
    alloc = np.asarray(table["alloc_code"])[runs]
    nodes = np.asarray(table["node_code"])[runs]
    width = int(nodes.max()) + 1
    keys, which = np.unique(alloc * width + nodes, return_inverse=True)
    return [(int(key) // width, int(key) % width) for key in keys], which


def _on_gpus(
    lists: Sequence[Sequence[Share]], inventory: Inventory
) -> tuple[list[list[Share]], list[int]]:
    kept = [[s for s in each if s.gpus or inventory.get(s.node)] for each in lists]
    return kept, [len(every) - len(some) for every, some in zip(lists, kept, strict=True)]


def _columns(
    lists: Sequence[Sequence[Share]], repeats: np.ndarray, which: np.ndarray
) -> dict[str, pa.Array]:
    flat = [share for each in lists for share in each]
    offsets = np.cumsum(repeats) - repeats
    counts = repeats[which]
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    at = pa.array(np.repeat(offsets[which], counts) + inside)
    return {
        "node": pa.array([s.node for s in flat], pa.string()).take(at),
        "gpu_model": pa.array([s.gpu_model for s in flat], pa.string()).take(at),
        "gpus": pa.array([s.gpus for s in flat], pa.int32()).take(at),
        "cpus": pa.array([s.cpus for s in flat], pa.int32()).take(at),
        "mem_mib": pa.array([s.mem_mib for s in flat], pa.int64()).take(at),
    }


def _remarks(
    batch: RunBatch,
    pairs: Sequence[tuple[int, int]],
    lists: Sequence[Sequence[Share]],
    inventory: Inventory,
) -> list[str]:
    used = [share for each in lists for share in each]
    missing = sorted({s.node for s in used if s.gpus and s.node not in inventory})
    too_many = sorted({s.node for s in used if s.node in inventory and s.gpus > _sum(inventory, s)})
    remarks = []
    if missing:
        remarks.append(
            f"{len(missing)} nodes held GPUs but are not in the node list, so their installed "
            f"GPUs are not known: {_some(missing)}"
        )
    if too_many:
        remarks.append(
            f"on {len(too_many)} nodes a run held more GPUs than the node list says it has: "
            f"{_some(too_many)}"
        )
    if any(_shared(batch, alloc) for alloc, _ in pairs):
        remarks.append(
            "some runs held shards or MPS shares: sacct does not say of which GPU, so they are "
            "not counted as GPUs"
        )
    return remarks


def _sum(inventory: Inventory, share: Share) -> int:
    return sum(inventory[share.node].values())


def _shared(batch: RunBatch, alloc: int) -> bool:
    held = batch.alloc[alloc]
    return held is not None and held.shared_gpus


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return hostlist.compress(names[:_LISTED]) + more
