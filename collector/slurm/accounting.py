"""Does Slurm account for GPUs at all? If not, every job would seem to hold none, for nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collector.slurm.node import SlurmNode
from collector.slurm.refusal import refusal
from collector.slurm.sacct import RunBatch

_REMEDY = (
    "Set AccountingStorageTRES=gres/gpu in slurm.conf (jobs are counted from then on) and import "
    "the time after that; where it is set, give the full output of `scontrol show node -d -o`: "
    "its CfgTRES shows it"
)


def check_gpu_accounting(runs: RunBatch, nodes: Sequence[SlurmNode]) -> list[str]:
    """A remark if jobs ran on GPU nodes and none held a GPU; a refusal if that cannot be true.

    The node list proves that GPUs are accounted for where its CfgTRES names them, and that they
    are not where a node shows GPUs in use (GresUsed) or leaves them out of CfgTRES.
    """
    with_gpus = {node.name: node for node in nodes if sum(node.gpus.values())}
    if not with_gpus or _any_gpu(runs):
        return []
    busy = _nodes_of_started(runs) & with_gpus.keys()
    if not busy:
        return []
    what = f"jobs ran on {len(busy)} GPU nodes, yet no job of the file holds a GPU"
    used = [name for name, node in with_gpus.items() if sum((node.gpus_used or {}).values())]
    if used:
        why = f"{what}, while the node list shows GPUs in use on {used[0]}"
        raise refusal(runs.source, None, why, _REMEDY)
    if all(with_gpus[name].tracks_gpus for name in busy):
        return [f"{what}: their GPUs stood free the whole time"]
    raise refusal(runs.source, None, f"{what}: Slurm does not account for GPUs", _REMEDY)


def _any_gpu(runs: RunBatch) -> bool:
    if not len(runs.table):
        return False
    codes = np.unique(np.asarray(runs.table["alloc_code"]))
    held = [runs.alloc[int(code)] for code in codes]
    return any(each is not None and each.gpus for each in held)


def _nodes_of_started(runs: RunBatch) -> set[str]:
    if not len(runs.table):
        return set()
    started = runs.table["start"].is_valid().to_numpy()
    codes = np.unique(np.asarray(runs.table["node_code"])[started])
    return {name for code in codes for name in runs.nodelists[int(code)]}
