"""All snippets of a set of the search's changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scheduler_advisor.checkpoints import Writing
from scheduler_advisor.engine.cluster import UNLIMITED, Cluster
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.limits import Limit
from scheduler_advisor.engine.parts.mig import profiles_of
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.handover.change import Change, keys_of
from scheduler_advisor.handover.checkpoints import Interval, Notice, checkpoint_snippets
from scheduler_advisor.handover.make import of_change
from scheduler_advisor.handover.site import Beside, Node, Site
from scheduler_advisor.handover.snippet import Snippet, Target
from scheduler_advisor.handover.steps import Scheduler
from scheduler_advisor.search.catalogue import Alter, Part
from scheduler_advisor.search.catalogue import Change as Tried

PLAIN = Policy()
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
        limits=cluster.limits,
    )


def snippets(
    changes: Sequence[Tried],
    target: Target,
    today: Policy = PLAIN,
    intervals: Sequence[Interval] = (),
) -> dict[str, list[Snippet]]:
    """By scheduler, those that express every one of the changes. ``today``: its limits of teams are
    what changes of limits start from. ``intervals``: of checkpoints, where they change."""
    plain = [each for each in changes if not each.writing]
    writing = [each for each in changes if each.writing]
    # A pod's own grace is the notice: only Slurm has one of its own to set.
    keyed = [each for each in changes if each.keys or not each.writing]
    wanted = {each: keyed if each is Scheduler.SLURM else plain for each in Scheduler}
    found = {
        scheduler.value: _of_policy(scheduler, own, target, today) if own else []
        for scheduler, own in wanted.items()
    }
    if writing:
        told = writing[0].writing is Writing.ON_STOP
        notice = (Notice.BY_POLICY if writing[0].keys else Notice.BESIDE) if told else Notice.NONE
        made = checkpoint_snippets(writing[0].name, intervals, notice)
        for scheduler, own in wanted.items():
            if found[scheduler.value] or not own:
                found[scheduler.value].append(made[scheduler.value])
    return {scheduler: own for scheduler, own in found.items() if own}


def _of_policy(
    scheduler: Scheduler, changes: Sequence[Tried], target: Target, today: Policy
) -> list[Snippet]:
    """Empty where this scheduler does not express all of the changes."""
    change, beside = _meant(changes, target, today)
    if change is None:
        return []
    # The settings are Slurm's.
    site = target.site if scheduler is Scheduler.SLURM else Site(target.site.nodes)
    made = of_change(scheduler, change, site, beside)
    if not made.complete or made.empty:
        return []
    return [Snippet.of(" + ".join(each.name for each in changes), made)]


def _meant(changes: Sequence[Tried], target: Target, today: Policy) -> tuple[Change | None, Beside]:
    """The keys that the changes set, whatever they are today, and what changes beside."""
    if any(each.part is Part.NODES for each in changes):
        return None, Beside()
    values = {key: str(value) for each in changes for key, value in each.keys.items()}
    start = Policy(quota=today.quota if any(key.startswith("quota.") for key in values)
                   else PLAIN.quota)  # fmt: skip
    try:
        after = keys_of(start.with_values(values))
    except PolicyError:
        return None, Beside()
    before = keys_of(start)
    named = {key.removesuffix(".kind") for key in values}
    before = {
        key: value
        for key, value in before.items()
        if key.startswith("quota.") or (key not in named and after.get(key) == value)
    }
    limits = next((each.limits for each in changes if each.limits is not None), None)
    beside = _beside({each.alter for each in changes},
                     any(each.name == "share_mig" for each in changes), target)  # fmt: skip
    return Change(before, after), replace(beside, limits=_limits(target.limits, limits))


def _limits(
    today: Sequence[Limit], after: Sequence[Limit] | None
) -> tuple[tuple[Limit, int | None], ...]:
    """Limits that change, each with the GPUs that it admits afterwards."""
    if after is None:
        return ()
    left = {_whose(limit): limit.max_gpus for limit in after}
    return tuple(
        (limit, left.get(_whose(limit)))
        for limit in today
        if limit.max_gpus is not None and left.get(_whose(limit)) != limit.max_gpus
    )


def _whose(limit: Limit) -> Limit:
    return replace(limit, max_gpus=None)


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
