"""One frozen class per kind of fact; its fields are the columns of the table of the same name.

All datetimes are aware UTC. ``None`` = not measured, 0 = measured zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node's inventory over ``[valid_from, valid_to)``; one per GPU model on the node."""

    table: ClassVar[str] = "node"
    cluster: str
    node: str
    gpu_model: str | None
    gpus: int
    cpus: int | None = None
    mem_mib: int | None = None
    partitions: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    rack: str | None = None
    leaf: str | None = None
    spine: str | None = None
    owned: bool = True
    valid_from: datetime
    valid_to: datetime | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as submitted; requested amounts, before any run."""

    table: ClassVar[str] = "job"
    cluster: str
    job_id: str
    name: str | None = None
    account: str | None = None
    user_name: str | None = None
    project: str | None = None
    qos: str | None = None
    partitions: tuple[str, ...] | None = None
    submit_at: datetime
    array_job_id: str | None = None
    array_task: str | None = None
    het_job_id: str | None = None
    het_component: int | None = None
    req_nodes: int | None = None
    req_gpus: int | None = None
    req_gpu_model: str | None = None
    req_cpus: int | None = None
    req_mem_mib: int | None = None
    limit_s: int | None = None
    topology: str | None = None
    labels: str | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job; a requeued job has several. ``run_id`` is stable over repeated imports."""

    table: ClassVar[str] = "job_run"
    cluster: str
    run_id: str
    job_id: str
    attempt: int = 1
    account: str | None = None
    user_name: str | None = None
    project: str | None = None
    qos: str | None = None
    partition: str | None = None
    submit_at: datetime
    eligible_at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    state: str
    state_raw: str | None = None
    reason: str | None = None
    exit_code: str | None = None
    priority: int | None = None
    gpus: int | None = None
    cpus: int | None = None
    mem_mib: int | None = None
    nodes: int | None = None
    suspended_s: int | None = None
    limit_s: int | None = None
    last_known_at: datetime | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What a run holds on one node: ``gpus`` whole devices of the pool, or a share of a named GPU.

    Invariant: with ``gpu_uuid`` None the share is 1/1; with a ``gpu_uuid`` ``gpus`` is 1. CPU and
    memory are those of the run on the node, repeated on each of its rows there.
    """

    table: ClassVar[str] = "allocation"
    cluster: str
    run_id: str
    node: str
    gpu_model: str | None = None
    gpu_uuid: str | None = None
    mig_uuid: str | None = None
    gpus: int
    share_num: int = 1
    share_den: int = 1
    cpus: int | None = None
    mem_mib: int | None = None
    start_at: datetime
    end_at: datetime | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node could not take work over ``[since, until)``; ``until`` None = still so."""

    table: ClassVar[str] = "node_state"
    cluster: str
    node: str
    since: datetime
    until: datetime | None = None
    state: str
    state_raw: str | None = None
    reason: str | None = None
    user_name: str | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """GPUs of a node kept for a reservation or lease; ``gpus`` None = the whole node."""

    table: ClassVar[str] = "reservation"
    cluster: str
    name: str
    node: str
    gpus: int | None = None
    accounts: tuple[str, ...] | None = None
    since: datetime
    until: datetime | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at one instant, see the table for the kinds."""

    table: ClassVar[str] = "event"
    cluster: str
    ts: datetime
    kind: str
    node: str | None = None
    gpu_uuid: str | None = None
    job_id: str | None = None
    run_id: str | None = None
    code: int | None = None
    fatal: bool | None = None
    text: str | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactWindow:
    """Facts of ``kind`` (scheduler | telemetry) cover ``[since, until)``; outside: unknown."""

    table: ClassVar[str] = "fact_window"
    cluster: str
    kind: str
    node: str | None = None
    since: datetime
    until: datetime
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLog:
    """One import that was taken in, with what was kept and dropped."""

    table: ClassVar[str] = "import_log"
    import_id: str
    cluster: str
    source: str
    ts: datetime
    since: datetime | None = None
    until: datetime | None = None
    kept: int
    dropped: int
    remarks: str | None = None


Fact = Node | Job | JobRun | Allocation | NodeState | Reservation | Event | FactWindow | ImportLog
