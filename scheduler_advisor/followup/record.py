"""The judgements as they stand in the store; light, for pages and metrics."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from collector.store import Work
from scheduler_advisor.followup.verdict import Confidence, confidences

if TYPE_CHECKING:
    from scheduler_advisor.followup.follow import Outcome


def save_outcomes(work: Work, found: list[Outcome], ts: datetime) -> int:
    """Append the judgements; the newest of a subject counts, the older ones stay."""
    rows = [_row(each, ts) for each in found]
    if rows:
        work.append("advice_outcome", {name: [row[name] for row in rows] for name in rows[0]})
    return len(rows)


def _row(each: Outcome, ts: datetime) -> dict[str, Any]:
    change, found, predicted = each.change, each.found, each.change.predicted
    return {
        "subject_id": change.subject_id, "cluster": change.cluster, "kind": change.kind, "ts": ts,
        "changed_at": change.at, "what": change.what, "unit": change.unit,
        "predicted": predicted.point if predicted else None,
        "predicted_low": predicted.low if predicted else None,
        "predicted_high": predicted.high if predicted else None,
        "realised": found.gpu_hours, "realised_low": found.low, "realised_high": found.high,
        "load_before": found.load_before, "load_after": found.load_after,
        "verdict": each.verdict.value,
        "detail": f"{found.days_before} days before, {found.days_after} after",
    }  # fmt: skip


def outcomes(work: Work) -> list[dict[str, Any]]:
    """The newest judgement of every change, the latest change first."""
    return work.rows(
        "SELECT * FROM advice_outcome QUALIFY row_number() OVER "
        "(PARTITION BY subject_id ORDER BY ts DESC) = 1 ORDER BY changed_at DESC, subject_id"
    )


def confidence(work: Work) -> list[Confidence]:
    """By kind of change, from the newest judgements."""
    return confidences([(row["kind"], row["verdict"]) for row in outcomes(work)])
