from __future__ import annotations

from decimal import Decimal

import pytest

from scheduler_advisor.advice.draft import Duty
from scheduler_advisor.goals import Goals
from scheduler_advisor.handover.slice_rule import slice_for


def test_one_job_that_took_the_cpus_answers_for_the_gpus_that_had_none(lab):
    lab.node(cpus=64)
    lab.run("7", start=0, end=20, gpus=1, cpus=64, mem_gib=32, user="dan", name="render")
    rec = lab.the("over_request")
    # 7 GPUs without a CPU for 20 hours.
    assert rec.draft.variant == "cpu"
    assert rec.saving.gpu_hours == pytest.approx(140)
    assert rec.saving.cost == Decimal(280)
    assert rec.draft.owner.user == "dan"
    assert rec.draft.params["fair"] == 8
    assert rec.draft.commands["apply"] == "#SBATCH --cpus-per-gpu=8"


def test_one_job_with_all_the_memory_is_somebodys_choice_not_a_default(lab):
    lab.node(mem_gib=512)
    lab.run("7", start=0, end=20, gpus=1, cpus=4, mem_gib=512, user="dan")
    assert lab.the("over_request").draft.variant == "mem"
    assert lab.find("whole_node_memory") == []


def test_many_jobs_with_a_whole_nodes_memory_are_a_default_and_the_platforms_to_change(lab):
    for number in range(1, 4):
        lab.node(f"n{number}", mem_gib=512)
        lab.run(str(number), start=0, end=10, gpus=1, cpus=4, mem_gib=512, node=f"n{number}",
                user=f"user{number}")  # fmt: skip
    rec = lab.the("whole_node_memory")
    # 3 nodes with 7 GPUs that no memory was left for, for 10 hours.
    assert rec.saving.gpu_hours == pytest.approx(210)
    assert rec.draft.duty is Duty.PLATFORM
    assert rec.draft.params["jobs"] == 3
    assert sorted(rec.draft.examples) == ["1", "2", "3"]
    # 95% of 512 GiB over 8 GPUs is 60 GiB: the rest is the operating system's.
    assert "+DefMemPerGPU=61440\n" in rec.draft.commands["apply"]
    assert "scontrol reconfigure" in rec.draft.commands["rollback"]


def test_the_default_and_its_causers_win_back_the_same_gpus_once(lab):
    for number in range(1, 4):
        lab.node(f"n{number}", mem_gib=512)
        lab.run(str(number), start=0, end=10, gpus=1, cpus=4, mem_gib=512, node=f"n{number}",
                user="dan")  # fmt: skip
    advice = lab.advice()
    kinds = {rec.kind: rec for rec in advice.recommendations}
    assert kinds["over_request"].exclusive_group == kinds["whole_node_memory"].exclusive_group
    assert advice.joint.gpu_hours == pytest.approx(210)


def test_three_small_jobs_at_the_same_hours_fit_on_one_gpu(lab):
    lab.node()
    for first, name in enumerate(("detect", "layout", "read")):
        lab.run(name, start=10, end=70, first=first, activity=0.25, name=name, user="ito",
                mem_used=9000)  # fmt: skip
    rec = lab.the("share_gpu")
    # 3 x 60 h held, one GPU would do: two thirds are saved.
    assert rec.saving.gpu_hours == pytest.approx(120)
    assert rec.saving.cost.quantize(Decimal("0.01")) == Decimal(240)
    assert rec.draft.params["jobs"] == 3
    assert rec.draft.break_even.value == pytest.approx(2 / 3)
    assert rec.risk == 3
    # 9,000 MiB fit into a slice of 10 GB with a tenth to spare: the rule gives it by itself.
    rule = rec.draft.commands["apply"]
    assert 'local small = { ["detect"] = true, ["layout"] = true, ["read"] = true }' in rule
    assert 'job.tres_per_node = "gres/gpu:1g.10gb:1"' in rule
    assert "job_submit.lua" in rec.draft.commands["rollback"]
    assert "kind: MutatingAdmissionPolicy\n" in rule
    assert "nvidia.com/mig-1g.10gb" in rule
    assert "kubectl delete -f small-jobs-on-slices.yaml" in rec.draft.commands["rollback"]


