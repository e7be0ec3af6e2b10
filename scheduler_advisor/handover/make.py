"""A change of policy for the scheduler in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.kubernetes.kai import to_kai
from scheduler_advisor.handover.kubernetes.kueue import to_kueue
from scheduler_advisor.handover.kubernetes.volcano import to_volcano
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.slurm.make import to_slurm
from scheduler_advisor.handover.steps import Handover, Remark, Scheduler
from scheduler_advisor.handover.yarn.make import to_yarn

_NOTHING = "nothing is to be set: it is so already, or its part is off"
_TO: Mapping[Scheduler, Callable[[Change, Site, Beside], Handover]] = {
    Scheduler.SLURM: to_slurm,
    Scheduler.KUEUE: to_kueue,
    Scheduler.VOLCANO: to_volcano,
    Scheduler.KAI: to_kai,
    Scheduler.YARN: to_yarn,
}


def scheduler_named(name: str) -> Scheduler:
    """By its name on the command line."""
    try:
        return Scheduler(name)
    except ValueError:
        known = ", ".join(Scheduler)
        raise HandoverError(f"hand-over: no scheduler {name!r}; known: {known}") from None


def for_change(
    scheduler: Scheduler, before: Policy, after: Policy, site: Site, beside: Beside = NOTHING
) -> Handover:
    """The change from one policy to the other as this scheduler takes it; nothing is applied.

    Every changed key is expressed, remarked upon, refused with a reason, or named as one that only
    the simulation has. Raises HandoverError for a configuration or a wish that makes no sense.
    """
    return of_change(scheduler, Change.between(before, after), site, beside)


def of_change(scheduler: Scheduler, change: Change, site: Site, beside: Beside) -> Handover:
    """The same of a set of keys."""
    made = _TO[scheduler](change, site, beside)
    silent = set(change.changed) - set(made.modelled)
    if silent and made.empty and not made.cannot and not made.remarks:
        return replace(made, remarks=tuple(Remark(key, _NOTHING) for key in sorted(silent)))
    return made
