"""The hand-over of another interval between checkpoints: it stands in the jobs, not in a scheduler.

Jobs read the interval from their environment; a job script (or the pod template) sets it. A notice
before a stop is the scheduler's own setting and comes with the policy; here stands what a job needs
to use it. The same lines with the old numbers are the rollback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from scheduler_advisor.handover.snippet import Snippet
from scheduler_advisor.handover.steps import Scheduler

VARIABLE = "CHECKPOINT_INTERVAL_S"
_SCRIPT = {
    Scheduler.SLURM: "job script",
    Scheduler.KUEUE: "pod template", Scheduler.VOLCANO: "pod template",
    Scheduler.KAI: "pod template", Scheduler.YARN: "launch script",
}  # fmt: skip
_LOOP = (
    f"# in the training loop: save when {VARIABLE} seconds have passed since the last checkpoint,"
    " and on the signal; begin from the newest one"
)


_NOTICE = (
    "# slurm.conf: {sign}PreemptParameters=send_user_signal, then scontrol reconfigure",
    "sacctmgr -i modify qos QOS_THAT_IS_STOPPED set GraceTime={grace}",
)
_FORWARD = (
    "# the batch shell gets USR1 before the time limit ends, and before it is preempted with",
    "# PreemptParameters=send_user_signal and a GraceTime; it passes the signal on to the tasks",
    """trap 'scancel --signal=USR1 "$SLURM_JOB_ID"' USR1""",
    "srun train & pid=$!",
    "while kill -0 $pid 2>/dev/null; do wait $pid; done",
)


class Notice(IntEnum):
    """Whether jobs get notice of a stop: none, one that the change of policy sets, or one that is
    to be set beside it."""

    NONE = 0
    BY_POLICY = 1
    BESIDE = 2


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds from checkpoint to checkpoint of one class of jobs, and what one takes."""

    name: str
    now_s: float
    new_s: float
    write_s: float


def checkpoint_snippets(
    change: str, rows: Sequence[Interval], notice: Notice
) -> dict[str, Snippet]:
    """By scheduler."""
    return {each.value: _snippet(each, change, rows, notice) for each in Scheduler}


def _snippet(
    scheduler: Scheduler, change: str, rows: Sequence[Interval], notice: Notice
) -> Snippet:
    notice_s = _notice(rows)
    lines = _NOTICE[:notice] if scheduler is Scheduler.SLURM else ()
    set_, unset = (
        [line.format(sign=sign, grace=seconds) for line in lines]
        for sign, seconds in (("+ ", notice_s), ("- ", 0))
    )
    back = [f"# {row.name}: {VARIABLE}={round(row.now_s)}" for row in rows]
    return Snippet(
        scheduler.value, change, {},
        apply="\n".join([*set_, _LOOP, *_lines(scheduler, rows, notice_s)]),
        check=_check(scheduler),
        verify="unstrand report checkpoints    # interval and time to write, by class of jobs",
        rollback="\n".join([*unset, f"# in the {_SCRIPT[scheduler]}s, the values from before:",
                            *back]),
        remarks=(f"checkpoints: set in the {_SCRIPT[scheduler]} of each class of jobs",),
    )  # fmt: skip


def _notice(rows: Sequence[Interval]) -> int:
    """Time to write a checkpoint on the signal, half as much again as the slowest class takes."""
    return max(60, round(1.5 * max((row.write_s for row in rows), default=0.0)))


def _check(scheduler: Scheduler) -> str:
    if scheduler is Scheduler.SLURM:
        return (
            "sbatch --test-only job.sh\n"
            "scontrol requeue JOBID    # of a test job: it must go on from its last checkpoint"
        )
    if scheduler is Scheduler.YARN:
        return "yarn application -kill ID    # of a test job: its next start must go on"
    return (
        "kubectl apply --dry-run=server -f job.yaml\n"
        "kubectl delete pod POD    # of a test job: its next pod must go on from the checkpoint"
    )


def _lines(scheduler: Scheduler, rows: Sequence[Interval], notice_s: int) -> list[str]:
    found: list[str] = []
    for row in rows:
        seconds = round(row.new_s)
        found.append(f"# {row.name}")
        if scheduler is Scheduler.SLURM:
            found += [
                f"#SBATCH --requeue --open-mode=append --signal=B:USR1@{notice_s}",
                f"export {VARIABLE}={seconds}",
            ]
        elif scheduler is Scheduler.YARN:
            found.append(f"export {VARIABLE}={seconds}")
        else:
            found += _pod(seconds, notice_s)
    return [*found, *_FORWARD] if scheduler is Scheduler.SLURM else found


def _pod(seconds: int, notice_s: int) -> list[str]:
    return [
        "spec:",
        f"  terminationGracePeriodSeconds: {notice_s}    # SIGTERM first: write a checkpoint on it",
        "  containers:",
        "  - name: train",
        "    env:",
        f"    - name: {VARIABLE}",
        f'      value: "{seconds}"',
    ]
