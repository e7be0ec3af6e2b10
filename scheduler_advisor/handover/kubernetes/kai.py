"""KAI: Queue, SchedulingShard and Topology."""

from __future__ import annotations

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.kubernetes import nodes
from scheduler_advisor.handover.kubernetes.objects import Body, Objects, clean, made
from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.steps import Handover, Run, Scheduler

API, SHARD_API, NETWORK_API = "scheduling.run.ai/v2", "kai.scheduler/v1", "kai.scheduler/v1alpha1"
FILE, SHARD, TOPOLOGY, ALL = "kai.yaml", "default", "unstrand", -1
_ORDER = "KAI orders by queue share, PodGroup priority and age"
_LATER = "KAI keeps no place for a waiting job: what fits may start"


def to_kai(change: Change, site: Site, beside: Beside) -> Handover:
    """Objects of KAI, made from those of today where they are given."""
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
    draft.say_check(*objects.check())
    draft.say_verify(*objects.verify())
    commands = (*mig_runs, *runs, *objects.runs())
    return draft.handed(Scheduler.KAI, (*edits, *objects.edits()), commands)


def _parts(draft: Draft, objects: Objects) -> list[Run]:
    shard = objects.put(made(SHARD_API, "SchedulingShard", SHARD, {}))["spec"]
    _order(draft, shard)
    _depth(draft, shard)
    _gang(draft)
    _quota(draft, objects)
    _preemption(draft, shard)
    _defrag(draft, shard)
    _headroom(draft, objects)
    return _placement(draft, shard, objects)


def _order(draft: Draft, shard: Body) -> None:
    if draft.take("order", "multifactor", "fairshare", "ordering"):
        kind = draft.text("order", "fifo")
        if "order" not in draft.change.changed:
            pass
        elif kind == "fair-share":
            half_life = draft.number("fairshare.half_life_s")
            if half_life:
                draft.refuse(
                    "fairshare.half_life_s",
                    "usage over time needs usageDBConfig of the"
                    " shard with the address of a Prometheus, which is not known here",
                )
            shard["kValue"] = 1.0
            draft.remark("order", "shares are those of the queues, by overQuotaWeight")
        elif kind not in ("fifo", "priority"):
            draft.refuse("order", _ORDER)
        else:
            shard.pop("kValue", None)
        draft.refuse("multifactor", _ORDER)
        draft.refuse("ordering", _ORDER)
        draft.always(
            "fairshare.entitlement",
            "two-step",
            "KAI fills quotas first, then shares the rest by weight",
        )


def _depth(draft: Draft, shard: Body) -> None:
    if draft.take("backfill"):
        if draft.text("backfill", "none") != "greedy":
            draft.refuse("backfill", _LATER)
        depth = draft.number("backfill.depth")
        if draft.changes("backfill.depth"):
            table = shard.setdefault("queueDepthPerAction", {})
            if depth:
                table["allocate"] = depth
            else:
                table.pop("allocate", None)
            if not table:
                del shard["queueDepthPerAction"]
        for key in ("max_limit_s", "interval_s"):
            draft.always(f"backfill.{key}", 0, "KAI has no bound on it")
        draft.always("backfill.whole_nodes", False, "KAI plans no nodes")


def _gang(draft: Draft) -> None:
    if draft.take("gang"):
        draft.always("gang", True, "KAI starts a PodGroup's minMember together, always")
        draft.always("gang.timeout_s", 0, "KAI's gangs hold nothing while they wait")


def _quota(draft: Draft, objects: Objects) -> None:
    if not draft.take("quota"):
        return
    before, after = queues_of(draft.change.before), queues_of(draft.change.after)
    for name in before.keys() - after.keys():
        objects.drop("Queue", clean(name))
    for name, queue in after.items():
        _queue(objects.put(made(API, "Queue", clean(name), {}))["spec"], queue)
        draft.always(f"quota.queues.{name}.lend", None, "a queue's unused quota is lent whole")
    shard = objects.put(made(SHARD_API, "SchedulingShard", SHARD, {}))["spec"]
    reclaim = draft.text("quota.reclaim", "none")
    _action(shard, "reclaim", reclaim != "none")
    if reclaim == "loose":
        draft.remark("quota.reclaim", "KAI takes from queues above their fair share, and not below")
    draft.always("quota.strict", False, _LATER)


def _queue(spec: Body, queue: Queue) -> None:
    if queue.parent:
        spec["parentQueue"] = clean(queue.parent)
    else:
        spec.pop("parentQueue", None)
    resources = spec.setdefault("resources", {})
    most = ALL if queue.maximum is None else queue.maximum
    resources["gpu"] = {"quota": queue.guarantee, "limit": most, "overQuotaWeight": queue.weight}
    for name in ("cpu", "memory"):
        resources.setdefault(name, {"quota": ALL, "limit": ALL, "overQuotaWeight": 1})


