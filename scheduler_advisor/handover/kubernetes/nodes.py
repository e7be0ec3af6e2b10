"""What the schedulers of Kubernetes share: labels of nodes, MIG, and what a pod gets."""

from __future__ import annotations

from scheduler_advisor.handover import mig
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.kubernetes.objects import Objects, made
from scheduler_advisor.handover.steps import Edit, Run

MIG_LABEL = "nvidia.com/mig.config"
LEVELS = ("spine", "leaf")
HOST = "kubernetes.io/hostname"
MAP = "unstrand-mig-parted"


def label(level: str) -> str:
    """The node label that names a node's switch of a level."""
    return f"unstrand.io/{level}"


def levels(draft: Draft) -> list[str]:
    """Labels of the network from the top, the host last; empty where no node's place is known."""
    known = [level for level in LEVELS if any(getattr(node, level) for node in draft.site.nodes)]
    return [*(label(level) for level in known), HOST] if known else []


def label_runs(draft: Draft) -> list[Run]:
    """Labels of every node whose place is known."""
    runs = []
    for node in draft.site.nodes:
        pairs = [(label(level), place) for level in LEVELS if (place := getattr(node, level))]
        if pairs:
            put = " ".join(f"{name}={place}" for name, place in pairs)
            away = " ".join(f"{name}-" for name, _ in pairs)
            runs.append(
                Run(
                    f"kubectl label node {node.name} {put} --overwrite",
                    f"kubectl label node {node.name} {away}",
                )
            )
    return runs


def slices(draft: Draft) -> tuple[list[Edit], list[Run]]:
    """MIG through the GPU operator: a configuration of mig-parted, and a label on each node."""
    edits: list[Edit] = []
    runs: list[Run] = []
    for model, names in draft.beside.mig.items():
        profiles = mig.checked(model, names)
        nodes = [node for node in draft.site.gpu_nodes if node.gpu_model == model]
        if not nodes:
            draft.remark("mig", f"no node with {model} is known here; nothing is changed for it")
            continue
        body = made("v1", "ConfigMap", MAP, namespace="gpu-operator")
        body["data"] = {"config.yaml": mig.parted(profiles)}
        objects = Objects(None, MAP)
        objects.put(body)
        edits += objects.edits()
        runs += objects.runs()
        for node in nodes:
            put = f"kubectl label node {node.name} {MIG_LABEL}={mig.CONFIG} --overwrite"
            runs.append(
                Run(put, f"kubectl label node {node.name} {MIG_LABEL}=all-disabled --overwrite")
            )
        draft.remark(
            "mig",
            f"the GPU operator must read the map (migManager.config.name={MAP});"
            " it drains a node's GPU pods while it cuts",
        )
        draft.say_verify(f"kubectl get nodes -L {MIG_LABEL} -L nvidia.com/mig.config.state")
    return edits, runs


def pod_defaults(draft: Draft) -> None:
    """Kubernetes has defaults per container, none per GPU."""
    for name in ("mem_mib_per_gpu", "cpus_per_gpu"):
        draft.refuse_beside(
            name,
            "a LimitRange gives a container a default, whatever its GPUs; per GPU it takes a"
            " mutating admission policy",
        )
    draft.refuse_beside("limits", "it has quotas of queues, none of single users")
