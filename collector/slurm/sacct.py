"""``sacct -P`` output into one typed column batch of job runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm import column, delimited, hostlist, job_state, run_columns, tres
from collector.slurm.delimited import Delimited, Layout
from collector.slurm.refusal import refusal

FIELDS = (
    "cluster,jobid,jobidraw,account,user,uid,qos,partition,submit,eligible,start,end,elapsedraw,"
    "suspended,state,reqtres,alloctres,nnodes,nodelist,restarts,planned,timelimitraw,exitcode,"
    "reason,wckey,jobname"
)
COMMAND = (
    "SLURM_TIME_FORMAT=%s TZ=UTC sacct -a -X -D -P --noconvert -S START -E END --format=" + FIELDS
)
REMEDY = f"Write the file with `{COMMAND}`"
_JOB_ID = re.compile(r"\d+([_+.\[]|\Z)", re.ASCII)
_NEEDED = ("submit", "start", "end", "state", "alloctres", "nodelist")


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Job runs as Arrow columns (times: epoch seconds, int64) with their parsed TRES lists.

    ``alloc[alloc_code[i]]`` are the resources that row ``i`` held, None for none recorded.
    ``local``: its times carried no zone and were read in one that is not UTC.
    """

    source: str
    table: pa.Table
    alloc: list[tres.Tres | None]
    nodelists: list[list[str]]
    dropped: dict[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    local: bool = False

    def with_table(self, table: pa.Table, dropped: dict[str, int]) -> RunBatch:
        """The same batch with other rows, and what was left out counted by reason."""
        counts = self.dropped | {why: count for why, count in dropped.items() if count}
        return replace(self, table=table, dropped=counts)


def parse(
    source: str, data: bytes, *, cluster: str, zone: tzinfo = UTC, fields: str | None = None
) -> RunBatch:
    """The runs in ``data``, steps left out. Raises ImportRefusedError.

    ``fields``: the ``--format`` of a file without a header; default `FIELDS` (``reserved`` for
    ``planned`` and a missing ``restarts`` are tried too). ``cluster``: of a file that holds
    several clusters, only this one's rows are taken.
    """
    rows = delimited.read(source, data, _layout(fields))
    _need_columns(rows)
    rows, other = _of_cluster(rows, cluster)
    rows, steps = _without_steps(rows)
    return _typed(rows, zone, {"other cluster": other, "job step": steps})


def _layout(fields: str | None) -> Layout:
    names = delimited.fields_of(fields or FIELDS)
    formats = [names]
    if fields is None:
        formats += [tuple(name for name in names if name != "restarts")]
    return Layout(frozenset({"jobid", "jobidraw"}), tuple(formats), REMEDY, _JOB_ID)


def _need_columns(rows: Delimited) -> None:
    missing = [name for name in _NEEDED if name not in rows.columns]
    if not {"jobid", "jobidraw"} & rows.columns.keys():
        missing.insert(0, "jobid")
    if missing:
        raise refusal(rows.source, 1, f"no column {', '.join(missing)}", REMEDY)


def _of_cluster(rows: Delimited, cluster: str) -> tuple[Delimited, int]:
    """Rows of ``cluster``; a file of one cluster only is taken whatever its name is."""
    names = set(pc.unique(rows.column("cluster")).to_pylist())
    if len(names) < 2:
        return rows, 0
    if cluster not in names:
        held = ", ".join(sorted(names))
        what = f"rows of the clusters {held}, none of {cluster}"
        raise refusal(rows.source, None, what, "Choose one of them with --cluster")
    mine = pc.equal(rows.column("cluster"), cluster).to_numpy(zero_copy_only=False)
    return rows.take(mine), int((~mine).sum())


def _without_steps(rows: Delimited) -> tuple[Delimited, int]:
    name = "jobid" if "jobid" in rows.columns else "jobidraw"
    # Not the dots of an array's list that Slurm cut: 7_[1,3,5,...].
    steps = pc.match_substring_regex(rows.column(name), r"^[^\[]*\.")
    steps = steps.to_numpy(zero_copy_only=False)
    return (rows.take(~steps), int(steps.sum())) if steps.any() else (rows, 0)


def _typed(rows: Delimited, zone: tzinfo, dropped: dict[str, int]) -> RunBatch:
    alloc, alloc_code = column.looked_up(rows, "alloctres", tres.parse, REMEDY)
    nodelists, node_code = column.looked_up(rows, "nodelist", hostlist.expand, REMEDY)
    columns = run_columns.typed(rows, zone, REMEDY) | {
        "alloc_code": pa.array(alloc_code.astype(np.int64)),
        "node_code": pa.array(node_code.astype(np.int64)),
    }
    kept = {why: count for why, count in dropped.items() if count}
    zoneless = any(column.zoneless(rows, name) for name in ("submit", "start", "end"))
    remarks = (*_zone_remark(rows, zone, zoneless), *_name_remark(rows), *_state_remark(columns))
    local = zoneless and zone is not UTC
    return RunBatch(rows.source, pa.table(columns), alloc, nodelists, kept, remarks, local)


def _zone_remark(rows: Delimited, zone: tzinfo, zoneless: bool) -> list[str]:
    if not zoneless:
        return []
    return [f"{rows.source}: its times carry no zone and were read as {zone}"]


def _name_remark(rows: Delimited) -> list[str]:
    if not rows.rests:
        return []
    what = f"{len(rows.rests)} lines go on with the job name above them"
    return [f"{rows.source}: {what} (the first: line {rows.rests[0]})"]


def _state_remark(columns: dict[str, pa.Array]) -> list[str]:
    unknown = pc.equal(columns["state"], job_state.UNKNOWN)
    words = pc.unique(columns["state_raw"].filter(unknown)).to_pylist()
    if not words:
        return []
    listed = ", ".join(sorted(str(word) for word in words)[:5])
    return [f"{pc.sum(unknown).as_py()} runs are in a state this version does not know: {listed}"]
