"""The whole hand-over to Slurm."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.slurm.accounting import Accounting
from scheduler_advisor.handover.slurm.backfill import backfill
from scheduler_advisor.handover.slurm.conf import Conf
from scheduler_advisor.handover.slurm.draft import NEEDS_RESTART, SlurmDraft
from scheduler_advisor.handover.slurm.limits import limits
from scheduler_advisor.handover.slurm.order import order
from scheduler_advisor.handover.slurm.placement import placement
from scheduler_advisor.handover.slurm.preemption import preemption
from scheduler_advisor.handover.slurm.quota import quota
from scheduler_advisor.handover.slurm.requests import headroom, requests, slices
from scheduler_advisor.handover.steps import Edit, Handover, Known, Run, Scheduler

FILE = "slurm.conf"
PARTS: tuple[Callable[[SlurmDraft], None], ...] = (
    order,
    backfill,
    placement,
    preemption,
    quota,
    limits,
    requests,
    headroom,
    slices,
)
_MOVED = "Slurm does not move running jobs"
_RESIZED = "Slurm resizes a running job only when its owner says so (scontrol update)"


def to_slurm(change: Change, site: Site, beside: Beside) -> Handover:
    """Edits of slurm.conf and its companions, sacctmgr commands, and how it takes effect."""
    conf, known = _today(change, site)
    before = str(conf)
    draft = SlurmDraft(change, site, beside, conf=conf, accounting=Accounting.of(site.settings))
    for part in PARTS:
        part(draft)
    _without(draft)
    draft.rest()
    edits = _edits(draft, before, known)
    runs = (*draft.on_nodes, *draft.accounting.runs(), *_effect(draft, before))
    if edits:
        draft.say_check(*_dry(edits))
    return draft.handed(Scheduler.SLURM, edits, runs)


def _today(change: Change, site: Site) -> tuple[Conf, Known]:
    if FILE in site.files:
        return Conf(site.files[FILE]), Known.FILE
    if site.settings:
        return Conf.stored(site.settings), Known.STORED
    # Nothing is known of the file: what the policy before would have in it.
    whole = Change({}, change.before)
    draft = SlurmDraft(whole, Site(nodes=site.nodes), NOTHING, conf=Conf(""))
    for part in PARTS:
        if part is not placement or change.before.get("placement") != "topology":
            part(draft)
    return draft.conf, Known.ASSUMED


def _without(draft: SlurmDraft) -> None:
    draft.take("gang", "defrag", "sharing", "elastic")
    draft.always(
        "gang",
        True,
        "a job of Slurm always starts whole; only the tasks of a job array start one by one",
    )
    draft.always("gang.timeout_s", 0, "a job of Slurm holds nothing before it starts")
    if draft.text("defrag", "none") != "none":
        draft.refuse("defrag", _MOVED)
    if draft.text("elastic", "fixed") != "fixed":
        draft.refuse("elastic", _RESIZED)
    sharing = draft.text("sharing", "asked")
    if "sharing" in draft.change.changed and sharing != "none":
        if sharing == "mig" and draft.beside.mig:
            draft.remark("sharing", "jobs ask for a slice by its name, --gres=gpu:PROFILE:1")
        else:
            draft.refuse("sharing", _SHARED.get(sharing, _SHARED["asked"]))


_SHARED = {
    "mig": "say which profiles: the layout is not part of the policy (--mig MODEL=PROFILE+PROFILE)",
    "mps": "needs Gres=mps on the nodes, and jobs that ask for --gres=mps:N; not made here",
    "time-slice": "needs Gres=shard on the nodes, and jobs that ask for --gres=shard:N; not made"
    " here",
    "asked": "Slurm gives parts of GPUs only as MIG slices, mps or shard",
}


def _edits(draft: SlurmDraft, before: str, known: Known) -> tuple[Edit, ...]:
    after = str(draft.conf)
    edits = [Edit(FILE, before, after, known)] if after != before else []
    for name, text in sorted(draft.files.items()):
        old = draft.site.files.get(name)
        if old != text:
            edits.append(Edit(name, old, text))
    return tuple(edits)


def _effect(draft: SlurmDraft, before: str) -> tuple[Run, ...]:
    old = Conf(before)
    if any(old.get(key) != draft.conf.get(key) for key in NEEDS_RESTART):
        command = "systemctl restart slurmctld"
        return (Run(command, command, "the controller"),)
    moved = str(draft.conf) != before or any(
        draft.site.files.get(name) != text for name, text in draft.files.items()
    )
    return (Run("scontrol reconfigure", "scontrol reconfigure"),) if moved else ()


def _dry(edits: tuple[Edit, ...]) -> list[str]:
    # Slurm has no test mode; its clients read the whole file, and stop at what they do not know.
    copies = " ".join(edit.file for edit in edits)
    return [
        "patch --dry-run -p0 < change.diff    # in the folder of slurm.conf",
        f"SLURM_CONF=COPY/slurm.conf scontrol ping    # COPY: a folder with the changed {copies};"
        " fails on a key that this Slurm does not know, and changes nothing",
    ]
