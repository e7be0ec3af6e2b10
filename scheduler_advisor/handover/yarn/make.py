"""The whole hand-over to YARN's capacity scheduler."""

from __future__ import annotations

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.steps import Edit, Handover, Known, Run, Scheduler
from scheduler_advisor.handover.yarn.draft import (
    CAPACITY,
    DOMINANT,
    HEAD,
    MONITOR,
    SITE,
    YarnDraft,
)
from scheduler_advisor.handover.yarn.queues import leaves, quota

PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption"
BY_USE = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement"
    ".ResourceUsageMultiNodeLookupPolicy"
)
GRACE_MS = 15_000
_APPS = "YARN orders applications by age, priority or share"
_REFRESH, _RESTART = (
    "yarn rmadmin -refreshQueues",
    "yarn --daemon stop resourcemanager && yarn --daemon start resourcemanager",
)


def to_yarn(change: Change, site: Site, beside: Beside) -> Handover:
    """Edits of capacity-scheduler.xml and yarn-site.xml."""
    draft = YarnDraft(change, site, beside)
    today = YarnDraft(Change({}, change.before), site, NOTHING)
    _parts(today)
    # A file that is not given is what the policy of today implies.
    if CAPACITY not in site.files:
        draft.capacity = today.capacity
    if SITE not in site.files:
        draft.site_file = today.site_file
    before = {CAPACITY: draft.capacity.text, SITE: draft.site_file.text}
    _parts(draft)
    _rest(draft)
    after = {CAPACITY: draft.capacity.text, SITE: draft.site_file.text}
    edits = tuple(
        Edit(name, before[name], after[name], Known.FILE if name in site.files else Known.ASSUMED)
        for name in before
        if before[name] != after[name]
    )
    runs: tuple[Run, ...] = ()
    if edits:
        # The monitor and the node sorting are read at start; queues are not.
        command = _RESTART if any(edit.file == SITE for edit in edits) else _REFRESH
        runs = (Run(command, command),)
        draft.say_check("patch --dry-run -p0 < change.diff", "hadoop conftest -conffile COPY")
        draft.say_verify(
            "yarn queue -status QUEUE", "curl -s http://RM:8088/ws/v1/cluster/scheduler"
        )
    return draft.handed(Scheduler.YARN, edits, runs)


def _parts(draft: YarnDraft) -> None:
    _order(draft)
    _backfill(draft)
    _placement(draft)
    quota(draft)
    _preemption(draft)


def _order(draft: YarnDraft) -> None:
    if not draft.take("order", "multifactor", "fairshare", "ordering"):
        return
    kind = draft.text("order", "fifo")
    words = {"fifo": "fifo", "priority": "fifo", "fair-share": "fair", "drf": "fair"}
    if kind in words:
        for queue in leaves(draft):
            draft.capacity.set(f"{HEAD}.{queue}.ordering-policy", words[kind])
        if kind == "drf":
            draft.capacity.set(f"{HEAD}.resource-calculator", DOMINANT)
        if kind == "priority":
            draft.site_file.set("yarn.cluster.max-application-priority", "10")
            draft.remark("order", "fifo puts an application's priority before its age")
        if kind == "fair-share":
            draft.remark("order", "fair counts what runs now, within a queue")
    else:
        draft.refuse("order", _APPS)
    draft.refuse("multifactor", _APPS)
    draft.refuse("ordering", _APPS)
    draft.always("fairshare.half_life_s", 0, "YARN has no memory of past usage")
    draft.always("fairshare.entitlement", "weight", "fair shares evenly within a queue")


def _backfill(draft: YarnDraft) -> None:
    if not draft.take("backfill"):
        return
    kind = draft.text("backfill", "none")
    if kind != "greedy":
        draft.refuse(
            "backfill",
            "YARN offers each free container to the next application that can"
            " take it; an application reserves one node at a time",
        )
    for key in ("depth", "max_limit_s", "interval_s"):
        draft.always(f"backfill.{key}", 0, "YARN has no bound on it")
    draft.always("backfill.whole_nodes", False, "YARN plans no nodes")


