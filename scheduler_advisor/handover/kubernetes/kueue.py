"""Kueue: ClusterQueue, Cohort, ResourceFlavor, Topology, and the manager's configuration."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.kubernetes import nodes
from scheduler_advisor.handover.kubernetes.kueue_queues import (
    API,
    all_queues,
    cohort_of,
    flavor_of,
    put_or_drop,
    queues,
    set_quota,
)
from scheduler_advisor.handover.kubernetes.objects import (
    CONFIG_NAME,
    Objects,
    made,
)
from scheduler_advisor.handover.queues import Queue
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.steps import Handover, Run, Scheduler

CONFIG_API = "config.kueue.x-k8s.io/v1beta2"
FILE, TOPOLOGY = "kueue.yaml", "unstrand"
_ADMITS = "Kueue admits by quota and leaves the nodes to the scheduler of the pods"
_PRIORITY = "Kueue orders by WorkloadPriorityClass, then by age"


def to_kueue(change: Change, site: Site, beside: Beside) -> Handover:
    """Objects of Kueue, made from those of today where they are given."""
    text = site.files.get(FILE)
    objects = Objects(text, FILE)
    if text is None:
        before = Draft(Change({}, change.before), site, NOTHING)
        queues(before, objects)
        _parts(before, objects)
        objects.assume()
    draft = Draft(change, site, beside)
    runs = _parts(draft, objects)
    _rest(draft)
    edits, mig_runs = nodes.slices(draft)
    nodes.pod_defaults(draft)
    draft.say_check(*objects.check())
    draft.say_verify(*objects.verify())
    commands = (*mig_runs, *runs, *objects.runs())
    return draft.handed(Scheduler.KUEUE, (*edits, *objects.edits()), commands)


def _parts(draft: Draft, objects: Objects) -> list[Run]:
    if draft.take("quota"):
        queues(draft, objects)
    _order(draft, objects)
    _backfill(draft, objects)
    _preemption(draft, objects)
    _headroom(draft, objects)
    _gang(draft, objects)
    return _network(draft, objects)


def _order(draft: Draft, objects: Objects) -> None:
    if draft.take("order", "multifactor", "fairshare", "ordering"):
        kind = draft.text("order", "fifo")
        if "order" not in draft.change.changed:
            pass
        elif kind in ("fair-share", "drf"):
            _fair(draft, objects, kind)
        elif kind in ("fifo", "priority"):
            if (config := objects.get("Configuration", CONFIG_NAME)) is not None:
                config.pop("fairSharing", None)
            if kind == "priority":
                for name, value in (("urgent", 1000), ("normal", 100), ("preemptible", 0)):
                    objects.put(made(API, "WorkloadPriorityClass", name) | {"value": value})
                draft.remark("order", _PRIORITY + ": label jobs kueue.x-k8s.io/priority-class")
        else:
            draft.refuse("order", _PRIORITY)
        draft.refuse("multifactor", _PRIORITY)
        draft.refuse("ordering", _PRIORITY)


def _backfill(draft: Draft, objects: Objects) -> None:
    if draft.take("backfill"):
        kind = draft.text("backfill", "none")
        for body in all_queues(objects):
            put_or_drop(body["spec"], "queueingStrategy", "StrictFIFO" if kind == "none" else None)
        if kind in ("easy", "conservative", "conservative-compress"):
            draft.refuse(
                "backfill",
                "Kueue keeps no place for a waiting job: BestEffortFIFO is"
                " greedy, StrictFIFO blocks the queue",
            )
        for key in ("depth", "max_limit_s", "interval_s"):
            draft.always(f"backfill.{key}", 0, "Kueue has no bound on it")
        draft.always("backfill.whole_nodes", False, "Kueue plans no nodes")


def _fair(draft: Draft, objects: Objects, kind: str) -> None:
    config = objects.put({"apiVersion": CONFIG_API, "kind": "Configuration"})
    config["fairSharing"] = {
        "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    }
    half_life = draft.number("fairshare.half_life_s")
    if kind == "fair-share" and half_life:
        config["admissionFairSharing"] = {
            "usageHalfLifeTime": f"{half_life}s",
            "usageSamplingInterval": f"{draft.number('fairshare.period_s', 300)}s",
        }
        for body in all_queues(objects):
            body["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    draft.remark("order", "usage over time orders the local queues within a ClusterQueue")
    draft.always("fairshare.entitlement", "weight", "Kueue shares by weight")


def _preemption(draft: Draft, objects: Objects) -> None:
    if not draft.take("preemption"):
        return
    on = draft.text("preemption", "none") != "none"
    cohort = on and draft.text("preemption.reach", "cluster") == "cluster"
    for body in all_queues(objects):
        rules = body["spec"].setdefault("preemption", {})
        put_or_drop(rules, "withinClusterQueue", "LowerPriority" if on else None)
        if cohort and "cohortName" in body["spec"]:
            rules.setdefault("reclaimWithinCohort", "LowerPriority")
            rules["borrowWithinCohort"] = {"policy": "LowerPriority"}
        else:
            rules.pop("borrowWithinCohort", None)
        if not rules:
            del body["spec"]["preemption"]
    if not on:
        return
    draft.always("preemption.by", "priority", _PRIORITY)
    draft.always(
        "preemption.eligible",
        "all",
        "every workload of lower priority can be preempted;"
        " give those that must not the same class",
    )
    draft.always(
        "preemption.victims",
        "lowest-priority",
        "Kueue's order is borrowing queues, lower priority, newer admission",
    )
    if draft.text("preemption.mode", "requeue") == "suspend":
        draft.refuse("preemption.mode", "a preempted workload's pods are deleted")
    for key in ("min_run_s", "max_per_job", "max_per_hour", "max_team_gpus_per_hour"):
        draft.always(f"preemption.{key}", 0, "Kueue has no such guard")
    draft.always("preemption.grace_s", 0, "set terminationGracePeriodSeconds on the pods")


def _headroom(draft: Draft, objects: Objects) -> None:
    kept = draft.beside.headroom_gpus
    if kept is None:
        return
    name = "headroom"
    if kept == 0:
        objects.drop("ClusterQueue", name)
        return
    body = objects.put(made(API, "ClusterQueue", name, {"namespaceSelector": {}}))
    place = (flavor_of(objects), cohort_of(objects))
    set_quota(body["spec"], Queue(name, kept, kept, 1, 0, ""), place)
    draft.remark(
        "headroom_gpus",
        f"{kept} GPUs of quota that nobody may borrow, for urgent jobs"
        " through a local queue of ClusterQueue headroom; lower the others' by as much",
    )


def _gang(draft: Draft, objects: Objects) -> None:
    if not draft.take("gang"):
        return
    config = objects.put({"apiVersion": CONFIG_API, "kind": "Configuration"})
    if draft.text("gang", "True") == "True":
        ready: dict[str, Any] = {"blockAdmission": True}
        timeout = draft.number("gang.timeout_s")
        ready["timeout"] = f"{timeout}s" if timeout else "300s"
        config["waitForPodsReady"] = ready
    else:
        config.pop("waitForPodsReady", None)


def _network(draft: Draft, objects: Objects) -> list[Run]:
    if draft.take("placement", "topology"):
        kind = draft.text("placement", "best-fit")
        if kind == "topology" or draft.text("topology.level"):
            return _topology(draft, objects)
        if draft.change.before.get("placement") == "topology":
            objects.drop("Topology", TOPOLOGY)
            for flavor in objects.of_kind("ResourceFlavor"):
                flavor["spec"].pop("topologyName", None)
        if "placement" in draft.change.changed:
            draft.refuse(
                "placement",
                _ADMITS + "; set its scoring there (NodeResourcesFit: MostAllocated packs)",
            )
    return []


def _topology(draft: Draft, objects: Objects) -> list[Run]:
    found = nodes.levels(draft)
    if not found:
        draft.refuse("placement", "no node's switch is known here: import the network first")
        return []
    rows = [{"nodeLabel": one} for one in found]
    objects.put(made(API, "Topology", TOPOLOGY, {"levels": rows}))
    flavor_of(objects)
    for flavor in objects.of_kind("ResourceFlavor"):
        flavor["spec"]["topologyName"] = TOPOLOGY
        flavor["spec"].setdefault("nodeLabels", {"nvidia.com/gpu.present": "true"})
    level = nodes.label(draft.text("topology.level") or "leaf")
    word = "required" if draft.text("topology.binding") == "required" else "preferred"
    draft.remark(
        "topology.level",
        f"a job asks for it: annotation kueue.x-k8s.io/podset-{word}-topology: {level}",
    )
    return nodes.label_runs(draft)


def _rest(draft: Draft) -> None:
    draft.take("defrag", "sharing", "elastic")
    if draft.text("defrag", "none") != "none":
        draft.refuse("defrag", "Kueue does not move running pods")
    if draft.text("elastic", "fixed") != "fixed":
        draft.refuse("elastic", "Kueue resizes only jobs that their framework resizes")
    if draft.text("sharing", "asked") != "mig" or not draft.beside.mig:
        draft.refuse(
            "sharing",
            "parts of a GPU come from the device plugin: MIG (--mig), or its"
            " time-slicing and MPS settings",
        )
    draft.rest()
