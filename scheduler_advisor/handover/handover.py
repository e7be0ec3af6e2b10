"""All snippets of a set of the search's changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_advisor.engine.cluster import UNLIMITED, Cluster
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.parts.mig import profiles_of
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.handover.change import Change, keys_of
from scheduler_advisor.handover.make import of_change
from scheduler_advisor.handover.site import Beside, Node, Site
from scheduler_advisor.handover.snippet import Snippet, Target
from scheduler_advisor.handover.steps import Scheduler
from scheduler_advisor.search.catalogue import CHANGES, Alter

KEPT_MILLI = 50  # thousandths of a node's memory that stay for its operating system


def target_of(cluster: Cluster, settings: Mapping[str, str]) -> Target:
    """What the snippets need to know, from the simulated cluster and the stored settings."""
    held = cluster.gpus > 0

    def per_gpu(column: str, unit: int) -> int | None:
        values = getattr(cluster, column)
        known = held & (values < UNLIMITED)
        if not known.any():
            return None
        return int((values[known] // cluster.gpus[known]).min()) // unit

    nodes = tuple(
        Node(
            name,
            int(cluster.gpus[at]),
            cluster.gpu_model[at],
            leaf=cluster.leaf[at],
            spine=cluster.spine[at],
            rack=cluster.rack[at],
        )
        for at, name in enumerate(cluster.names)
    )
    return Target(
        Site(nodes, settings),
        cpus_per_gpu=per_gpu("cpu_milli", 1000),
        mem_mib_per_gpu=per_gpu("mem_mib", 1),
        models=tuple(dict.fromkeys(node.gpu_model for node in nodes if node.gpus)),
    )


def snippets(names: Sequence[str], target: Target) -> dict[str, list[Snippet]]:
    """By scheduler, those that express every one of the changes named."""
    change, beside = _meant(names, target)
    if change is None:
        return {}
    found: dict[str, list[Snippet]] = {}
    for scheduler in Scheduler:
        site = target.site
        if scheduler is not Scheduler.SLURM:
            site = Site(site.nodes)  # the settings are Slurm's
        made = of_change(scheduler, change, site, beside)
        if made.complete and not made.empty:
            found[scheduler.value] = [Snippet.of(" + ".join(names), made)]
    return found


def _meant(names: Sequence[str], target: Target) -> tuple[Change | None, Beside]:
    """The keys that the changes set, whatever they are today, and what changes beside."""
    known = {change.name: change for change in CHANGES}
    values: dict[str, str] = {}
    alters = set()
    for name in names:
        if name not in known:
            return None, Beside()
        values |= {key: str(value) for key, value in known[name].keys.items()}
        alters.add(known[name].alter)
    try:
        after = keys_of(Policy().with_values(values))
    except PolicyError:
        return None, Beside()
    today = keys_of(Policy())
    named = {key.removesuffix(".kind") for key in values}
    before = {key: value for key, value in after.items()
              if key not in named and today.get(key) == value}  # fmt: skip
    return Change(before, after), _beside(alters, "share_mig" in names, target)


def _beside(alters: set[Alter], cut: bool, target: Target) -> Beside:
    memory = target.mem_mib_per_gpu if Alter.CAP_MEMORY in alters else None
    return Beside(
        cpus_per_gpu=target.cpus_per_gpu if Alter.CAP_CPU in alters else None,
        mem_mib_per_gpu=None if memory is None else memory * (1000 - KEPT_MILLI) // 1000,
        mig={model: _sevenths(model) for model in target.models if profiles_of(model)}
        if cut
        else {},
    )


def _sevenths(model: str) -> tuple[str, ...]:
    """As many of the smallest slices as a GPU has."""
    least = profiles_of(model)[0]
    return (least.name,) * len(least.starts)