def _placement(draft: YarnDraft) -> None:
    if not draft.take("placement", "topology"):
        return
    kind, head = draft.text("placement", "best-fit"), f"{HEAD}.multi-node"
    if kind == "worst-fit":
        draft.capacity.set(f"{HEAD}.multi-node-placement-enabled", "true")
        draft.capacity.set(f"{head}-sorting.policy", "resource-usage")
        draft.capacity.set(f"{head}-sorting.policy.names", "resource-usage")
        draft.capacity.set(f"{head}-sorting.policy.resource-usage.class", BY_USE)
        draft.remark(
            "placement",
            "nodes are sorted by what is used, least first; it needs"
            " asynchronous scheduling to matter",
        )
    elif draft.change.before.get("placement") == "worst-fit":
        for name in (
            "-placement-enabled",
            "-sorting.policy",
            "-sorting.policy.names",
            "-sorting.policy.resource-usage.class",
        ):
            draft.capacity.set(head + name, None)
    if kind not in ("worst-fit", "first-fit"):
        draft.refuse(
            "placement",
            "YARN takes nodes as they report, or by use; packing takes a"
            " sorting policy of one's own or placement constraints",
        )
    draft.refuse("topology", "YARN knows racks as a locality wish of each request, not for gangs")


def _preemption(draft: YarnDraft) -> None:
    if not draft.take("preemption"):
        return
    if draft.text("preemption", "none") == "none":
        if draft.text("quota.reclaim", "none") == "none":
            draft.site_file.set(MONITOR, "false")
        draft.site_file.set(f"{PREEMPTION}.intra-queue-preemption.enabled", None)
        draft.site_file.set(f"{PREEMPTION}.intra-queue-preemption.preemption-order-policy", None)
        return
    draft.monitor()
    head = f"{PREEMPTION}.intra-queue-preemption"
    draft.site_file.set(f"{head}.enabled", "true")
    draft.site_file.set(f"{head}.preemption-order-policy", "priority-first")
    grace = draft.number("preemption.grace_s")
    draft.site_file.set(
        f"{PREEMPTION}.max_wait_before_kill", str(grace * 1000) if grace else str(GRACE_MS)
    )
    draft.always("preemption.by", "priority", "within a queue YARN goes by application priority")
    draft.always(
        "preemption.reach",
        "queue",
        "across queues YARN only takes back capacity; that is quota.reclaim",
    )
    draft.always(
        "preemption.eligible",
        "all",
        "any container may be killed; a queue is spared by disable_preemption",
    )
    draft.always("preemption.victims", "lowest-priority", "lower priority, then newer")
    draft.always(
        "preemption.mode",
        "scratch",
        "a killed container starts anew; what it keeps is up to the application",
    )
    for key in ("min_run_s", "max_per_job", "max_per_hour", "max_team_gpus_per_hour"):
        draft.always(
            f"preemption.{key}",
            0,
            "YARN bounds the share per round alone (total_preemption_per_round)",
        )


def _rest(draft: YarnDraft) -> None:
    draft.take("gang", "defrag", "sharing", "elastic")
    if draft.text("gang", "True") == "True":
        draft.refuse("gang", "containers start one by one; a gang is up to the application master")
    draft.always("gang.timeout_s", 0, "that is up to the application master")
    draft.refuse("defrag", "YARN does not move containers")
    draft.refuse("sharing", "yarn.io/gpu counts whole GPUs")
    draft.refuse("elastic", "that is up to the application master")
    for name in ("mem_mib_per_gpu", "cpus_per_gpu", "headroom_gpus"):
        draft.refuse_beside(name, "YARN has no such setting")
    draft.refuse_beside("limits", "user limits of YARN are factors of a queue, no counts of GPUs")
    draft.refuse_beside("mig", "yarn.io/gpu counts whole GPUs")
    draft.rest()