@pytest.mark.parametrize(
    ("model", "total_gib", "used_gib", "slice_"),
    [
        ("A100", 40, 4.4, "1g.5gb"), ("A100", 40, 4.6, "1g.10gb"), ("A100", 80, 4.6, "1g.10gb"),
        ("A100", 40, 17.9, "3g.20gb"), ("A100", 40, 20, None), ("T4", 16, 1, None),
    ],
)  # fmt: skip
def test_a_small_job_gets_the_smallest_slice_that_holds_it(model, total_gib, used_gib, slice_):
    found = slice_for(model, total_gib * 1024, used_gib * 1024)
    assert (found.name if found else None) == slice_


def test_small_jobs_one_after_the_other_have_nothing_to_share(lab):
    lab.node()
    for place, name in enumerate(("a", "b", "c")):
        lab.run(name, start=place * 50, end=place * 50 + 50, activity=0.25, mem_used=9000)
    assert lab.find("share_gpu") == []


def test_small_jobs_that_do_not_fit_in_memory_together_stay_apart(lab):
    lab.node()
    for first in range(3):
        lab.run(str(first), start=0, end=60, first=first, activity=0.2, mem_used=19_000)
    assert lab.find("share_gpu") == []  # 46% each: over the threshold of 45%


def test_work_that_must_never_share_is_left_alone(lab):
    lab.node()
    for first in range(3):
        lab.run(str(first), start=0, end=60, first=first, activity=0.25, mem_used=9000)
    goals = Goals.model_validate({"never": {"share": [{"team": "team-red"}]}})
    assert lab.find("share_gpu", goals) == []


def test_small_jobs_of_two_people_are_not_put_together(lab):
    lab.node()
    lab.run("1", start=0, end=60, first=0, activity=0.25, mem_used=9000, user="ann")
    lab.run("2", start=0, end=60, first=1, activity=0.25, mem_used=9000, user="bob")
    assert lab.find("share_gpu") == []


