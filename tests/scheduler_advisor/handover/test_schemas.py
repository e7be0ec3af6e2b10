"""What is handed over to Kueue, Volcano, KAI, YARN and MIG is well formed by their fields."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import yaml

from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.steps import Run, Scheduler
from scheduler_advisor.handover.yarn.properties import Properties

QUEUES = {
    "quota.queues.lab.guarantee": 24,
    "quota.queues.nlp.guarantee": 8,
    "quota.queues.nlp.maximum": 16,
    "quota.queues.nlp.parent": "lab",
    "quota.queues.vision.guarantee": 16,
    "quota.queues.vision.weight": 3,
    "quota.queues.vision.lend": 4,
    "quota.queues.vision.parent": "lab",
    "quota.queues.guest.guarantee": 0,
}
CHANGES = {
    "order": {"order": "priority"},
    "fair": {"order": "fair-share", "fairshare.half_life_s": 604_800, "backfill": "greedy"},
    "drf": {"order": "drf"},
    "backfill": {"backfill": "greedy"},
    "pack": {"placement": "consolidate"},
    "spread": {"placement": "worst-fit"},
    "topology": {"placement": "topology", "topology.level": "leaf", "topology.binding": "required"},
    "preemption": {"preemption": "priority", "preemption.min_run_s": 1800},
    "quota": QUEUES | {"quota.reclaim": "strict", "quota.strict": "true"},
    "gang": {"gang.timeout_s": 600},
    "defrag": {"defrag": "threshold"},
    "depth": {"backfill": "greedy", "backfill.depth": 50},
}
HEADROOM = {"headroom_gpus": 8}
KUBERNETES = ("kueue", "volcano", "kai")


def beyond(change):
    return HEADROOM if change == "headroom" else {}


@pytest.mark.parametrize("change", [*CHANGES, "headroom"])
@pytest.mark.parametrize("scheduler", KUBERNETES)
def test_objects_hold_only_fields_that_the_scheduler_has(scheduler, change, hand, objects, faults):
    start = {"placement": "worst-fit"} if change == "pack" else {}
    handover = hand(scheduler, start, CHANGES.get(change, {}), **beyond(change))
    for body in objects(handover).values():
        assert faults(scheduler, body) == []
        for name, text in (body.get("data") or {}).items():
            assert faults(scheduler, yaml.safe_load(text), name) == []


@pytest.mark.parametrize(
    ("scheduler", "change", "kinds"),
    [
        ("kueue", "quota", {"ClusterQueue", "Cohort"}),
        ("kueue", "topology", {"Topology", "ResourceFlavor"}),
        ("kueue", "order", {"WorkloadPriorityClass"}),
        ("kueue", "fair", {"Configuration", "ClusterQueue"}),
        ("kueue", "gang", {"Configuration"}),
        ("volcano", "quota", {"Queue", "ConfigMap"}),
        ("volcano", "topology", {"HyperNode", "ConfigMap"}),
        ("volcano", "preemption", {"ConfigMap"}),
        ("kai", "quota", {"Queue"}),
        ("kai", "preemption", {"SchedulingShard"}),
        ("kai", "spread", {"SchedulingShard"}),
        ("kai", "topology", {"Topology"}),
    ],
)
def test_the_change_reaches_the_objects_that_decide_it(scheduler, change, kinds, hand, objects):
    made = objects(hand(scheduler, {}, CHANGES[change]))
    assert kinds <= {kind for kind, _ in made}


@pytest.mark.parametrize("scheduler", KUBERNETES)
def test_a_misspelt_field_is_refused_in_every_place(scheduler, hand, objects, faults):
    bodies = [
        body
        for change in ("quota", "topology", "preemption", "fair")
        for body in objects(hand(scheduler, {}, CHANGES[change])).values()
    ]
    tried = 0
    for body in bodies:
        kind = body["kind"]
        for table in tables(body):
            for key in list(table):
                table[f"{key}x"] = table.pop(key)
                assert faults(scheduler, body, kind), f"{key}x passes in {kind}"
                table[key] = table.pop(f"{key}x")
                tried += 1
        assert faults(scheduler, body) == []
    assert tried > 40


def tables(value):
    """Every table below an object but those whose keys are the user's own."""
    if isinstance(value, dict):
        if not any("/" in str(key) or "." in str(key) for key in value):
            yield value
        for key, each in value.items():
            if key not in ("nodeLabels", "namespaceSelector"):
                yield from tables(each)
    if isinstance(value, list):
        for each in value:
            yield from tables(each)


