"""The hand-over of one advice that needs no simulation: memory per GPU instead of whole nodes."""

from __future__ import annotations

from datetime import datetime

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.make import of_change
from scheduler_advisor.handover.site import Beside, Rows, site_of
from scheduler_advisor.handover.snippet import Snippet
from scheduler_advisor.handover.steps import Scheduler


def memory_default(store: Rows, cluster: str, at: datetime, mib: int) -> dict[str, str]:
    """``apply``, ``verify`` and ``rollback`` for Slurm, on the settings stored of the cluster."""
    site = site_of(store, cluster, at, {})
    made = of_change(Scheduler.SLURM, Change({}, {}), site, Beside(mem_mib_per_gpu=mib))
    if made.empty:
        return {"verify": "scontrol show config | grep -E '^(DefMemPer|JobDefaults)'"}
    snippet = Snippet.of("memory default", made)
    return {
        "apply": "\n".join([*snippet.files.values(), snippet.check, snippet.apply]),
        "verify": snippet.verify,
        "rollback": snippet.rollback,
    }
