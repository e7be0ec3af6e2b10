"""What stands between this installation and a true report, and what to do about it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from analytics.health.span import facts_span, store_kind
from collector import migrations
from collector.agent.doctor import examine as examine_node
from collector.backup import schema_version
from collector.errors import CollectorError, StoreBusyError
from collector.store import Store
from unstrand.service.address import find_server
from unstrand.settings import Settings

SLURM_TOOLS = ("sacct", "scontrol", "sacctmgr")
# A checkpoint of DuckDB may need as much again as the file has.
ROOM_FOR_COPIES = 2
STALE_AFTER = timedelta(hours=1)


class State(StrEnum):
    """``absent``: not there, which is as it should be on some machines."""

    OK = "ok"
    ABSENT = "absent"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what came of it; ``remedy`` is empty where nothing has to be done."""

    check: str
    state: State
    found: str
    remedy: str = ""


def examine(settings: Settings, now: datetime) -> Iterator[Finding]:
    """Every check that can be made on this machine, in the order in which to repair."""
    yield _python()
    yield _slurm_tools()
    yield from _node()
    yield from _store(settings.db, now)


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("python", State.OK, version)


def _slurm_tools() -> Finding:
    missing = [tool for tool in SLURM_TOOLS if shutil.which(tool) is None]
    if not missing:
        return Finding("slurm", State.OK, f"{', '.join(SLURM_TOOLS)} are on the path")
    return Finding(
        "slurm",
        State.ABSENT,
        f"no {', '.join(missing)} on this machine",
        "run the import on a host of the cluster, or bring files: unstrand import slurm --help",
    )


def _node() -> Iterator[Finding]:
    """What the agent would find on this machine."""
    for found in examine_node():
        yield Finding(found.check, State(found.state), found.found, found.remedy)


def _store(path: Path, now: datetime) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(
            "store", State.FAILED, f"no file {path}",
            "unstrand import slurm ..., unstrand demo, or name the file with --db",
        )  # fmt: skip
        return
    yield _room(path)
    try:
        version = schema_version(path)
        yield Finding("schema", State.OK, f"version {version} of {migrations.latest()}")
        with Store.open(path, clock=lambda: now, create=False) as store:
            yield from _facts(store, now)
    except StoreBusyError:
        yield _holder(path)
    except CollectorError as error:
        yield Finding("store", State.FAILED, str(error), "restore a backup: unstrand restore FILE")


def _room(path: Path) -> Finding:
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    found = f"{path}, {size / 1e6:,.1f} MB, {free / 1e9:,.1f} GB free beside it"
    if free < ROOM_FOR_COPIES * size:
        remedy = f"make room in {path.parent}: the store may need as much again while it tidies up"
        return Finding("store", State.WARNING, found, remedy)
    return Finding("store", State.OK, found)


def _holder(path: Path) -> Finding:
    server = find_server(path)
    if server is None:
        return Finding(
            "service", State.FAILED, f"{path} is held by a process that does not answer",
            f"fuser {path} names it; end it",
        )  # fmt: skip
    return Finding(
        "service", State.OK, f"process {server.pid} serves it at {server.url}",
        f"its data health: {server.url}/api/v1/docs",
    )  # fmt: skip


def _facts(store: Store, now: datetime) -> Iterator[Finding]:
    kind = store_kind(store)
    span = facts_span(store)
    if span is None:
        yield Finding("facts", State.WARNING, "the store is empty", "unstrand import slurm --help")
        return
    counts = store.rows(
        "SELECT (SELECT count(*) FROM job_run) AS runs, (SELECT count(*) FROM sample) AS samples, "
        "(SELECT coalesce(sum(gpus), 0)::BIGINT FROM node "
        "WHERE valid_from < $1 AND coalesce(valid_to >= $1, true)) AS gpus",
        [span.until],
    )[0]
    yield Finding(
        "facts",
        State.OK,
        f"{kind}: {', '.join(span.clusters)}, {span.since:%Y-%m-%d %H:%M} to "
        f"{span.until:%Y-%m-%d %H:%M} UTC, {counts['gpus']:,} GPUs, {counts['runs']:,} runs, "
        f"{counts['samples']:,} samples",
    )
    if counts["samples"] == 0:
        yield Finding(
            "telemetry", State.WARNING, "no activity was measured: held time is not split",
            "sample the GPUs: unstrand up on the node",
        )  # fmt: skip
    if kind == "site" and now - span.until > STALE_AFTER:
        yield Finding(
            "freshness", State.WARNING, f"the newest fact is {_age(now - span.until)} old",
            "import again; until then the time since is unknown",
        )  # fmt: skip


def _age(age: timedelta) -> str:
    hours = int(age / timedelta(hours=1))
    return f"{hours} hours" if hours < 48 else f"{hours // 24} days"