def _preemption(draft: Draft, shard: Body) -> None:
    if not draft.take("preemption"):
        return
    on = draft.text("preemption", "none") != "none"
    _action(shard, "preempt", on)
    least = draft.number("preemption.min_run_s")
    if on and least:
        shard["minRuntime"] = {"preemptMinRuntime": f"{least}s", "reclaimMinRuntime": f"{least}s"}
    else:
        shard.pop("minRuntime", None)
    if not on:
        return
    draft.always("preemption.by", "priority", "KAI preempts by PriorityClass")
    draft.always(
        "preemption.reach",
        "queue",
        "preempt works within a queue; across queues it is reclaim (quota.reclaim)",
    )
    draft.remark(
        "preemption.eligible",
        "a PodGroup is preemptible by its preemptibility, or by a PriorityClass below 100",
    )
    draft.always("preemption.victims", "lowest-priority", "KAI's solver chooses the victims")
    draft.always(
        "preemption.mode",
        "scratch",
        "an evicted pod starts anew; what it keeps is up to the job's own checkpoints",
    )
    for key in ("max_per_job", "max_per_hour", "max_team_gpus_per_hour"):
        draft.always(f"preemption.{key}", 0, "KAI has no such guard")
    draft.always("preemption.grace_s", 0, "set terminationGracePeriodSeconds on the pods")


def _defrag(draft: Draft, shard: Body) -> None:
    if not draft.take("defrag"):
        return
    kind = draft.text("defrag", "none")
    _action(shard, "consolidation", kind != "none")
    if kind == "hours":
        draft.refuse(
            "defrag.hours",
            "consolidation runs whenever a waiting job needs it; by hour"
            " it takes a job that changes the shard",
        )
    if kind != "none":
        draft.remark("defrag", "moves preemptible pods for a job that waits, which then start anew")
        for key in ("threshold", "moves", "every_s"):
            draft.refuse(f"defrag.{key}", "KAI has no bound on it")


def _placement(draft: Draft, shard: Body, objects: Objects) -> list[Run]:
    if not draft.take("placement", "topology"):
        return []
    kind = draft.text("placement", "best-fit")
    if "placement" not in draft.change.changed:
        pass
    elif kind in ("best-fit", "consolidate", "topology", "worst-fit"):
        word = "spread" if kind == "worst-fit" else "binpack"
        shard["placementStrategy"] = {"gpu": word, "cpu": word}
        if word == "spread":
            draft.remark("placement", "KAI switches consolidation off where it spreads")
    else:
        draft.refuse("placement", "KAI packs or spreads")
    if kind != "topology" and not draft.text("topology.level"):
        objects.drop("Topology", TOPOLOGY)
        return []
    found = nodes.levels(draft)
    if not found:
        draft.refuse("placement", "no node's switch is known here: import the network first")
        return []
    rows = [{"nodeLabel": one} for one in found]
    objects.put(made(NETWORK_API, "Topology", TOPOLOGY, {"levels": rows}))
    word = "required" if draft.text("topology.binding") == "required" else "preferred"
    level = nodes.label(draft.text("topology.level") or "leaf")
    draft.remark(
        "topology.level",
        f"a job asks for it: annotations kai.scheduler/topology:"
        f" {TOPOLOGY} and kai.scheduler/topology-{word}-placement: {level}",
    )
    return nodes.label_runs(draft)


def _headroom(draft: Draft, objects: Objects) -> None:
    kept = draft.beside.headroom_gpus
    if kept is None:
        return
    draft.refuse_beside(
        "headroom_gpus",
        "KAI lends what a queue does not use, so nothing stays empty; a queue headroom gets it back"
        " by reclaim instead",
    )
    if kept == 0:
        objects.drop("Queue", "headroom")
    else:
        body = objects.put(made(API, "Queue", "headroom", {}))
        _queue(body["spec"], Queue("headroom", kept, kept, 0, None, ""))


def _rest(draft: Draft) -> None:
    draft.take("sharing", "elastic")
    if draft.text("elastic", "fixed") != "fixed":
        draft.remark("elastic", "a job's own setting: minMember below its pods")
    sharing = draft.text("sharing", "asked")
    if sharing in ("time-slice", "asked"):
        draft.remark(
            "sharing", "a pod asks by the annotation gpu-fraction; KAI does not enforce it"
        )
    elif sharing != "none" and not (sharing == "mig" and draft.beside.mig):
        draft.refuse("sharing", "name the MIG layout (--mig), or configure MPS on the nodes")
    draft.rest()


def _action(shard: Body, name: str, on: bool) -> None:
    """Every action is on unless the shard says otherwise."""
    actions = shard.setdefault("actions", {})
    if on:
        actions.pop(name, None)
    else:
        actions[name] = {"enabled": False}
    if not actions:
        del shard["actions"]