def test_a_quota_means_the_same_in_every_scheduler(hand, objects):
    after = CHANGES["quota"]
    kueue = objects(hand("kueue", {}, after))
    [quota] = kueue["ClusterQueue", "vision"]["spec"]["resourceGroups"][0]["flavors"][0][
        "resources"
    ]
    assert quota == {"name": "nvidia.com/gpu", "nominalQuota": 16, "lendingLimit": 4}
    assert kueue["ClusterQueue", "vision"]["spec"]["cohortName"] == "lab"
    assert kueue["ClusterQueue", "vision"]["spec"]["fairSharing"] == {"weight": "3"}
    volcano = objects(hand("volcano", {}, after))["Queue", "nlp"]["spec"]
    assert volcano["deserved"] == {"nvidia.com/gpu": "8"}
    assert volcano["capability"] == {"nvidia.com/gpu": "16"}
    kai = objects(hand("kai", {}, after))["Queue", "nlp"]["spec"]
    assert kai["resources"]["gpu"] == {"quota": 8, "limit": 16, "overQuotaWeight": 1}
    assert kai["parentQueue"] == "lab"
    capacity = properties(hand("yarn", {}, after), "capacity-scheduler.xml")
    assert capacity["yarn.scheduler.capacity.root.queues"] == "guest,lab"
    assert capacity["yarn.scheduler.capacity.root.lab.queues"] == "nlp,vision"
    # 24 of 32 are guaranteed to lab; the 8 that are left go by weight, 1 to 1.
    assert capacity["yarn.scheduler.capacity.root.lab.capacity"] == "87.50"
    assert capacity["yarn.scheduler.capacity.root.lab.nlp.capacity"] == "33.33"
    assert capacity["yarn.scheduler.capacity.root.lab.vision.capacity"] == "66.67"
    assert capacity["yarn.scheduler.capacity.root.lab.nlp.maximum-capacity"] == "66.67"


def properties(handover, file):
    [text] = [edit.after for edit in handover.edits if edit.file == file]
    root = ElementTree.fromstring(text)
    assert root.tag == "configuration"
    found = {}
    for block in root:
        assert block.tag == "property"
        assert {child.tag for child in block} <= {"name", "value", "description", "final"}
        name = block.findtext("name")
        assert name not in found, f"{name} twice"
        found[name] = block.findtext("value")
    return found


