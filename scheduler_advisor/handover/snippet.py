"""One set of changes in one scheduler's own words, as a report carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler_advisor.engine.limits import Limit
from scheduler_advisor.handover.site import Site
from scheduler_advisor.handover.steps import Edit, Handover, Known, Run

APPLY, UNDO = "patch -p0 < change.diff", "patch -R -p0 < change.diff"
# The file itself was not given: the diff is of the lines that are known.
EDIT = "# in the files named above: the lines with - become those with +"
EDIT_BACK = "# in the files named above: the lines with + become those with -"


@dataclass(frozen=True, slots=True)
class Snippet:
    """``files``: what changes in each, as a unified diff. ``check`` is run before anything is live,
    ``verify`` after. ``remarks``: where the scheduler does it in its own way."""

    scheduler: str
    change: str
    files: dict[str, str]
    apply: str
    check: str
    verify: str
    rollback: str
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, change: str, handover: Handover) -> Snippet:
        """Of a hand-over with something to do."""
        whole = all(edit.known is Known.FILE for edit in handover.edits)
        return cls(
            handover.scheduler.value,
            change,
            {edit.file: edit.diff() for edit in handover.edits},
            apply=_commands(handover.apply, APPLY if whole else EDIT),
            check="\n".join(handover.check),
            verify="\n".join(handover.verify),
            rollback=_commands(handover.rollback, UNDO if whole else EDIT_BACK),
            remarks=tuple(f"{one.key}: {one.text}" for one in handover.remarks),
        )

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "scheduler": self.scheduler,
            "change": self.change,
            "files": dict(self.files),
            "apply": self.apply,
            "check": self.check,
            "verify": self.verify,
            "rollback": self.rollback,
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True)
class Target:
    """What the snippets need to know of the cluster; per GPU the least of its nodes with GPUs.
    ``limits``: of users, accounts and QoS, that are no quotas of the policy."""

    site: Site
    cpus_per_gpu: int | None = None
    mem_mib_per_gpu: int | None = None
    models: tuple[str, ...] = field(default=())
    limits: tuple[Limit, ...] = ()


def _commands(steps: Sequence[Edit | Run], patch: str) -> str:
    first = [patch] if any(isinstance(step, Edit) for step in steps) else []
    runs = [step for step in steps if isinstance(step, Run)]
    return "\n".join(
        [
            *first,
            *(f"{run.command}    # on {run.where}" if run.where else run.command for run in runs),
        ]
    )
