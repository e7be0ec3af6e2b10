"""The whole hand-over to YARN's capacity scheduler."""

from __future__ import annotations

from scheduler_advisor.handover.change import Change
from scheduler_advisor.handover.draft import Draft
from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.site import NOTHING, Beside, Site
from scheduler_advisor.handover.steps import Edit, Handover, Known, Run, Scheduler
from scheduler_advisor.handover.yarn.properties import EMPTY, Properties

CAPACITY, SITE = "capacity-scheduler.xml", "yarn-site.xml"
HEAD = "yarn.scheduler.capacity"
MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption"
POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity"
    ".ProportionalCapacityPreemptionPolicy"
)
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
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


class YarnDraft(Draft):
    """With the two files."""

    __slots__ = ("capacity", "site_file")

    def __init__(self, change: Change, site: Site, beside: Beside) -> None:
        super().__init__(change, site, beside)
        self.capacity = Properties(site.files.get(CAPACITY, EMPTY), CAPACITY)
        self.site_file = Properties(site.files.get(SITE, EMPTY), SITE)


def to_yarn(change: Change, site: Site, beside: Beside) -> Handover:
    """Edits of capacity-scheduler.xml and yarn-site.xml."""
    draft = YarnDraft(change, site, beside)
    known = Known.FILE if CAPACITY in site.files else Known.ASSUMED
    if known is Known.ASSUMED:
        today = YarnDraft(Change({}, change.before), site, NOTHING)
        _parts(today)
        draft.capacity, draft.site_file = today.capacity, today.site_file
    before = (draft.capacity.text, draft.site_file.text)
    _parts(draft)
    _rest(draft)
    edits = _edits(draft, before, known)
    runs: tuple[Run, ...] = ()
    if edits:
        # The monitor and the node sorting are read at start; queues are not.
        command = _RESTART if any(edit.file == SITE for edit in edits) else _REFRESH
        runs = (Run(command, command),)
        draft.say_check("patch --dry-run -p0 < change.diff", "hadoop conftest -conffile COPY")
        draft.say_verify(
            "yarn queue -status QUEUE", "curl -s http://RM:8088/ws/v1/cluster/scheduler"
        )
    return Handover(
        Scheduler.YARN,
        edits,
        runs,
        tuple(draft.check),
        tuple(draft.verify),
        tuple(draft.cannot[key] for key in sorted(draft.cannot)),
        tuple(draft.remarks),
        draft.modelled(),
    )


def _edits(draft: YarnDraft, before: tuple[str, str], known: Known) -> tuple[Edit, ...]:
    files = ((CAPACITY, before[0], draft.capacity.text), (SITE, before[1], draft.site_file.text))
    return tuple(
        Edit(
            name,
            old,
            new,
            known if name == CAPACITY or SITE not in draft.site.files else Known.FILE,
        )
        for name, old, new in files
        if old != new
    )


def _parts(draft: YarnDraft) -> None:
    _order(draft)
    _backfill(draft)
    _placement(draft)
    _quota(draft)
    _preemption(draft)


def _order(draft: YarnDraft) -> None:
    if not draft.take("order", "multifactor", "fairshare", "ordering"):
        return
    kind = draft.text("order", "fifo")
    words = {"fifo": "fifo", "priority": "fifo", "fair-share": "fair", "drf": "fair"}
    if kind in words:
        for queue in _leaves(draft):
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