QUEUE_KEYS = ("queues", "capacity", "maximum-capacity", "ordering-policy")
YARN_NAMES = {
    "capacity-scheduler.xml": re.compile(
        r"yarn\.scheduler\.capacity\.(resource-calculator|multi-node-placement-enabled"
        r"|multi-node-sorting\.policy(\.names|\.[a-z-]+\.class)?"
        rf"|root(\.[a-z]+)*\.({'|'.join(QUEUE_KEYS)}))"
    ),
    "yarn-site.xml": re.compile(
        r"yarn\.(cluster\.max-application-priority"
        r"|resourcemanager\.scheduler\.monitor\.(enable|policies)"
        r"|resourcemanager\.monitor\.capacity\.preemption\.(max_wait_before_kill"
        r"|intra-queue-preemption\.(enabled|preemption-order-policy)))"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_yarn_gets_only_properties_that_it_has(change, hand):
    handover = hand("yarn", {}, CHANGES[change])
    for edit in handover.edits:
        for name in properties(handover, edit.file):
            assert YARN_NAMES[edit.file].fullmatch(name), name


def test_capacities_of_brothers_add_up_to_a_hundred_whatever_the_guarantees(hand):
    for guarantees in ((1, 1, 1), (7, 11, 3), (0, 0, 0), (32, 0, 0)):
        queues = {f"quota.queues.{name}.guarantee": gpus
                  for name, gpus in zip("abc", guarantees, strict=True)}  # fmt: skip
        found = properties(hand("yarn", {}, queues), "capacity-scheduler.xml")
        cents = [round(float(found[f"yarn.scheduler.capacity.root.{name}.capacity"]) * 100)
                 for name in "abc"]  # fmt: skip
        assert sum(cents) == 10_000


def test_volcano_is_restarted_after_its_file_is_there_on_the_way_back_too(hand):
    after = {"preemption": "priority", "quota.queues.nlp.guarantee": 8}
    handover = hand("volcano", {"backfill": "greedy"}, after)
    for steps in (handover.apply, handover.rollback):
        commands = [step.command for step in steps if isinstance(step, Run)]
        assert "rollout restart" in commands[-1]
        assert sum("rollout restart" in command for command in commands) == 1
    [conf] = [edit for edit in handover.edits if edit.file.startswith("configmap")]
    assert "  volcano-scheduler.conf: |\n    actions: enqueue, allocate, preempt" in conf.after
    assert "+    actions: enqueue, allocate, preempt, backfill\n" in conf.diff()


def test_a_file_that_is_no_configuration_is_refused():
    with pytest.raises(HandoverError, match="not XML"):
        Properties("<configuration>", "capacity-scheduler.xml")
    with pytest.raises(HandoverError, match="<configuratoin>"):
        Properties("<configuratoin/>", "capacity-scheduler.xml")


@pytest.mark.parametrize("scheduler", KUBERNETES)
def test_a_mig_layout_is_a_file_of_mig_parted_and_a_label_on_each_node(
    scheduler, hand, objects, faults
):
    handover = hand(scheduler, {}, {}, mig={"A100-80GB": ("1g.10gb", "2g.20gb", "4g.40gb")})
    data = objects(handover)["ConfigMap", "unstrand-mig-parted"]["data"]
    layout = yaml.safe_load(data["config.yaml"])
    assert faults("mig-parted", layout) == []
    [device] = layout["mig-configs"]["unstrand"]
    assert device["mig-devices"] == {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}
    device["mig-device"] = device.pop("mig-devices")
    assert faults("mig-parted", layout)
    labels = [run for run in handover.runs if "mig.config=unstrand" in run.command]
    assert len(labels) == 4


@pytest.mark.parametrize(
    ("profiles", "word"),
    [
        (("4g.40gb", "4g.40gb"), "do not fit"),
        (("3g.40gb", "3g.40gb", "1g.10gb", "1g.10gb"), "do not fit"),
        (("5g.40gb",), "has no profile 5g.40gb"),
    ],
)
def test_a_layout_that_the_hardware_cannot_hold_is_refused(profiles, word, hand):
    with pytest.raises(HandoverError, match=word):
        hand("slurm", {}, {}, mig={"A100-80GB": profiles})


def test_slurm_gets_the_driver_commands_gres_and_the_slices_that_today_has_come_back(hand):
    today = {"A100-80GB": ("7g.80gb",)}
    conf = "NodeName=gpu[1-4] Gres=gpu:a100:8\nPartitionName=low Nodes=gpu[1-4]\n"
    handover = hand("slurm", {}, {"sharing": "mig"}, files={"slurm.conf": conf}, mig_today=today,
                    mig={"A100-80GB": ("3g.40gb", "3g.40gb")})  # fmt: skip
    run = handover.runs[0]
    assert run.where == "gpu[1-4]"
    assert "-cgi 3g.40gb,3g.40gb -C" in run.command
    assert "-cgi 7g.80gb -C" in run.undo
    after = {edit.file: edit.after for edit in handover.edits}
    assert "Gres=gpu:3g.40gb:16" in after["slurm.conf"]
    assert after["gres.conf"] == "NodeName=gpu[1-4] AutoDetect=nvml\n"
    assert handover.complete


def test_what_a_scheduler_has_no_setting_for_is_said_with_its_reason(hand):
    expected = {
        Scheduler.SLURM: {"order": "sjf-limit", "placement": "fgd", "defrag": "hours"},
        Scheduler.KUEUE: {
            "backfill": "easy",
            "placement": "best-fit",
            "order": "largest-first",
            "preemption": "priority",
            "preemption.min_run_s": 1800,
        },
        Scheduler.VOLCANO: {"backfill": "easy", "order": "largest-first", "placement": "fgd"},
        Scheduler.KAI: {"backfill": "easy", "order": "largest-first", "placement": "random"},
        Scheduler.YARN: {"backfill": "easy", "placement": "fgd", "sharing": "mps"},
    }
    for scheduler, after in expected.items():
        handover = hand(scheduler, {"placement": "first-fit"}, after)
        refused = {one.key: one.reason for one in handover.cannot}
        assert set(after) - {"preemption"} <= set(refused), scheduler
        assert not handover.complete
        assert all(len(reason) > 10 for reason in refused.values())


def test_what_changes_beside_the_policy_is_refused_as_plainly(hand):
    for scheduler, wishes in (
        ("kueue", {"mem_mib_per_gpu": 60_000, "cpus_per_gpu": 8}),
        ("kai", {"headroom_gpus": 8}),
        ("yarn", {"cpus_per_gpu": 8, "headroom_gpus": 8, "mig": {"A100-80GB": ("7g.80gb",)}}),
    ):
        handover = hand(scheduler, {}, {}, **wishes)
        assert {one.key: one.after for one in handover.cannot} == wishes


def test_a_guard_that_was_set_before_its_part_is_switched_on_is_not_lost(hand):
    before = {"preemption.min_run_s": 1800}
    kueue = hand("kueue", before, {"preemption": "priority"})
    assert [(one.key, one.after) for one in kueue.cannot] == [("preemption.min_run_s", 1800)]
    slurm = hand("slurm", before, {"preemption": "priority"})
    assert slurm.complete
    [edit] = slurm.edits
    assert "+PreemptExemptTime=00:30:00" in edit.diff()
    deep = hand("slurm", {"backfill.depth": 90, "backfill.interval_s": 9}, {"backfill": "easy"})
    assert "bf_max_job_test=90,bf_interval=9" in deep.edits[0].after
    # A default that nobody chose is a remark: KAI preempts within a queue only.
    kai = hand("kai", {}, {"preemption": "priority"})
    assert kai.complete
    assert "preemption.reach" in {one.key for one in kai.remarks}


TEAMS = {"bio": 8, "chem": 12, "ml": 8}
CAPPED = {"quota.by": "account"} | {f"quota.queues.{t}.maximum": n for t, n in TEAMS.items()}
LENT = {
    "wider": {f"quota.queues.{team}.maximum": n + n // 2 for team, n in TEAMS.items()},
    "half": {f"quota.queues.{team}.maximum": "none" for team in TEAMS}
    | {f"quota.queues.{team}.guarantee": n for team, n in TEAMS.items()}
    | {f"quota.queues.{team}.lend": n // 2 for team, n in TEAMS.items()},
    "reclaim": {f"quota.queues.{team}.maximum": "none" for team in TEAMS}
    | {f"quota.queues.{team}.guarantee": n for team, n in TEAMS.items()}
    | {"quota.reclaim": "strict"},
}


@pytest.mark.parametrize("change", LENT)
@pytest.mark.parametrize("scheduler", KUBERNETES)
def test_limits_that_are_widened_or_lent_are_well_formed(scheduler, change, hand, objects, faults):
    for body in objects(hand(scheduler, CAPPED, LENT[change])).values():
        assert faults(scheduler, body) == []


def quota_of(kueue, name):
    groups = kueue["ClusterQueue", name]["spec"]["resourceGroups"]
    return groups[0]["flavors"][0]["resources"][0]


def test_wider_limits_mean_the_same_everywhere_and_leave_gpus_to_borrow(hand, objects):
    kueue = objects(hand("kueue", CAPPED, LENT["wider"]))
    assert quota_of(kueue, "chem") == {
        "name": "nvidia.com/gpu", "nominalQuota": 0, "borrowingLimit": 18,
    }  # fmt: skip
    # Nobody is guaranteed any of the 32 GPUs: without a queue that brings them in nothing runs.
    fresh = objects(hand("kueue", {}, CAPPED | LENT["wider"]))
    assert quota_of(fresh, "shared") == {"name": "nvidia.com/gpu", "nominalQuota": 32}
    assert objects(hand("volcano", CAPPED, LENT["wider"]))["Queue", "ml"]["spec"]["capability"] == {
        "nvidia.com/gpu": "12"
    }
    kai = objects(hand("kai", CAPPED, LENT["wider"]))["Queue", "ml"]["spec"]["resources"]["gpu"]
    assert kai["limit"] == 12
    capacity = properties(hand("yarn", CAPPED, LENT["wider"]), "capacity-scheduler.xml")
    assert capacity["yarn.scheduler.capacity.root.ml.maximum-capacity"] == "37.50"


def test_lent_limits_are_nominal_quotas_with_a_bound_on_lending(hand, objects):
    kueue = objects(hand("kueue", CAPPED, LENT["half"]))
    assert quota_of(kueue, "chem") == {
        "name": "nvidia.com/gpu", "nominalQuota": 12, "lendingLimit": 6,
    }  # fmt: skip
    assert quota_of(kueue, "shared")["nominalQuota"] == 32 - 28
    back = objects(hand("kueue", CAPPED, LENT["reclaim"]))
    assert back["ClusterQueue", "ml"]["spec"]["preemption"]["reclaimWithinCohort"] == "Any"
    volcano = objects(hand("volcano", CAPPED, LENT["reclaim"]))["Queue", "ml"]["spec"]
    assert volcano["deserved"] == {"nvidia.com/gpu": "8"}
    assert "capability" not in volcano
