"""Samples that name no run speak for who holds their GPU or all of their node, whenever that is."""

from __future__ import annotations

import pytest

PAUSES = [(0.0, 1.25), (1.75, 2.5)]
HELD = [(1.25, 1.75), (2.5, 3.0)]


def measured(site, uuid, node="n1"):
    """By the minute over three hours: idle in the pauses, half busy between them."""
    for since, until in sorted(PAUSES + HELD):
        site.measure(0.5 if (since, until) in HELD else 0.0, since, until, node, uuid)


@pytest.mark.parametrize("later", [False, True], ids=["built at once", "hour by hour"])
def test_a_node_that_was_idle_first_is_measured_for_who_holds_all_of_it_then(site, later):
    site.hours = 3
    site.node(gpus=2).known()
    for since, until in HELD:
        site.run(gpus=2, since=since, until=until)
    for uuid in ("g0", "g1"):
        measured(site, uuid)
    if later:
        site.hours = 1
        site.built()
        site.hours = 3
        site.facts, site.samples = [], []
    site.built()
    found = site.hours_of()
    assert {name: found[name] for name in ("used", "allocated_idle")} == {
        "used": 1.0,
        "allocated_idle": 1.0,
    }
    assert "allocated_unmeasured" not in found


def test_a_gpu_that_was_idle_first_is_measured_for_who_holds_it_by_name_then(site):
    site.hours = 3
    site.node(gpus=2).known()
    for since, until in HELD:
        site.run(gpus=1, since=since, until=until, uuids=["g1"])
    for uuid in ("g0", "g1"):
        measured(site, uuid)
    site.built()
    found = site.hours_of()
    assert (found["used"], found["allocated_idle"]) == (0.5, 0.5)
    assert "allocated_unmeasured" not in found
