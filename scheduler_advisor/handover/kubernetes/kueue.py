"""Kueue: ClusterQueue, Cohort, ResourceFlavor, Topology, and the manager's configuration."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.kubernetes import nodes
from scheduler_advisor.handover.kubernetes.objects import (
    CONFIG_NAME,
    GPU,
    Body,
    Objects,
    clean,
    made,
)
from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.steps import Handover, Run, Scheduler

API, CONFIG_API = "kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta2"
FILE, COHORT, FLAVOR, TOPOLOGY = "kueue.yaml", "unstrand", "gpu", "unstrand"
_ADMITS = "Kueue admits by quota and leaves the nodes to the scheduler of the pods"
_PRIORITY = "Kueue orders by WorkloadPriorityClass, then by age"


def to_kueue(change: Change, site: Site, beside: Beside) -> Handover:
    """Objects of Kueue, made from those of today where they are given."""
    text = site.files.get(FILE)
    objects = Objects(text, FILE)
    if text is None:
        before = Draft(Change({}, change.before), site, NOTHING)
        _queues(before, objects)
        _parts(before, objects)
        objects.assume()
    draft = Draft(change, site, beside)
    runs = _parts(draft, objects)
    _rest(draft)
    edits, mig_runs = nodes.slices(draft)
    nodes.pod_defaults(draft)
    draft.say_check(*objects.check())
    draft.say_verify(*objects.verify())
    return Handover(
        Scheduler.KUEUE,
        (*edits, *objects.edits()),
        (*mig_runs, *runs, *objects.runs()),
        tuple(draft.check),
        tuple(draft.verify),
        tuple(draft.cannot[key] for key in sorted(draft.cannot)),
        tuple(draft.remarks),
        draft.modelled(),
    )


def _parts(draft: Draft, objects: Objects) -> list[Run]:
    if draft.take("quota"):
        _queues(draft, objects)
    _order(draft, objects)
    _backfill(draft, objects)
    _preemption(draft, objects)
    _headroom(draft, objects)
    _gang(draft, objects)
    return _network(draft, objects)


def _all(objects: Objects) -> list[Body]:
    return objects.of_kind("ClusterQueue")


def _queues(draft: Draft, objects: Objects) -> None:
    """A ClusterQueue per queue in one cohort; a parent is a Cohort; without queues one for all."""
    flavor = made(API, "ResourceFlavor", FLAVOR, {})
    wanted = queues_of(draft.change.after)
    parents = {queue.parent for queue in wanted.values() if queue.parent}
    single = {"cluster": Queue("cluster", draft.site.gpus, None, 1, None, "")}
    _drop_gone(draft, objects, {clean(name) for name in (wanted or single)})
    objects.put(flavor)
    for name in sorted(parents):
        objects.put(made(API, "Cohort", clean(name), {}))
        top = wanted[name].parent if name in wanted else ""
        objects.get("Cohort", clean(name))["spec"] = {"parentName": clean(top) if top else COHORT}  # type: ignore[index]
    for name, queue in (wanted or single).items():
        if name in parents:
            continue
        body = objects.put(made(API, "ClusterQueue", clean(name), {"namespaceSelector": {}}))
        _quota(body["spec"], queue, alone=not wanted)
    if parents:
        draft.remark("quota.queues", "quotas of a queue with queues below it are the sum of theirs")
    for body in _all(objects) if draft.changes("quota.strict") else []:
        _set(
            body["spec"],
            "queueingStrategy",
            "StrictFIFO" if draft.text("quota.strict") == "True" else None,
        )
    _reclaim(draft, objects)


def _drop_gone(draft: Draft, objects: Objects, names: set[str]) -> None:
    ours = {clean(name) for name in queues_of(draft.change.before)}
    for body in _all(objects):
        name = body["metadata"]["name"]
        if name in ours - names:
            objects.drop("ClusterQueue", name)


def _quota(spec: Body, queue: Queue, alone: bool) -> None:
    if not alone:
        spec["cohortName"] = clean(queue.parent) if queue.parent else COHORT
    groups = spec.setdefault("resourceGroups", [])
    group = next((one for one in groups if GPU in one.get("coveredResources", [])), None)
    if group is None:
        flavor = {"name": FLAVOR, "resources": [{"name": GPU, "nominalQuota": 0}]}
        group = {"coveredResources": [GPU], "flavors": [flavor]}
        groups.append(group)
    quota = next(one for one in group["flavors"][0]["resources"] if one["name"] == GPU)
    quota["nominalQuota"] = queue.guarantee
    over = None if queue.maximum is None or alone else queue.maximum - queue.guarantee
    _set(quota, "borrowingLimit", over)
    _set(quota, "lendingLimit", None if alone else queue.lend)
    _set(spec, "fairSharing", {"weight": str(queue.weight)} if queue.weight != 1 else None)


def _reclaim(draft: Draft, objects: Objects) -> None:
    mode = draft.text("quota.reclaim", "none")
    for body in _all(objects):
        rules = body["spec"].setdefault("preemption", {})
        _set(rules, "reclaimWithinCohort", None if mode == "none" else "Any")
        if not rules:
            del body["spec"]["preemption"]
    if mode == "loose":
        draft.remark(
            "quota.reclaim",
            "Kueue takes from queues above their nominal quota, down to"
            " it: that is strict; it has no loose reclaim",
        )
    draft.always("quota.reclaim_to", "guarantee", "Kueue reclaims the nominal quota")


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
        for body in _all(objects):
            _set(body["spec"], "queueingStrategy", "StrictFIFO" if kind == "none" else None)
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
        for body in _all(objects):
            body["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    draft.remark("order", "usage over time orders the local queues within a ClusterQueue")
    draft.always("fairshare.entitlement", "weight", "Kueue shares by weight")


def _preemption(draft: Draft, objects: Objects) -> None:
    if not draft.take("preemption"):
        return
    on = draft.text("preemption", "none") != "none"
    cohort = on and draft.text("preemption.reach", "cluster") == "cluster"
    for body in _all(objects):
        rules = body["spec"].setdefault("preemption", {})
        _set(rules, "withinClusterQueue", "LowerPriority" if on else None)
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
    body["spec"]["cohortName"] = COHORT
    _quota(body["spec"], Queue(name, kept, kept, 1, 0, ""), alone=False)
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
    objects.put(made(API, "ResourceFlavor", FLAVOR, {}))
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


def _set(table: Body, key: str, value: object) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
