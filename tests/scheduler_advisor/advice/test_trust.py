"""The record of earlier predictions moves the rank and widens the interval."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler_advisor.advice.order import trust

AT = datetime(2026, 9, 1, tzinfo=UTC)


def judged(lab, kind, verdicts):
    with lab.store.work() as work:
        for number, verdict in enumerate(verdicts):
            work.append("advice_outcome", {
                "subject_id": [f"{kind}-{number}"], "cluster": ["c"], "kind": [kind], "ts": [AT],
                "changed_at": [AT], "what": ["x"], "unit": ["gpu_hours"], "predicted": [10.0],
                "predicted_low": [5.0], "predicted_high": [15.0], "realised": [1.0],
                "realised_low": [0.0], "realised_high": [2.0], "load_before": [1.0],
                "load_after": [1.0], "verdict": [verdict], "detail": [""],
            })  # fmt: skip


def two_kinds(lab):
    """Idle ends of one person's runs, and a session of another's that costs a little less."""
    lab.node("n1")
    lab.node("n2")
    for day in range(6):
        lab.run(f"a{day}", start=24 * day, end=24 * day + 20, gpus=4, user="ann",
                activity=lambda at, gpu, day=day: 0.9 if at < 24 * day + 4 else 0.0)  # fmt: skip
    lab.run("s", start=40, gpus=2, node="n2", user="bob",
            activity=lambda hour, gpu: 0.9 if hour < 42 else 0.0)  # fmt: skip
    return lab


def test_without_a_record_nothing_changes(lab):
    found = two_kinds(lab).advice().recommendations
    assert {trust(rec) for rec in found} == {1.0}
    assert all("earlier predictions" not in rec.saving.method for rec in found)


def test_a_kind_that_failed_is_read_later_and_its_interval_is_wider(lab):
    before = {rec.kind: rec for rec in two_kinds(lab).advice().recommendations}
    top = min(before.values(), key=lambda rec: rec.rank)
    judged(lab, top.kind, ["failed", "worse", "failed"])
    after = {rec.kind: rec for rec in lab.advice().recommendations}
    own = after[top.kind]
    assert trust(own) == pytest.approx(0.4)  # (0 + 1) / (3 + 2) over one half
    assert own.rank > top.rank
    assert "0 of 3 earlier predictions of this kind held here" in own.saving.method
    one, other = top.saving, own.saving
    assert other.cost == one.cost
    assert float(other.high - other.cost) == pytest.approx(float(one.high - one.cost) * 2.5)
    assert float(other.cost - other.low) == pytest.approx(float(one.cost - one.low) * 2.5)
    assert other.gpu_hours - other.gpu_hours_low == pytest.approx(
        (one.gpu_hours - one.gpu_hours_low) * 2.5
    )


def test_a_kind_that_held_keeps_its_interval(lab):
    before = {rec.kind: rec for rec in two_kinds(lab).advice().recommendations}
    top = min(before.values(), key=lambda rec: rec.rank)
    judged(lab, top.kind, ["kept"] * 8)
    own = next(rec for rec in lab.advice().recommendations if rec.kind == top.kind)
    assert trust(own) == 1.0
    assert (own.saving.low, own.saving.high) == (top.saving.low, top.saving.high)
    assert "8 of 8 earlier predictions" in own.saving.method
    assert own.rank == top.rank
