"""Fidelity, diagnosis and candidates of the replays as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scheduler_advisor.messages import Words

if TYPE_CHECKING:
    from scheduler_advisor.calibration.calibrate import Calibration
    from scheduler_advisor.replayed import Replayed


def fidelity_json(replays: Sequence[Replayed], words: Words) -> list[dict[str, Any]] | None:
    """One entry per cluster that was replayed; None where none was."""
    found = [
        {"cluster": each.cluster, **calibration_json(each.calibration, words)}
        for each in replays
        if each.calibration is not None
    ]
    return found or None


def calibration_json(found: Calibration, words: Words | None = None) -> dict[str, Any]:
    """Grade, marks, policy, mismatches and what was tried, as plain values."""
    from scheduler_advisor.engine.policy_text import to_toml

    words = words or Words("en")
    comparison = found.found
    return {
        "grade": found.grade.value, "promises": found.grade.promises,
        "ungraded": None if found.ungraded is None else found.ungraded.value,
        "contested_jobs": comparison.contested if comparison else None,
        "policy": to_toml(found.policy), "policy_source": found.in_force.source,
        "settings": dict(found.in_force.read), "remarks": list(found.in_force.remarks),
        "marks": [
            {"measure": mark.measure, "value": round(mark.value, 4), "grade": mark.grade.value,
             "limits": list(mark.limits), "reason": mark.reason}
            for mark in found.marks
        ],
        "jobs": comparison.jobs if comparison else None,
        "never_started": comparison.never_started if comparison else None,
        "mean_wait_s": None if comparison is None else {
            "observed": round(comparison.real_mean_wait_s, 1),
            "modelled": round(comparison.replay_mean_wait_s, 1)},
        "wait_error_s": None if comparison is None else {
            "p50": round(comparison.error_p50_s, 1), "p95": round(comparison.error_p95_s, 1)},
        "rank_correlation": None if comparison is None else {
            "waits": round(comparison.wait_rank_correlation, 4),
            "starts": round(comparison.start_rank_correlation, 4)},
        "makespan_s": None if comparison is None else {
            "observed": comparison.real_makespan_s, "modelled": comparison.replay_makespan_s},
        "occupancy": None if comparison is None else {
            "observed": list(comparison.real_occupancy),
            "modelled": list(comparison.replay_occupancy)},
        "classes": _classes(found),
        "mismatches": mismatches_json(found, words),
        "tried": [
            {"order": t.policy.order.value, "backfill": t.policy.backfill.value,
             "placement": t.policy.placement.value, "score": round(t.score, 4),
             "grade": t.grade.value}
            for t in found.tried
        ],
    }  # fmt: skip


def _classes(found: Calibration) -> list[dict[str, Any]]:
    if found.found is None:
        return []
    return [
        {"queue": c.queue, "size": c.size, "jobs": c.jobs,
         "observed_s": [round(v) for v in (c.real_mean_s, c.real_p50_s, c.real_p95_s)],
         "modelled_s": [round(v) for v in (c.replay_mean_s, c.replay_p50_s, c.replay_p95_s)],
         "error_p50_s": round(c.error_p50_s), "error_p95_s": round(c.error_p95_s)}
        for c in found.found.classes
    ]  # fmt: skip


def mismatches_json(found: Calibration, words: Words) -> list[dict[str, Any]]:
    """The largest differences, each with its likely cause in words."""
    return [
        {"queue": each.fit.queue, "size": each.fit.size, "jobs": each.fit.jobs,
         "observed_mean_s": round(each.fit.real_mean_s),
         "modelled_mean_s": round(each.fit.replay_mean_s), "cause": each.cause.value,
         "evidence": round(each.evidence, 3),
         "text": words.say(f"cause.{each.cause.value}", evidence=each.evidence)}
        for each in found.mismatches
    ]  # fmt: skip


def bottleneck_json(replays: Sequence[Replayed]) -> list[dict[str, Any]]:
    """What holds each cluster back, from what was observed."""
    return [
        {
            "cluster": each.cluster, "leading": each.diagnosis.leading.value, "kind": "observed",
            "findings": [
                {"bottleneck": f.bottleneck.value, "value": f.value, "unit": f.threshold.unit,
                 "threshold": f.threshold.value, "severity": round(f.severity, 2),
                 "reason": f.threshold.reason}
                for f in each.diagnosis.findings
            ],
            "blocked_gpus": {
                "shape": round(each.diagnosis.blocked.shape, 3),
                "cpu_mem": round(each.diagnosis.blocked.cpu_mem, 3),
                "behind": round(each.diagnosis.blocked.behind, 3),
                "gang": round(each.diagnosis.blocked.gang, 3),
                "quota": round(each.diagnosis.blocked.quota, 3),
            },
        }
        for each in replays
        if each.diagnosis is not None
    ]  # fmt: skip
