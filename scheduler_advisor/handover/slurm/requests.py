"""What a job gets that does not say, GPUs kept empty, and GPUs cut by MIG."""

from __future__ import annotations

from collector.slurm import hostlist
from scheduler_advisor.handover import mig
from scheduler_advisor.handover.site import Node
from scheduler_advisor.handover.slurm.draft import SlurmDraft

HEADROOM = "headroom"
MEMORY = ("DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode")


def requests(draft: SlurmDraft) -> None:
    """Defaults per GPU: of the three memory defaults only one may stand."""
    memory, cpus = draft.beside.mem_mib_per_gpu, draft.beside.cpus_per_gpu
    if memory is not None:
        for key in MEMORY:
            draft.conf.set(key, str(memory) if key == "DefMemPerGPU" else None)
        for name in (*draft.conf.partitions(), "DEFAULT"):
            for key in MEMORY:
                draft.conf.set_partition(name, key, None)
        draft.remark(
            "mem_mib_per_gpu",
            "jobs that wait already keep the memory they were given at"
            " submit; jobs without GPUs get their node's whole memory unless they say:"
            " keep them in a partition with DefMemPerCPU",
        )
    if cpus is not None:
        draft.conf.set("DefCpuPerGPU", str(cpus))
        draft.remark(
            "cpus_per_gpu", "only for jobs that give neither --cpus-per-task nor --cpus-per-gpu"
        )
    if memory is not None or cpus is not None:
        draft.say_verify("scontrol show config | grep -E '^(DefMemPer|JobDefaults)'")


def headroom(draft: SlurmDraft) -> None:
    """A QoS on every partition but the most urgent caps what may be held together."""
    kept = draft.beside.headroom_gpus
    if kept is None:
        return
    conf = draft.conf
    tiers = {name: int(conf.partition(name, "PriorityTier") or 1) for name in conf.partitions()}
    if len(set(tiers.values())) < 2:
        draft.remark(
            "headroom_gpus",
            "no partition is more urgent than the others, so the GPUs"
            " stay empty for all; add one of a higher PriorityTier",
        )
        lower = list(tiers)
    else:
        lower = [name for name, tier in tiers.items() if tier < max(tiers.values())]
    draft.needs("AccountingStorageEnforce", "associations", "limits", "qos")
    draft.needs("AccountingStorageTRES", "gres/gpu")
    draft.accounting.add_qos(HEADROOM)
    draft.accounting.set_qos(HEADROOM, "GrpTRES", f"gres/gpu={max(draft.site.gpus - kept, 0)}")
    for name in lower:
        own = conf.partition(name, "QoS")
        if own in (None, HEADROOM):
            conf.set_partition(name, "QoS", HEADROOM)
        else:
            draft.remark(
                "headroom_gpus",
                f"partition {name} has QoS {own} already: set GrpTRES"
                " there, a partition takes one QoS",
            )
    draft.say_verify(
        "scontrol show partition | grep -E 'PartitionName|QoS='",
        f"sacctmgr show qos {HEADROOM} format=name,grptres",
    )


def slices(draft: SlurmDraft) -> None:
    """MIG: the driver cuts, gres.conf finds the slices, the node's Gres names them."""
    for model, names in draft.beside.mig.items():
        profiles = mig.checked(model, names)
        nodes = [node for node in draft.site.gpu_nodes if node.gpu_model == model]
        if not nodes:
            draft.remark("mig", f"no node with {model} is known here; nothing is changed for it")
            continue
        where = hostlist.compress(node.name for node in nodes)
        before = draft.site.mig.get(model, ())
        draft.on_nodes += mig.driver_runs(where, before, profiles)
        _gres(draft, nodes, profiles)
        draft.remark(
            "mig",
            f"drain {where} first; AutoDetect=nvml needs a Slurm built with NVML,"
            " and a slice has no utilisation counter of its own in Slurm",
        )
        draft.say_verify("nvidia-smi mig -lgi", f"scontrol show node {where} | grep -E 'Gres='")


def _gres(draft: SlurmDraft, nodes: list[Node], profiles: tuple[str, ...]) -> None:
    names = {node.name: node for node in nodes}
    for text in draft.conf.node_lines():
        own = hostlist.expand(text)
        if not any(name in names for name in own):
            continue
        if not all(name in names for name in own):
            draft.remark("mig", f"NodeName={text} also names other nodes: split the line first")
            continue
        draft.conf.set_node(text, "Gres", _gres_text(names[own[0]], profiles))
    where = hostlist.compress(names)
    text = draft.files.get("gres.conf", draft.site.files.get("gres.conf", ""))
    kept = [line for line in text.splitlines(keepends=True) if not _names_any(line, names)]
    draft.files["gres.conf"] = "".join([*kept, f"NodeName={where} AutoDetect=nvml\n"])


def _gres_text(node: Node, profiles: tuple[str, ...]) -> str:
    if not profiles:
        return f"gpu:{node.gpu_model.lower().split('-')[0]}:{node.gpus}"
    kinds = dict.fromkeys(profiles)
    return ",".join(f"gpu:{kind}:{profiles.count(kind) * node.gpus}" for kind in kinds)


def _names_any(line: str, names: dict[str, Node]) -> bool:
    word = next((one for one in line.split("#")[0].split() if one.startswith("NodeName=")), "")
    return bool(word) and any(name in names for name in hostlist.expand(word[9:]))
