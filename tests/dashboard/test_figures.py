"""Sums and ratios over report rows."""

from __future__ import annotations

from decimal import Decimal

from dashboard.figures import class_sums, cost_per_used_hour, row_efficiency
from dashboard.palette import CLASSES


def rows(cost="2", **gpu_hours):
    return [
        {
            "class": name,
            "gpu_hours": Decimal(value),
            "cost": None if cost is None else Decimal(cost),
        }
        for name, value in gpu_hours.items()
    ]


def test_ratios_are_those_of_the_ledger():
    sums = class_sums(rows(used=3, allocated_idle=1, stranded_cpu=2, gang_wait=1, failed=1))
    assert sums.installed == 8
    assert sums.occupancy == 0.5
    assert sums.efficiency == 0.75
    assert sums.goodput == 0.375
    assert sums.stranded_hours == 2


def test_unmeasured_time_is_not_idle_time():
    assert class_sums(rows(allocated_unmeasured=5)).efficiency is None


def test_without_a_price_there_are_hours_and_no_money():
    sums = class_sums(rows(cost=None, used=3))
    assert sums.cost is None
    assert sums.money(CLASSES) is None
    assert sums.amount("used") == 3


def test_a_row_that_used_nothing_has_no_cost_per_used_hour():
    row = {
        "cost": Decimal(5),
        "used_gpu_hours": Decimal(0),
        "lost_gpu_hours": Decimal(0),
        "allocated_idle_gpu_hours": Decimal(2),
    }
    assert cost_per_used_hour(row) is None
    assert row_efficiency(row) == 0.0
