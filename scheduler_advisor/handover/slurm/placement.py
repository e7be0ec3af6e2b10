"""Which nodes a job gets: packing or spreading, and the network."""

from __future__ import annotations

from scheduler_advisor.handover.slurm import topology
from scheduler_advisor.handover.slurm.draft import SlurmDraft

_OWN = "Slurm scores nodes in its select plugin; this rule needs a plugin of one's own"
_PACKING = ("first-fit", "best-fit", "consolidate", "topology")
PARAMETERS = "SelectTypeParameters"


def placement(draft: SlurmDraft) -> None:
    """SelectTypeParameters, TopologyPlugin and topology.conf."""
    if not draft.take("placement", "topology"):
        return
    kind = draft.text("placement", "best-fit")
    if "placement" in draft.change.changed:
        _kind(draft, kind)
    if kind == "topology" or draft.text("topology.level"):
        _network(draft)
    elif draft.change.before.get("placement") == "topology" or draft.changes("topology.level"):
        draft.conf.set("TopologyPlugin", None)
        draft.say_verify("scontrol show config | grep TopologyPlugin")


def _kind(draft: SlurmDraft, kind: str) -> None:
    if kind == "worst-fit":
        _spread(draft, True)
        draft.remark("placement", "CR_LLN goes by idle CPUs, not GPUs")
    elif kind in _PACKING:
        _spread(draft, False)
        draft.remark("placement", _SAYS[kind])
    else:
        draft.refuse("placement", _OWN)
        return
    draft.say_verify("scontrol show config | grep -E '^Select'")


_SAYS = {
    "first-fit": "within a switch Slurm takes nodes by Weight, then in the order of the file",
    "best-fit": "Slurm takes the fewest nodes that hold a job, by Weight, then in the order of the"
    " file; give small nodes the lower Weight",
    "consolidate": "jobs of whole nodes should ask by --nodes and --gpus-per-node (or --exclusive);"
    " Slurm then takes full nodes, else the fewest that hold the job",
    "topology": "Slurm takes the leaf switches that fit best; --switches=1 on a job makes it wait",
}


def _spread(draft: SlurmDraft, on: bool) -> None:
    # The select plugin stays as it is: another one drops every job.
    have = draft.conf.get("SelectType")
    if have is None:
        draft.conf.set("SelectType", "select/cons_tres")
    elif have != "select/cons_tres":
        draft.remark(
            "placement",
            f"SelectType is {have}; GPUs are placed by select/cons_tres, and"
            " changing it ends every job: do that in a maintenance",
        )
    if not draft.conf.options(PARAMETERS):
        draft.conf.set(PARAMETERS, "CR_Core_Memory")
    draft.conf.set_option(PARAMETERS, "CR_LLN", "" if on else None, flag=True)
    for name in draft.conf.partitions():
        if not on and (draft.conf.partition(name, "LLN") or "").upper() == "YES":
            draft.conf.set_partition(name, "LLN", "NO")


def _network(draft: SlurmDraft) -> None:
    draft.conf.set("TopologyPlugin", topology.TREE)
    if topology.YAML_FILE in draft.site.files:
        draft.files[topology.YAML_FILE] = topology.yaml_text(draft.site.nodes)
    else:
        draft.files[topology.FILE] = topology.conf_text(draft.site.nodes)
    draft.say_verify("scontrol show config | grep TopologyPlugin", "scontrol show topology")
    level, binding = draft.text("topology.level"), draft.text("topology.binding", "preferred")
    if level and level != "leaf":
        draft.remark(
            "topology.level",
            f"Slurm counts leaf switches; a {level} is reached through"
            " the tree, without a bound of its own",
        )
    if binding == "required":
        draft.refuse(
            "topology.binding",
            "a job waits for one switch only if it asks for it:"
            " --switches=1, or a job_submit plugin that adds it",
        )