def spread_small_jobs(lab, nodes):
    """Small jobs go to the emptiest node while a whole-node job waits."""
    for number in range(nodes):
        lab.node(f"n{number}")
    for job in range(24):
        lab.run(f"s{job}", start=job * 5, end=job * 5 + 20, node=f"n{job % nodes}",
                first=job // nodes % 8, user="eve", account="blue", measured=False)  # fmt: skip
    lab.run("big", start=None, submit=0, gpus=8, user="kim", node="n0")


def test_spread_small_jobs_beside_a_waiting_whole_node_job_are_fragmentation(lab):
    spread_small_jobs(lab, nodes=4)
    rec = lab.the("fragmentation")
    assert rec.draft.owner.team == "team-blue"
    assert rec.draft.duty is Duty.PLATFORM
    # Starts are at 0, 5, 10, ... on nodes 0, 1, 2, 3, 0, ...: four jobs run at any time, one on
    # each node; only the first finds all nodes empty, the other 23 could have joined one.
    assert rec.draft.params["avoidable"] == pytest.approx(23 / 24)
    # Node k is held from 5k to 120 + 5k without a break: 4 x 120 h x 7 free GPUs.
    assert rec.current_gpu_hours == pytest.approx(4 * 120 * 7)
    # One job of 8 waits, and all four nodes are in use from 15 to 120: it wants 8 of the 28.
    assert rec.saving.gpu_hours == pytest.approx(8 * 105)
    assert rec.saving.cost == Decimal(8 * 105 * 2)


# Of four nodes all are in use from 15 to 120; all but one also from 10 to 15 and from 120 to 125.
@pytest.mark.parametrize(
    ("waiting", "won"),
    [
        ([1], 8 * 105), ([1, 1], 16 * 105), ([2], 16 * 115), ([1, 1, 1], 24 * 105),
        ([1, 1, 1, 1], 24 * 105), ([2, 2], 16 * 115), ([2, 1, 1], 24 * 105 + 16 * 10), ([4], None),
    ],
)  # fmt: skip
def test_packing_wins_what_jobs_that_wait_ask_for_and_find_room_for(lab, waiting, won):
    spread_small_jobs(lab, nodes=4)
    lab.facts[:] = [fact for fact in lab.facts if getattr(fact, "job_id", None) != "big"]
    for number, nodes in enumerate(waiting):
        lab.run(f"w{number}", start=None, submit=0, node=[("n0", 8, 0)] * nodes)
    found = lab.find("fragmentation")
    assert [rec.saving.gpu_hours for rec in found] == ([] if won is None else [pytest.approx(won)])


def test_a_jobs_wish_counts_on_the_nodes_of_its_queue_alone(lab):
    spread_small_jobs(lab, nodes=4)
    for number in range(4):
        lab.node(f"other{number}", partitions=("other",))
        lab.run(f"o{number}", start=0, end=167, node=f"other{number}", gpus=4, queue="other",
                measured=False)  # fmt: skip
    lab.run("elsewhere", start=None, submit=0, gpus=8, queue="other")
    rec = lab.the("fragmentation")
    assert rec.current_gpu_hours == pytest.approx(4 * 120 * 7 + 4 * 167 * 4)
    there = sum(part.micro_gpu_s for part in rec.draft.parts if part.node.startswith("other"))
    assert there / 3.6e9 == pytest.approx(8 * 167)
    assert rec.saving.gpu_hours == pytest.approx(8 * 105 + 8 * 167)


def test_a_place_that_stood_free_is_no_fault_of_the_packing(lab):
    spread_small_jobs(lab, nodes=4)
    lab.node("empty")
    assert lab.find("fragmentation") == []


def test_spread_small_jobs_hurt_nobody_when_no_big_job_waits(lab):
    spread_small_jobs(lab, nodes=4)
    lab.facts[:] = [fact for fact in lab.facts if getattr(fact, "job_id", None) != "big"]
    assert lab.find("fragmentation") == []


def test_a_big_job_that_waits_for_days_beside_free_gpus_is_named(lab):
    for name in ("n1", "n2"):
        lab.node(name)
        lab.run(f"s-{name}", start=0, end=100, node=name, gpus=4, user="eve", measured=False)
    lab.run("gang", start=100, end=160, submit=10, node=[("n1", 8, 100)], user="kim", name="moe",
            measured=False)  # fmt: skip
    rec = lab.the("gang_wait")
    assert rec.draft.owner.user == "kim"
    assert rec.draft.params["waited_hours"] == pytest.approx(90)
    # 8 GPUs stood free, 4 on each node, in the full hours from 11 to 99.
    assert rec.draft.params["enough_hours"] == 88
    assert rec.current_gpu_hours == pytest.approx(88 * 8)


def test_a_node_that_names_no_queues_serves_them_all(lab):
    for name in ("n1", "n2"):
        lab.node(name, partitions=())
        lab.run(f"s-{name}", start=0, end=100, node=name, gpus=4, user="eve", measured=False)
    lab.run("gang", start=100, end=160, submit=10, node=[("n1", 8, 100)], measured=False)
    rec = lab.the("gang_wait")
    assert rec.draft.params["free"] == pytest.approx(8)
    assert rec.draft.params["enough_hours"] == 88


def test_a_big_job_that_waits_because_the_cluster_is_full_is_not_said_to_wait_beside_free_gpus(lab):
    lab.node()
    lab.run("s", start=0, end=100, gpus=4, user="eve", measured=False)
    lab.run("gang", start=100, end=160, submit=10, gpus=8, measured=False)
    assert lab.find("gang_wait") == []


def test_a_big_job_that_waits_although_it_has_a_place_is_held_by_something_else(lab):
    for name in ("n1", "n2", "n3"):
        lab.node(name)
    lab.run("s", start=0, end=100, node="n1", gpus=4, user="eve", measured=False)
    lab.run("gang", start=100, end=160, submit=10, measured=False,
            node=[("n1", 8, 100), ("n2", 8, 100)])  # fmt: skip
    assert lab.find("gang_wait") == []  # n2 and n3 were free all the time


def test_what_a_class_says_that_waiting_costs_is_in_the_evidence(lab):
    for name in ("n1", "n2"):
        lab.node(name)
        lab.run(f"s-{name}", start=0, end=100, node=name, gpus=4, user="eve", measured=False)
    lab.run("gang", start=100, end=160, submit=10, node="n1", gpus=8, name="moe", measured=False)
    goals = Goals.model_validate(
        {"class": [{"name": "urgent", "match": {"job_name": "moe"},
                    "waiting_cost_per_hour": "3.50"}]}
    )  # fmt: skip
    figures = {figure.name: figure for figure in lab.the("gang_wait", goals).draft.figures}
    assert figures["waiting_cost"].value == pytest.approx(315)  # 90 hours
    assert figures["waiting_cost"].kind == "modelled"
