"""``squeue``: who waits for what, and who runs, at one instant."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from collector.slurm import delimited, duration, stamp, tres
from collector.slurm.delimited import Layout
from collector.slurm.gres import gpus_by_type
from collector.slurm.refusal import MalformedError, refusal

FIELDS = (
    *("JobArrayID", "JobID", "Account", "UserName", "Partition", "QOS", "State", "PriorityLong"),
    *("SubmitTime", "TimeLimit", "tres-per-node", "tres-alloc", "Reason"),
)
COMMAND = ("squeue", "-h", "-a", "-r", "-O", ",".join(f"{name}:|" for name in FIELDS))
"""``:|`` after each field ends it with the delimiter instead of cutting it at 20 characters."""

MAX_TASKS = 1000
"""Pending tasks of one array that one snapshot keeps."""

_REMEDY = f"Ask with `{' '.join(COMMAND)}`"
_NAMES = (*(name.lower() for name in FIELDS), "")
_LAYOUT = Layout(frozenset({"no header"}), (_NAMES,), _REMEDY)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One pending job or array task; ``job_id`` is its raw id, or ``base_task`` for a task."""

    job_id: str
    partition: str
    account: str
    user: str
    qos: str
    priority: int | None
    reason: str
    submit: int | None
    nodes: int | None
    gpus: int | None
    gpus_per_node: int | None
    gpu_model: str | None
    cpus: int | None
    mem_mib: int | None
    limit_s: int | None


@dataclass(frozen=True, slots=True)
class Queue:
    """The pending jobs, raw ids of all others, and how many tasks `MAX_TASKS` left out."""

    waiting: tuple[Waiting, ...]
    active: frozenset[str]
    left_out: int


def parse(source: str, text: str) -> Queue:
    """What `COMMAND` printed. Raises ImportRefusedError."""
    if not text.strip():
        return Queue((), frozenset(), 0)
    rows = delimited.read(source, text.encode(), _LAYOUT)
    columns = [rows.column(name).to_pylist() for name in _NAMES[:-1]]
    waiting: list[Waiting] = []
    active: set[str] = set()
    tasks: Counter[str] = Counter()
    for line, cells in zip(rows.lines, zip(*columns, strict=True), strict=True):
        values = dict(zip(_NAMES[:-1], (cell.strip() for cell in cells), strict=True))
        if values["state"] not in ("PENDING", "PD"):
            active.add(values["jobid"])
            continue
        tasks[values["jobid"]] += 1
        if tasks[values["jobid"]] > MAX_TASKS:
            continue
        try:
            waiting.append(_waiting(values))
        except MalformedError as error:
            raise refusal(source, int(line), str(error), _REMEDY) from error
    left_out = sum(max(0, count - MAX_TASKS) for count in tasks.values())
    return Queue(tuple(waiting), frozenset(active), left_out)


def _waiting(values: dict[str, str]) -> Waiting:
    wanted = tres.parse(values["tres-alloc"]) or tres.Tres()
    kinds = [kind for kind, count in wanted.gpus_by_type.items() if count]
    priority = values["prioritylong"]
    return Waiting(
        job_id=values["jobarrayid"] if "_" in values["jobarrayid"] else values["jobid"],
        partition=values["partition"],
        account=values["account"],
        user=values["username"],
        qos=values["qos"],
        priority=int(priority) if priority.isascii() and priority.isdigit() else None,
        reason=values["reason"],
        submit=stamp.epoch(values["submittime"]),
        nodes=wanted.nodes,
        gpus=wanted.gpus,
        gpus_per_node=_per_node(values["tres-per-node"], wanted),
        gpu_model=kinds[0] if len(kinds) == 1 else None,
        cpus=wanted.cpus,
        mem_mib=wanted.mem_mib,
        limit_s=duration.limit_seconds(values["timelimit"]),
    )


def _per_node(text: str, wanted: tres.Tres) -> int | None:
    """GPUs that the job wants on each of its nodes; None where it leaves that open."""
    stated = 0 if text in ("", "N/A") else sum(gpus_by_type(text).values())
    if stated:
        return stated
    return wanted.gpus if wanted.nodes == 1 else None
