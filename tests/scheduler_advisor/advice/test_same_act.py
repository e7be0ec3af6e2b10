"""Advice of a rule and a replayed change that are one act are never added."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Draft, Duty, FromReplay, Owner
from scheduler_advisor.advice.same_act import same_act
from scheduler_advisor.advice.saving import joint_saving
from scheduler_advisor.window import Window

UNTIL = datetime(2026, 11, 2, tzinfo=UTC)
WEEK = Window(UNTIL - timedelta(days=7), UNTIL)


def draft(kind, subject, claim, gpu_hours, *, replay=None):
    part = Part(claim=claim, day=date(2026, 10, 28), micro_gpu_s=round(gpu_hours * 3.6e9),
                cost=None, cash=False, cluster="c")  # fmt: skip
    return Draft(kind=kind, cluster="c", subject=subject, owner=Owner(), duty=Duty.PLATFORM,
                 params={}, parts=[part], replay=replay)  # fmt: skip


def change(name, gpu_hours):
    amount = (gpu_hours, gpu_hours / 2, gpu_hours * 2)
    own = FromReplay(grade="B", promises=True, gain="capacity", gpu_hours=amount, cost=None,
                     shifts=(), bounds=(), tried=(), handover={}, blast_gpus=(1.0, 1.0),
                     worth_nodes=None)  # fmt: skip
    return draft("policy_change", name, "policy:c", gpu_hours, replay=own)


DEFAULT = draft("whole_node_memory", "memory default", "run:c/1", 70.0)


def test_a_memory_default_and_the_replayed_cap_on_memory_are_counted_once():
    cap = change("cap_memory", 20.0)
    assert same_act(DEFAULT, cap)
    assert joint_saving([DEFAULT, cap], WEEK).gpu_hours == pytest.approx(70)


def test_a_change_that_does_more_than_the_rule_is_added():
    assert joint_saving([DEFAULT, change("order_largest", 20.0)], WEEK).gpu_hours == 90
    more = change("cap_memory + order_largest", 20.0)
    assert joint_saving([DEFAULT, more], WEEK).gpu_hours == pytest.approx(90)


def test_of_another_cluster_it_is_another_act():
    cap = replace(change("cap_memory", 20.0), cluster="d")
    assert not same_act(DEFAULT, cap)
    assert joint_saving([DEFAULT, cap], WEEK).gpu_hours == pytest.approx(90)