def _quota(draft: YarnDraft) -> None:
    if not draft.take("quota"):
        return
    before, after = queues_of(draft.change.before), queues_of(draft.change.after)
    if after and not draft.site.gpus:
        raise HandoverError("YARN: shares of queues need the number of GPUs: import the nodes")
    _drop(draft, before, after)
    for parent in sorted({"", *(queue.parent for queue in after.values())}):
        names = sorted(name for name, queue in after.items() if queue.parent == parent)
        path = _path(parent, after) if parent else "root"
        if names:
            draft.capacity.set(f"{HEAD}.{path}.queues", ",".join(names))
            _shares(draft, after, names, parent)
    if before and not after:
        draft.capacity.set(f"{HEAD}.root.queues", "default")
        draft.capacity.set(f"{HEAD}.root.default.capacity", "100")
    draft.capacity.set(f"{HEAD}.resource-calculator", DOMINANT)
    if draft.text("quota.reclaim", "none") != "none":
        _monitor(draft)
        draft.remark(
            "quota.reclaim", "containers above a queue's capacity are killed, newest first"
        )
    draft.always("quota.strict", False, "applications that fit pass one that does not")
    draft.always("quota.reclaim_to", "guarantee", "YARN reclaims the capacity")


def _drop(draft: YarnDraft, before: dict[str, Queue], after: dict[str, Queue]) -> None:
    for name in before.keys() - after.keys():
        head = f"{HEAD}.{_path(name, before)}."
        for text in [one for one in draft.capacity.names() if one.startswith(head)]:
            draft.capacity.set(text, None)


def _shares(draft: YarnDraft, queues: dict[str, Queue], names: list[str], parent: str) -> None:
    total = queues[parent].guarantee if parent else draft.site.gpus
    given = sum(queues[name].guarantee for name in names)
    # Capacities of brothers must add up to 100: what no one is guaranteed goes by weight.
    spare, weights = max(total - given, 0), sum(queues[name].weight for name in names) or 1
    shares = [queues[name].guarantee + spare * queues[name].weight / weights for name in names]
    whole = sum(shares) or 1
    texts = _hundred([100 * share / whole for share in shares])
    for name, text in zip(names, texts, strict=True):
        queue, path = queues[name], f"{HEAD}.{_path(name, queues)}"
        draft.capacity.set(f"{path}.capacity", text)
        most = 100.0 if queue.maximum is None else min(100.0, 100 * queue.maximum / (total or 1))
        draft.capacity.set(f"{path}.maximum-capacity", f"{max(most, float(text)):.2f}")
        if queue.lend is not None:
            draft.refuse(f"quota.queues.{name}.lend", "unused capacity is lent whole")
    if spare:
        draft.remark(
            "quota.queues",
            f"{spare} GPUs that no queue of {parent or 'root'} is"
            " guaranteed are added to the capacities by weight: they must sum to 100",
        )


def _hundred(shares: list[float]) -> list[str]:
    """Two decimals that add up to 100.00 exactly; the largest takes the rounding."""
    cents = [round(share * 100) for share in shares]
    cents[cents.index(max(cents))] += 10_000 - sum(cents)
    return [f"{one // 100}.{one % 100:02}" for one in cents]


def _path(name: str, queues: dict[str, Queue]) -> str:
    parent = queues[name].parent if name in queues else ""
    return f"{_path(parent, queues) if parent else 'root'}.{name}"


def _leaves(draft: YarnDraft) -> list[str]:
    queues = queues_of(draft.change.after)
    parents = {queue.parent for queue in queues.values()}
    if queues:
        return [_path(name, queues) for name in queues if name not in parents]
    text = draft.capacity.get(f"{HEAD}.root.queues") or "default"
    return [f"root.{name.strip()}" for name in text.split(",")]


def _preemption(draft: YarnDraft) -> None:
    if not draft.take("preemption"):
        return
    if draft.text("preemption", "none") == "none":
        if draft.text("quota.reclaim", "none") == "none":
            draft.site_file.set(MONITOR, "false")
        draft.site_file.set(f"{PREEMPTION}.intra-queue-preemption.enabled", None)
        draft.site_file.set(f"{PREEMPTION}.intra-queue-preemption.preemption-order-policy", None)
        return
    _monitor(draft)
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


def _monitor(draft: YarnDraft) -> None:
    draft.site_file.set(MONITOR, "true")
    draft.site_file.set(POLICIES, POLICY)


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
    draft.refuse_beside("mig", "yarn.io/gpu counts whole GPUs")
    draft.rest()
