"""What is wrong with the demo cluster, on purpose.

`PLANTED` states every fault once. The generator builds the faults from it, and a test or a piece
of advice that must find a fault takes the expected owner and amount from the same place: the
amounts of faults made of jobs from `DemoFacts.held_gpu_hours(key)`, the others from their fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from collector.demo.fleet import NODE_INDEX, seconds
from collector.demo.jobs import DAY, HOUR, DemoJob
from collector.demo.scheduler import Outage

Value = TypeVar("Value")


def _on(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 10, day, hour, minute, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault.

    ``jobs``: names of the jobs that are the fault (each name occurs in no other job).
    ``node``: where it is fixed to one node. ``activity``: mean share of held time with a kernel
    running, where the fault is about activity.
    """

    what: str
    team: str | None = None
    users: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    node: str | None = None
    gpus: int | None = None
    activity: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None

    @property
    def begin(self) -> datetime:
        """``since`` of a fault that begins at a fixed time."""
        return _fixed(self.since, self.what)

    @property
    def end(self) -> datetime:
        """``until`` of a fault that ends at a fixed time."""
        return _fixed(self.until, self.what)

    @property
    def place(self) -> str:
        """``node`` of a fault that is fixed to one."""
        return _fixed(self.node, self.what)


def _fixed(value: Value | None, what: str) -> Value:
    if value is None:
        raise LookupError(f"not fixed beforehand, ask the generated runs: {what}")
    return value


SMALL_JOBS = ("ocr-detect", "ocr-layout", "ocr-read")
SMALL_JOB_HOURS = 12  # each day from 08:00
SWEEP = tuple(f"sweep-{number}" for number in range(1, 9))  # one GPU each
XID_TO_DOWN_S = 20 * 60
NOTEBOOKS = ("notebook-ablation", "notebook-eval", "notebook-pose")

PLANTED: dict[str, Fault] = {
    "low_utilisation": Fault(
        what="A team on A100 whose kernels run 30% of the time: its input pipeline is CPU-bound",
        team="language",
        activity=0.30,
    ),
    "high_utilisation": Fault(
        what="A team on T4 at 95%: the cheap GPUs do more per dollar", team="speech", activity=0.95
    ),
    "cpu_hog": Fault(
        what="One job with one GPU and 112 of the node's 128 CPUs: the rest has GPUs without CPUs",
        team="vision", users=("d.meyer",), jobs=("render-frames",), gpus=1,
        since=_on(6, 10), until=_on(12, 10),
    ),
    "memory_hog": Fault(
        what="One job with one GPU and 960 of the node's 1,024 GiB of memory",
        team="research", users=("l.rossi",), jobs=("graph-embed",), gpus=1,
        since=_on(15, 9), until=_on(20, 9),
    ),
    "fragmentation": Fault(
        what="Small jobs go to the emptiest node and stay for days: no node is left whole",
        team="vision", users=("a.novak",), jobs=SWEEP, gpus=8, since=_on(12, 8, 30),
        until=_on(15, 12, 30),
    ),
    "waiting_gang": Fault(
        what="A gang of 5 whole nodes waits for days while GPUs are free",
        team="research", users=("h.kim",), jobs=("moe-40",), gpus=40, since=_on(12, 9),
    ),
    "idle_notebook_1": Fault(
        what="A notebook holds two GPUs and has not run a kernel since it was opened",
        team="research", users=("m.park",), jobs=(NOTEBOOKS[0],), gpus=2, activity=0.0,
        since=_on(8, 13),
    ),
    "idle_notebook_2": Fault(
        what="A notebook holds a GPU and has not run a kernel since it was opened",
        team="vision", users=("t.okafor",), jobs=(NOTEBOOKS[1],), gpus=1, activity=0.0,
        since=_on(19, 9),
    ),
    "idle_after_use": Fault(
        what="A notebook worked for 20 hours and then kept its GPU",
        team="research", users=("j.alvarez",), jobs=(NOTEBOOKS[2],), gpus=1, activity=0.6,
        since=_on(21, 8), until=_on(30, 8),
    ),
    "small_jobs": Fault(
        what="Three jobs, 12 hours a day each with a GPU of its own, would share one",
        team="vision", users=("n.ito",), jobs=SMALL_JOBS, gpus=3, activity=0.25,
    ),
    "drained_node": Fault(
        what="A node is drained and nobody has come back to it",
        node="a100-03", gpus=8, since=_on(20, 9), reason="GPU 5 remapped rows, waiting for vendor",
    ),
    "failed_node": Fault(
        what="A fatal Xid on one GPU; twenty minutes later the node is down for six hours",
        node="t4-05", gpus=4, since=_on(14, 11), until=_on(14, 17, 20), reason="Xid 79",
    ),
    "unused_reservation": Fault(
        what="A node is kept for a course that never used it",
        node="t4-08", gpus=4, since=_on(26, 8), until=_on(30, 18), reason="course-dl",
    ),
    "telemetry_gap": Fault(
        what="The collector of one node sent nothing for 26 hours",
        node="a100-02", gpus=8, since=_on(13, 10), until=_on(14, 12),
    ),
    "scheduler_gap": Fault(
        what="The scheduler answered nobody for an hour", since=_on(22, 2), until=_on(22, 3)
    ),
    "requeue_loop": Fault(
        what="A job fails after half an hour, is queued again, and fails again",
        team="vision", users=("a.novak",), jobs=("train-detr",), gpus=2, since=_on(27, 9),
    ),
    "preempted_with_marks": Fault(
        what="A run is preempted two hours after its last checkpoint",
        team="research", users=("s.lind",), jobs=("pretrain-7b",), gpus=8, since=_on(23, 6),
    ),
    "preempted_without_marks": Fault(
        what="A run is preempted after 50 hours; nobody knows what it kept",
        team="research", users=("l.rossi",), jobs=("protein-fold",), gpus=4, since=_on(7, 6),
    ),
    "unmapped_user": Fault(what="An account that belongs to no team", users=("visitor7",)),
    "night_and_weekend_idle": Fault(
        what="The T4 nodes are asleep at night and at the weekend", team="speech"
    ),
}  # fmt: skip


