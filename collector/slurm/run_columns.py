"""The text columns of ``sacct`` into typed columns of job runs."""

from __future__ import annotations

from datetime import tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm import column, duration, job_state, tres
from collector.slurm.delimited import Delimited
from collector.slurm.refusal import MalformedError, refusal

_ID = r"^(?P<base>\d+)(?:_(?P<task>\d+|\[[^\]]*\]?))?(?:\+(?P<component>\d+))?$"
_NO_TEXT = pa.scalar(None, pa.string())


def typed(rows: Delimited, zone: tzinfo, remedy: str) -> dict[str, pa.Array]:
    """Every column of a run but what it held; times are epoch seconds (ImportRefusedError)."""
    return {
        "line": pa.array(rows.lines),
        **_ids(rows, remedy),
        **_names(rows, remedy),
        **_times(rows, zone, remedy),
        **_asked(rows, remedy),
    }


def _ids(rows: Delimited, remedy: str) -> dict[str, pa.Array]:
    """job_id is JobIDRaw, which is one per array task and het component, where the file has it."""
    shown_as = rows.column("jobid" if "jobid" in rows.columns else "jobidraw")
    parts = pc.extract_regex(shown_as, _ID)
    bad = pc.is_null(parts).to_numpy(zero_copy_only=False)
    if bad.any():
        at = int(np.argmax(bad))
        what = f"JobID {shown_as[at].as_py()!r} is no Slurm job id"
        raise refusal(rows.source, int(rows.lines[at]), what, remedy)
    base, task = _part(parts, "base"), _part(parts, "task")
    component = _part(parts, "component")
    raw = column.texts(rows, "jobidraw") if "jobidraw" in rows.columns else shown_as
    array_job = pc.if_else(pc.is_null(task), _NO_TEXT, base)
    het_job = pc.if_else(pc.is_null(component), _NO_TEXT, base)
    return {
        "job_id": pc.coalesce(raw, shown_as),
        "array_job_id": array_job,
        "array_task": task,
        "het_job_id": het_job,
        "het_component": pc.cast(component, pa.int32()),
    }


def _part(parts: pa.StructArray, name: str) -> pa.Array:
    found = parts.field(name)
    return pc.if_else(pc.equal(found, ""), _NO_TEXT, found)


def _names(rows: Delimited, remedy: str) -> dict[str, pa.Array]:
    state = column.mapped(rows, "state", job_state.state_of, pa.string(), remedy)
    wckey = pc.utf8_ltrim(rows.column("wckey"), characters="*")
    none = _NO_TEXT
    return {
        "name": column.texts(rows, "jobname"),
        "labels": column.texts(rows, "comment") if "comment" in rows.columns else _no_text(rows),
        "account": column.texts(rows, "account"),
        "user_name": column.texts(rows, "user"),
        "project": pc.if_else(pc.is_in(wckey, pa.array(["", "(null)"])), none, wckey),
        "qos": column.texts(rows, "qos"),
        "partition": column.texts(rows, "partition"),
        "state": state,
        "state_raw": column.texts(rows, "state"),
        "reason": column.texts(rows, "reason", unset=("", "None")),
        "exit_code": column.texts(rows, "exitcode"),
    }


def _no_text(rows: Delimited) -> pa.Array:
    return pa.nulls(len(rows.lines), pa.string())


def _times(rows: Delimited, zone: tzinfo, remedy: str) -> dict[str, pa.Array]:
    found = {
        name: column.instants(rows, name, zone, remedy)
        for name in ("submit", "eligible", "start", "end")
    }
    unset = pc.is_null(found["submit"]).to_numpy(zero_copy_only=False)
    if unset.any():
        line = int(rows.lines[int(np.argmax(unset))])
        raise refusal(rows.source, line, "the job has no Submit time", remedy)
    return found | {
        "elapsed_s": _elapsed(rows, remedy),
        "suspended_s": column.mapped(rows, "suspended", duration.seconds, pa.int64(), remedy),
    }


def _elapsed(rows: Delimited, remedy: str) -> pa.Array:
    if "elapsedraw" in rows.columns:
        return column.integers(rows, "elapsedraw", remedy)
    return column.mapped(rows, "elapsed", duration.seconds, pa.int64(), remedy)


def _asked(rows: Delimited, remedy: str) -> dict[str, pa.Array]:
    asked, code = column.looked_up(rows, "reqtres", _lenient_tres, remedy)
    at = pa.array(code)

    def of(values: list[int | None]) -> pa.Array:
        return pa.array(values, pa.int64()).take(at)

    kinds = [_one_type(each) for each in asked]
    limit_field = "timelimitraw" if "timelimitraw" in rows.columns else "timelimit"
    limit = column.mapped(rows, limit_field, duration.limit_seconds, pa.int64(), remedy)
    return {
        "req_gpus": of([None if each is None else each.gpus for each in asked]),
        "req_cpus": of([None if each is None else each.cpus for each in asked]),
        "req_mem_mib": of([None if each is None else each.mem_mib for each in asked]),
        "req_nodes": of([None if each is None else each.nodes for each in asked]),
        "req_gpu_model": pa.array(kinds, pa.string()).take(at),
        "limit_s": limit,
        "partition_limit": pc.equal(
            pc.utf8_lower(rows.column(limit_field)), duration.PARTITION_LIMIT
        ),
        "priority": column.integers(rows, "priority", remedy),
        "nnodes": column.integers(rows, "nnodes", remedy),
    }


def _lenient_tres(text: str) -> tres.Tres | None:
    """What was asked for is information only: an unreadable list is "not known"."""
    try:
        return tres.parse(text)
    except MalformedError:
        return None


def _one_type(asked: tres.Tres | None) -> str | None:
    kinds = [] if asked is None else [kind for kind, n in asked.gpus_by_type.items() if n]
    return kinds[0] if len(kinds) == 1 else None
