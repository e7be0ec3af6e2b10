"""A hand-over to Slurm while it is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.slurm.accounting import Accounting
from scheduler_advisor.handover.slurm.conf import Conf
from scheduler_advisor.handover.steps import Run

NEEDS_RESTART = (
    "SchedulerType",
    "SelectType",
    "SelectTypeParameters",
    "PriorityType",
    "PreemptType",
    "TopologyPlugin",
    "AccountingStorageTRES",
)
PARAMETERS = "SchedulerParameters"


@dataclass(slots=True)
class SlurmDraft(Draft):
    """``files``: other files than slurm.conf after the change. ``on_nodes``: commands on nodes."""

    conf: Conf = field(default_factory=lambda: Conf(""))
    accounting: Accounting = field(default_factory=lambda: Accounting({}))
    files: dict[str, str] = field(default_factory=dict)
    on_nodes: list[Run] = field(default_factory=list)

    def parameter(self, name: str, value: str | None, flag: bool = False) -> None:
        """One of SchedulerParameters."""
        self.conf.set_option(PARAMETERS, name, value, flag)

    def needs(self, key: str, *wanted: str) -> None:
        """Words that a list with commas must hold, without regard to case."""
        have = self.conf.options(key)
        missing = [word for word in wanted if word.lower() not in {one.lower() for one in have}]
        if missing:
            self.conf.set(key, ",".join([*have, *missing]))