def faulty_jobs() -> Iterator[DemoJob]:
    """The jobs of `PLANTED` that are faults by themselves."""
    yield _planted("cpu_hog", cpus=112, mem_mib=64 * 1024, activity=0.4, host_cpu_ratio=0.35)
    yield _planted("memory_hog", cpus=8, mem_mib=960 * 1024, activity=0.5, host_mem_ratio=0.2)
    yield _planted(
        "waiting_gang", nodes=5, gpus=8, cpus=96, mem_mib=768 * 1024, partition="batch",
        patience_s=3 * DAY, run_s=44 * HOUR, activity=0.88, priority=20,
    )  # fmt: skip
    for key in ("idle_notebook_1", "idle_notebook_2"):
        yield _planted(key, cpus=4, mem_mib=32 * 1024, run_s=60 * DAY, activity=0.0)
    yield _planted("idle_after_use", cpus=4, mem_mib=32 * 1024, active_s=20 * HOUR, activity=0.6)
    yield _planted(
        "requeue_loop", cpus=16, mem_mib=128 * 1024, partition="batch", attempts=15,
        run_s=31 * 60, outcome="FAILED", activity=0.7,
    )  # fmt: skip
    for name in SWEEP:
        yield _planted(
            "fragmentation", name=name, gpus=1, cpus=10, mem_mib=80 * 1024, partition="batch",
            activity=0.75,
        )  # fmt: skip
    yield from _small_jobs()
    yield from _preempted()


def _planted(key: str, **changes: object) -> DemoJob:
    fault = PLANTED[key]
    submit = seconds(fault.begin)
    length = seconds(fault.until) - submit if fault.until is not None else HOUR
    values: dict[str, object] = {
        "name": fault.jobs[0],
        "account": fault.team,
        "user": fault.users[0],
        "partition": "interactive",
        "submit": submit,
        "run_s": length,
        "gpus": fault.gpus,
        "priority": 10,
    }
    values |= changes
    values.setdefault("limit_s", max(int(str(values["run_s"])) + HOUR, 8 * HOUR))
    return DemoJob(**values)  # type: ignore[arg-type]


def _small_jobs() -> Iterator[DemoJob]:
    owner = PLANTED["small_jobs"].users[0]
    for day in range(4, 32):
        for name, activity in zip(SMALL_JOBS, (0.22, 0.25, 0.28), strict=True):
            yield DemoJob(
                name=name, account="vision-ocr", user=owner, partition="interactive",
                submit=day * DAY + 8 * HOUR, run_s=SMALL_JOB_HOURS * HOUR,
                limit_s=SMALL_JOB_HOURS * HOUR + 1800, gpus=1, cpus=4, mem_mib=24 * 1024,
                activity=activity, vram_ratio=0.22, priority=10, project="ocr",
            )  # fmt: skip


def _preempted() -> Iterator[DemoJob]:
    for key, gpus, after_s, every_s in (
        ("preempted_with_marks", 8, 30 * HOUR, 4 * HOUR),
        ("preempted_without_marks", 4, 50 * HOUR, None),
    ):
        urgent = DemoJob(
            name=f"release-{PLANTED[key].jobs[0]}", account="vision", user="e.sato",
            partition="batch", submit=0, run_s=5 * HOUR, limit_s=8 * HOUR, gpus=gpus,
            cpus=gpus * 12, mem_mib=gpus * 96 * 1024, activity=0.9, priority=50, qos="urgent",
        )  # fmt: skip
        yield _planted(
            key, gpus=gpus, cpus=gpus * 12, mem_mib=gpus * 96 * 1024, partition="batch",
            run_s=72 * HOUR, patience_s=2 * HOUR, activity=0.85, checkpoint_every_s=every_s,
            preempt_after_s=after_s, preemptor=urgent, qos="preemptible",
        )  # fmt: skip


def outages() -> Iterator[Outage]:
    """The nodes that stop taking work; the reservation's node is kept from everybody else."""
    drained, failed, kept = (
        PLANTED[key] for key in ("drained_node", "failed_node", "unused_reservation")
    )
    for fault, kills in ((drained, False), (failed, True), (kept, False)):
        since = seconds(fault.begin) + (XID_TO_DOWN_S if kills else 0)
        until = None if fault.until is None else seconds(fault.until)
        yield Outage(NODE_INDEX[fault.place], since, until, kills)


def blackout() -> tuple[int, int]:
    """Second from and to which the scheduler was down."""
    gap = PLANTED["scheduler_gap"]
    return seconds(gap.begin), seconds(gap.end)
