"""One job, fast where it lies close and slow where it lies apart."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import FromReplay
from scheduler_advisor.advice.saving import joint_saving
from scheduler_advisor.messages import Words
from scheduler_advisor.report.forms import rendered
from scheduler_advisor.report.wording import sentence

NEAR, FAR, TWO_NODES = [("n1", 8), ("n2", 8)], [("n1", 8), ("n3", 8)], [("n1", 4), ("n2", 4)]


def bench(lab, sides, *, name="moe", user="kim", leaves=("leaf1", "leaf1", "leaf2")):
    """Runs one after the other: ``sides`` of (places, hours)."""
    for number, leaf in enumerate(leaves, 1):
        lab.node(f"n{number}", leaf=leaf)
    start = 0.0
    for number, (places, hours) in enumerate(sides):
        lab.run(f"{name}{number}", start=start, end=start + hours, name=name, user=user,
                measured=False,
                node=[(place, gpus, start) for place, gpus in places])  # fmt: skip
        start += hours + 1


def test_the_slow_runs_lay_under_two_switches_and_are_shown_beside_the_fast_ones(lab):
    bench(lab, [(NEAR, 4), (FAR, 8), (NEAR, 4.5), (FAR, 7), (NEAR, 5), (FAR, 7.5)])
    rec = lab.the("uneven_runs")
    # The others' median is 4.5 hours; the slow ones took 3.5 + 2.5 + 3 hours more, on 16 GPUs.
    assert rec.saving.gpu_hours == pytest.approx(16 * 9)
    assert rec.saving.cost.quantize(Decimal("0.01")) == Decimal(288)
    assert rec.current_gpu_hours == pytest.approx(16 * 22.5)
    assert rec.draft.variant == "switches"
    assert rec.draft.owner.user == "kim"
    figures = {figure.name: figure.value for figure in rec.draft.figures}
    assert (figures["fast_run"], figures["slow_run"]) == pytest.approx((4.5, 7.5))
    assert (figures["fast_switches"], figures["slow_switches"]) == (1, 2)
    assert (figures["fast_nodes"], figures["slow_nodes"]) == (2, 2)
    # A wait of three hours for such a place costs what a slow run takes longer.
    assert rec.draft.break_even.value == pytest.approx(3)
    assert "--switches=1@03:00:00" in rec.draft.commands["apply"]
    why = sentence(rec, "why", "USD", Words("en"))
    assert "3 runs took 7.5 h, such as on n1, n3 (2 leaf switches)" in why
    assert "the 3 others took 4.5 h, such as on n1, n2 (1 leaf switch)" in why


def test_the_report_says_it_in_every_language(lab):
    bench(lab, [(NEAR, 4), (FAR, 8)] * 3)
    report = lab.report()
    for language, said in (("en", "under more switches"), ("ko", "많은 스위치에 걸쳐")):
        page = rendered(report, "md", language).decode()
        assert said in page
        assert "n1, n3" in page


def test_where_no_switch_is_known_the_nodes_tell_it(lab):
    one = [("n1", 8)]
    bench(lab, [(one, 2), (TWO_NODES, 4)] * 3, leaves=(None, None))
    rec = lab.the("uneven_runs")
    assert rec.draft.variant == "nodes"
    assert rec.saving.gpu_hours == pytest.approx(3 * 2 * 8)
    assert rec.draft.commands["apply"].startswith("#SBATCH --nodes=1 ")


@pytest.mark.parametrize(
    "sides",
    [
        [(NEAR, 4), (FAR, 8), (NEAR, 4), (FAR, 8), (NEAR, 4)],  # two slow ones may be chance
        [(NEAR, 4), (FAR, 8), (NEAR, 8), (FAR, 8), (NEAR, 4), (NEAR, 4)],  # a near one is slow too
        [(NEAR, 4), (FAR, 8), (FAR, 4), (FAR, 8), (NEAR, 4), (FAR, 8)],  # a far one is fast
        [(NEAR, 4), (FAR, 5)] * 3,  # work itself varies as much
    ],
)
def test_what_its_placement_does_not_tell_is_no_advice(lab, sides):
    bench(lab, sides)
    assert lab.find("uneven_runs") == []


def test_nothing_is_compared_where_the_switches_of_some_nodes_are_unknown(lab):
    bench(lab, [(NEAR, 4), (FAR, 8)] * 3, leaves=("leaf1", "leaf1", None))
    assert lab.find("uneven_runs") == []


def test_runs_of_two_people_are_two_jobs(lab):
    bench(lab, [(NEAR, 4)] * 3, user="kim")
    bench(lab, [(FAR, 8)] * 3, user="ann", leaves=())
    assert lab.find("uneven_runs") == []


@pytest.mark.parametrize(("change", "counted"), [("topology", 16 * 9), ("order_fifo", 16 * 9 + 50)])
def test_a_replayed_change_of_placement_wins_the_same_hours_once(lab, change, counted):
    bench(lab, [(NEAR, 4), (FAR, 8), (NEAR, 4.5), (FAR, 7), (NEAR, 5), (FAR, 7.5)])
    draft = lab.the("uneven_runs").draft
    won = Part(claim="policy:c", day=draft.parts[0].day, micro_gpu_s=50 * 3_600_000_000, cost=None)
    own = FromReplay(grade="B", promises=True, gain="capacity", gpu_hours=(50.0, 40.0, 60.0),
                     cost=None, shifts=(), bounds=(), tried=(), handover={},
                     blast_gpus=(1.0, 1.0), worth_nodes=None)  # fmt: skip
    replayed = replace(draft, kind="policy_change", subject=change, parts=[won],
                       replay=own)  # fmt: skip
    assert joint_saving([draft, replayed], lab.window).gpu_hours == pytest.approx(counted)
