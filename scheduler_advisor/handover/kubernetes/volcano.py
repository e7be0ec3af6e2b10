"""Volcano: the scheduler's ConfigMap, Queue and HyperNode."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.kubernetes import nodes
from scheduler_advisor.handover.kubernetes.objects import GPU, Body, Objects, clean, made
from scheduler_advisor.handover.kubernetes.volcano_conf import FILE, MAP, NAMESPACE, SchedulerConf
from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.steps import Handover, Run, Scheduler

API, NETWORK_API = "scheduling.volcano.sh/v1beta1", "topology.volcano.sh/v1alpha1"
_RESTART = "kubectl -n volcano-system rollout restart deployment/volcano-scheduler"


def to_volcano(change: Change, site: Site, beside: Beside) -> Handover:
    """Objects of Volcano, made from those of today where they are given."""
    text = site.files.get(FILE)
    objects = Objects(text, FILE)
    if text is None:
        _parts(Draft(Change({}, change.before), site, NOTHING), objects)
        objects.assume()
    draft = Draft(change, site, beside)
    runs = _parts(draft, objects)
    _rest(draft)
    edits, mig_runs = nodes.slices(draft)
    nodes.pod_defaults(draft)
    own = objects.runs()
    restart = (
        (Run(_RESTART, _RESTART, last=True),) if any(MAP in run.command for run in own) else ()
    )
    draft.say_check(*objects.check())
    draft.say_verify(*objects.verify())
    if restart:
        draft.say_verify(f"kubectl -n {NAMESPACE} logs deployment/volcano-scheduler | tail")
    commands = (*mig_runs, *runs, *own, *restart)
    return draft.handed(Scheduler.VOLCANO, (*edits, *objects.edits()), commands)


def _parts(draft: Draft, objects: Objects) -> list[Run]:
    conf = SchedulerConf(objects)
    for part in (_order, _backfill, _gang, _preemption):
        part(draft, conf)
    _quota(draft, conf, objects)
    runs = _placement(draft, conf, objects)
    _headroom(draft, conf, objects)
    conf.write()
    return runs


def _order(draft: Draft, conf: SchedulerConf) -> None:
    if not draft.take("order", "multifactor", "fairshare", "ordering"):
        return
    kind = draft.text("order", "fifo")
    plugins = {"fifo": (), "priority": ("priority",), "drf": ("drf",), "fair-share": ("drf",)}
    if "order" not in draft.change.changed:
        pass
    elif kind not in plugins:
        draft.refuse("order", "Volcano orders jobs by priority, share and age")
    else:
        for name in ("priority", "drf"):
            conf.plugin(name, 0 if name == "priority" else 1) if name in plugins[
                kind
            ] else conf.drop(name)
        if kind == "fair-share":
            draft.remark(
                "order",
                "drf shares what is held now; usage over time needs Volcano's"
                " usage plugin and Prometheus",
            )
        if kind == "priority":
            draft.remark("order", "a job's PriorityClass is its priority")
    draft.refuse("multifactor", "Volcano has no weighted priority")
    draft.refuse("ordering", "Volcano has no such order")
    draft.always("fairshare.half_life_s", 0, "drf has no memory of past usage")
    draft.always("fairshare.entitlement", "weight", "drf shares by weight")


def _backfill(draft: Draft, conf: SchedulerConf) -> None:
    if not draft.take("backfill"):
        return
    kind = draft.text("backfill", "none")
    if kind in ("greedy", "none"):
        conf.action("backfill", kind == "greedy")
        if kind == "none":
            draft.remark(
                "backfill",
                "without the action only best-effort pods stay behind; jobs"
                " that fit still pass one that does not (Volcano has no strict order;"
                " the sla plugin's sla-waiting-time holds resources for an old job)",
            )
    else:
        draft.refuse(
            "backfill",
            "Volcano plans no start for a waiting job; the sla plugin's"
            " sla-waiting-time keeps resources for one that waited long",
        )
    for key in ("depth", "max_limit_s", "interval_s"):
        draft.always(f"backfill.{key}", 0, "Volcano has no bound on it")
    draft.always("backfill.whole_nodes", False, "Volcano plans no nodes")


def _gang(draft: Draft, conf: SchedulerConf) -> None:
    if not draft.take("gang"):
        return
    if draft.text("gang", "True") == "True":
        conf.plugin("gang", 0)
        draft.remark(
            "gang",
            "minAvailable of a job (minMember of its PodGroup) says how many pods start together",
        )
    else:
        conf.drop("gang")
    draft.always(
        "gang.timeout_s",
        0,
        "Volcano's gangs hold nothing while they wait; the sla plugin bounds the wait",
    )


def _preemption(draft: Draft, conf: SchedulerConf) -> None:
    if not draft.take("preemption"):
        return
    on = draft.text("preemption", "none") != "none"
    conf.action("preempt", on)
    if not on:
        return
    conf.plugin("priority", 0)
    conf.plugin("conformance", 0)
    draft.remark("preemption", "only within a queue; across queues it is reclaim")
    draft.always("preemption.by", "priority", "Volcano preempts by PriorityClass")
    draft.always("preemption.reach", "queue", "preempt works within a queue; use quota.reclaim")
    draft.remark("preemption.eligible", "pods are preemptable where volcano.sh/preemptable is true")
    draft.always("preemption.victims", "lowest-priority", "Volcano's plugins choose the victims")
    draft.always(
        "preemption.mode",
        "scratch",
        "an evicted pod starts anew; what it keeps is up to the job's own checkpoints",
    )
    for key in ("min_run_s", "max_per_job", "max_per_hour", "max_team_gpus_per_hour"):
        draft.always(f"preemption.{key}", 0, "Volcano has no such guard (tdm bounds it by time)")
    draft.always("preemption.grace_s", 0, "set terminationGracePeriodSeconds on the pods")


def _quota(draft: Draft, conf: SchedulerConf, objects: Objects) -> None:
    if not draft.take("quota"):
        return
    before, after = queues_of(draft.change.before), queues_of(draft.change.after)
    for name in before.keys() - after.keys():
        objects.drop("Queue", clean(name))
    for name, queue in after.items():
        body = objects.put(made(API, "Queue", clean(name), {}))
        _queue(body["spec"], queue, draft.text("quota.reclaim", "none") != "none")
        draft.always(f"quota.queues.{name}.lend", None, "a queue's unused share is lent whole")
    if after:
        conf.drop("proportion")
        conf.plugin("capacity", 1, None)
        if any(queue.parent for queue in after.values()):
            conf.plugin("capacity", 1)
            _hierarchy(conf)
    elif before:
        conf.drop("capacity")
        conf.plugin("proportion", 1)
    conf.action("reclaim", draft.text("quota.reclaim", "none") != "none")
    if draft.text("quota.reclaim", "none") == "loose":
        draft.remark("quota.reclaim", "Volcano takes from queues above their deserved share")
    draft.always("quota.strict", False, "jobs that fit pass one that does not")
    draft.always("quota.reclaim_to", "guarantee", "Volcano reclaims the deserved share")


def _hierarchy(conf: SchedulerConf) -> None:
    for tier in conf.body["tiers"]:
        for plugin in tier["plugins"]:
            if plugin["name"] == "capacity":
                plugin["enableHierarchy"] = True


def _queue(spec: Body, queue: Queue, reclaim: bool) -> None:
    spec["reclaimable"] = reclaim
    spec["weight"] = max(queue.weight, 1)
    spec["deserved"] = {GPU: str(queue.guarantee)}
    for key, value in (("capability", queue.maximum), ("parent", queue.parent)):
        if value is None or value == "":
            spec.pop(key, None)
        else:
            spec[key] = clean(str(value)) if key == "parent" else {GPU: str(value)}


def _placement(draft: Draft, conf: SchedulerConf, objects: Objects) -> list[Run]:
    if not draft.take("placement", "topology"):
        return []
    kind = draft.text("placement", "best-fit")
    if "placement" not in draft.change.changed:
        pass
    elif kind in _PLACES:
        _PLACES[kind](conf)
    else:
        draft.refuse("placement", "Volcano scores by packing or spreading; this rule is a plugin")
    if kind == "consolidate":
        draft.remark(
            "placement", "binpack packs pods one by one; a gang is not put on full nodes first"
        )
    if kind == "topology" or draft.text("topology.level"):
        return _network(draft, conf, objects)
    conf.drop("network-topology-aware")
    return []


def _pack(conf: SchedulerConf) -> None:
    # By default binpack does not see GPUs, and nodeorder pulls the other way.
    conf.plugin(
        "binpack",
        1,
        {
            "binpack.weight": 10,
            "binpack.cpu": 1,
            "binpack.memory": 1,
            "binpack.resources": GPU,
            f"binpack.resources.{GPU}": 10,
        },
    )
    conf.plugin("nodeorder", 1, {"leastrequested.weight": 0, "mostrequested.weight": 1})


def _spread(conf: SchedulerConf) -> None:
    conf.drop("binpack")
    conf.plugin("nodeorder", 1, {"leastrequested.weight": 1, "mostrequested.weight": 0})


_PLACES: dict[str, Callable[[SchedulerConf], None]] = {
    "best-fit": _pack,
    "consolidate": _pack,
    "topology": _pack,
    "worst-fit": _spread,
}


def _network(draft: Draft, conf: SchedulerConf, objects: Objects) -> list[Run]:
    leaves: dict[str, list[str]] = {}
    spines: dict[str, set[str]] = {}
    for node in draft.site.nodes:
        if node.leaf:
            leaves.setdefault(node.leaf, []).append(node.name)
            spines.setdefault(node.spine or "core", set()).add(node.leaf)
    if not leaves:
        draft.refuse("placement", "no node's switch is known here: import the network first")
        return []
    conf.plugin("network-topology-aware", 1, {"weight": 10})
    for tier, kind, groups in ((1, "Node", leaves), (2, "HyperNode", spines)):
        for name, members in groups.items():
            rows = [
                {"type": kind, "selector": {"exactMatch": {"name": one}}} for one in sorted(members)
            ]
            objects.put(
                made(NETWORK_API, "HyperNode", clean(name), {"tier": tier, "members": rows})
            )
    mode = "hard" if draft.text("topology.binding") == "required" else "soft"
    tier = 2 if draft.text("topology.level") == "spine" else 1
    draft.remark(
        "topology.level",
        f"a job asks for it: networkTopology mode {mode}, highestTierAllowed {tier}",
    )
    return []


def _headroom(draft: Draft, conf: SchedulerConf, objects: Objects) -> None:
    kept = draft.beside.headroom_gpus
    if kept is None:
        return
    if kept == 0:
        objects.drop("Queue", "headroom")
        return
    conf.drop("proportion")
    conf.plugin("capacity", 1)
    spec = {
        "reclaimable": False,
        "weight": 1,
        "deserved": {GPU: str(kept)},
        "capability": {GPU: str(kept)},
        "guarantee": {"resource": {GPU: str(kept)}},
    }
    objects.put(made(API, "Queue", "headroom", spec))
    draft.remark(
        "headroom_gpus", "a queue whose guarantee others cannot use; send urgent jobs to it"
    )


def _rest(draft: Draft) -> None:
    draft.take("defrag", "sharing", "elastic")
    if draft.text("defrag", "none") != "none":
        draft.refuse("defrag", "that is Volcano's descheduler, a program of its own")
    if draft.text("elastic", "fixed") != "fixed":
        draft.remark("elastic", "a job's own setting: minAvailable below its replicas")
    if draft.text("sharing", "asked") != "mig" or not draft.beside.mig:
        draft.refuse(
            "sharing",
            "parts of a GPU come from the device plugin: MIG (--mig), or"
            " Volcano's own vGPU device plugin",
        )
    draft.rest()
