"""Kueue's ClusterQueues and Cohorts for the queues of a policy."""

from __future__ import annotations

from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.kubernetes.objects import GPU, Body, Objects, clean, made
from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.steps import Known

API, COHORT, FLAVOR = "kueue.x-k8s.io/v1beta2", "unstrand", "gpu"
SHARED, ALL = "shared", "cluster"


def all_queues(objects: Objects) -> list[Body]:
    """Every ClusterQueue."""
    return objects.of_kind("ClusterQueue")


def queues(draft: Draft, objects: Objects) -> None:
    """A ClusterQueue per queue in one cohort; a parent is a Cohort; without queues one for all."""
    wanted = queues_of(draft.change.after)
    parents = {queue.parent for queue in wanted.values() if queue.parent}
    place = (flavor_of(objects), cohort_of(objects))
    _drop_gone(draft, objects, {clean(name) for name in wanted})
    for name in sorted(parents):
        body = objects.put(made(API, "Cohort", clean(name), {}))
        top = wanted[name].parent if name in wanted else ""
        body.setdefault("spec", {})["parentName"] = clean(top) if top else place[1]
    for name, queue in wanted.items():
        if name not in parents:
            body = objects.put(made(API, "ClusterQueue", clean(name), {"namespaceSelector": {}}))
            set_quota(body["spec"], queue, place)
    _what_is_left(draft, objects, place, any_queue=bool(wanted))
    if not all_queues(objects):
        _one_for_all(draft, objects, place[0])
    if parents:
        draft.remark("quota.queues", "quotas of a queue with queues below it are the sum of theirs")
    strict = draft.text("quota.strict") == "True"
    for body in all_queues(objects) if draft.changes("quota.strict") else []:
        put_or_drop(body["spec"], "queueingStrategy", "StrictFIFO" if strict else None)
    if draft.changes("quota.reclaim"):
        _reclaim(draft, objects)
    draft.always("quota.reclaim_to", "guarantee", "Kueue reclaims the nominal quota")


def _what_is_left(
    draft: Draft, objects: Objects, place: tuple[str, str], *, any_queue: bool
) -> None:
    """GPUs that no queue is guaranteed: a cohort has only what its queues have, so that a queue
    without jobs of its own brings them in for others to borrow."""
    if any_queue and objects.known is not Known.FILE:
        objects.drop("ClusterQueue", ALL)  # ours, of a cluster without queues of teams
    given = sum(
        _nominal(body) for body in all_queues(objects) if body["metadata"]["name"] != SHARED
    )
    rest = draft.site.gpus - given
    if not any_queue or rest <= 0:
        objects.drop("ClusterQueue", SHARED)
        return
    body = objects.put(made(API, "ClusterQueue", SHARED, {"namespaceSelector": {}}))
    set_quota(body["spec"], Queue(SHARED, rest, None, 1, None, ""), place)
    draft.remark(
        "quota.queues",
        f"{rest} GPUs that no queue is guaranteed are queue {SHARED}'s: give it no LocalQueue, and"
        " the others borrow them",
    )


def _nominal(body: Body) -> int:
    """GPUs that a ClusterQueue is guaranteed, of all flavors."""
    return sum(
        int(one.get("nominalQuota", 0))
        for group in body["spec"].get("resourceGroups", [])
        for flavor in group["flavors"]
        for one in flavor["resources"]
        if one["name"] == GPU
    )


def _one_for_all(draft: Draft, objects: Objects, flavor: str) -> None:
    if not draft.site.gpus:
        raise HandoverError(
            "Kueue: a quota needs the number of GPUs: give kueue.yaml"
            " (kubectl get clusterqueues,resourceflavors -o yaml), or name a cluster with nodes"
        )
    body = objects.put(made(API, "ClusterQueue", ALL, {"namespaceSelector": {}}))
    set_quota(body["spec"], Queue(ALL, draft.site.gpus, None, 1, None, ""), (flavor, ""))


def flavor_of(objects: Objects) -> str:
    """The name of the first flavor there is; one is made where there is none."""
    found = objects.of_kind("ResourceFlavor")
    if found:
        return str(found[0]["metadata"]["name"])
    objects.put(made(API, "ResourceFlavor", FLAVOR, {}))
    return FLAVOR


def cohort_of(objects: Objects) -> str:
    """The cohort that queues of today are in, else one of our own."""
    names = (body["spec"].get("cohortName") for body in all_queues(objects))
    return next((str(name) for name in names if name), COHORT)


def set_quota(spec: Body, queue: Queue, place: tuple[str, str]) -> None:
    """GPUs of a queue. ``place``: flavor and cohort for one that has none; no cohort: alone."""
    flavor, cohort = place
    if queue.parent:
        spec["cohortName"] = clean(queue.parent)
    elif cohort:
        spec.setdefault("cohortName", cohort)
    groups = spec.setdefault("resourceGroups", [])
    group = next((one for one in groups if GPU in one.get("coveredResources", [])), None)
    if group is None:
        row = {"name": flavor, "resources": [{"name": GPU, "nominalQuota": 0}]}
        group = {"coveredResources": [GPU], "flavors": [row]}
        groups.append(group)
    quota = next(one for one in group["flavors"][0]["resources"] if one["name"] == GPU)
    quota["nominalQuota"] = queue.guarantee
    alone = "cohortName" not in spec
    over = None if queue.maximum is None or alone else queue.maximum - queue.guarantee
    put_or_drop(quota, "borrowingLimit", over)
    put_or_drop(quota, "lendingLimit", None if alone else queue.lend)
    put_or_drop(spec, "fairSharing", {"weight": str(queue.weight)} if queue.weight != 1 else None)


def put_or_drop(table: Body, key: str, value: object) -> None:
    """Set a key; None takes it out."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _drop_gone(draft: Draft, objects: Objects, names: set[str]) -> None:
    ours = {clean(name) for name in queues_of(draft.change.before)}
    for body in all_queues(objects):
        name = body["metadata"]["name"]
        if name in ours - names:
            objects.drop("ClusterQueue", name)


def _reclaim(draft: Draft, objects: Objects) -> None:
    mode = draft.text("quota.reclaim", "none")
    for body in all_queues(objects):
        rules = body["spec"].setdefault("preemption", {})
        put_or_drop(rules, "reclaimWithinCohort", None if mode == "none" else "Any")
        if mode == "none":
            rules.pop("borrowWithinCohort", None)
        if not rules:
            del body["spec"]["preemption"]
    if mode == "loose":
        draft.remark(
            "quota.reclaim",
            "Kueue takes from queues above their nominal quota, down to it: that is strict; it has"
            " no loose reclaim",
        )
