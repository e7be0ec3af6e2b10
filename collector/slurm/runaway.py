"""Runs that accounting shows as running and the controller does not know."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm.sacct import RunBatch

_GRACE_S = 60
"""A run that began this shortly before the queue was listed may be missing there."""


def marked(
    runs: RunBatch, active: frozenset[str], listed_at: datetime
) -> tuple[RunBatch, list[str]]:
    """The same runs, where one that the queue does not show is known only from its start on.

    What is stored of such a run from a time when the queue still showed it stays as it is. They
    inflate usage until their end is set; the remark says so.
    """
    table = runs.table
    unseen = pc.and_(
        pc.and_(pc.equal(table["state"], "RUNNING"), pc.is_null(table["end"])),
        pc.invert(pc.is_in(table["job_id"], pa.array(sorted(active), pa.string()))),
    )
    old = pc.less(table["start"], int(listed_at.timestamp()) - _GRACE_S)
    unseen = pc.and_(unseen, pc.fill_null(old, fill_value=False))
    count = int(pc.sum(unseen).as_py() or 0)
    if not count:
        return runs, []
    elapsed = pc.if_else(unseen, pa.scalar(0, pa.int64()), table["elapsed_s"])
    table = table.set_column(table.schema.get_field_index("elapsed_s"), "elapsed_s", elapsed)
    first = table["job_id"][int(np.argmax(np.asarray(unseen)))].as_py()
    remark = (
        f"{count} runs are RUNNING in accounting but not in the queue (job {first}, ...): they "
        "count only up to when the queue last showed them; see `sacctmgr show runawayjobs`"
    )
    return runs.with_table(table, {}), [remark]
