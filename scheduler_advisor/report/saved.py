"""Reports as rows of the store: written once, read by pages, the API and the metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from collector.store import Work
from scheduler_advisor.advice.recommendation import Recommendation, State
from scheduler_advisor.advice.saving import weekly_parts
from scheduler_advisor.advice.states import histories, state_at
from scheduler_advisor.messages import LANGUAGES, Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.json_form import iso, plain, recommendation_json, report_json


def save_report(work: Work, report: WeeklyReport) -> int:
    """Append the report, its recommendations and the parts of their amounts; returns the rows.

    Wants a transaction around it. Saving the same report again changes nothing.
    """
    if work.value("SELECT count(*) FROM advice_report WHERE report_id = ?", [report.report_id]):
        return 0
    body = {language: report_json(report, language) for language in LANGUAGES}
    work.append(
        "advice_report",
        {"report_id": [report.report_id], "cluster": [report.cluster], "ts": [report.made_at],
         "since": [report.window.since], "until": [report.window.until],
         "time_zone": [report.window.time_zone], "currency": [report.currency],
         "coverage_ratio": [report.coverage_ratio], "price_version": [report.prices.version],
         "goals_version": [report.goals_version],
         "body": [json.dumps(body, default=plain, ensure_ascii=False)]},
    )  # fmt: skip
    recs = report.advice.recommendations
    if recs:
        work.append("recommendation", _columns([_row(rec, report) for rec in recs]))
    parts = [row for rec in recs for row in _parts(rec, report)]
    if parts:
        work.append("recommendation_part", _columns(parts))
    return 1 + len(recs) + len(parts)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _row(rec: Recommendation, report: WeeklyReport) -> dict[str, Any]:
    body = {language: recommendation_json(rec, report, Words(language)) for language in LANGUAGES}
    saving = rec.saving
    return {
        "report_id": report.report_id, "recommendation_id": rec.id, "kind": rec.kind,
        "cluster": rec.draft.cluster, "subject": rec.draft.subject,
        "owner": rec.draft.owner.team or rec.draft.owner.user, "rank": rec.rank,
        "gpu_hours": saving.gpu_hours, "cost": _six(saving.cost), "cost_low": _six(saving.low),
        "cost_high": _six(saving.high), "currency": report.currency, "basis": saving.basis.value,
        "exclusive_group": rec.exclusive_group, "expires_at": rec.expires_at,
        "body": json.dumps(body, default=plain, ensure_ascii=False),
    }  # fmt: skip


def _six(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else amount.quantize(Decimal("0.000001"))


def _parts(rec: Recommendation, report: WeeklyReport) -> list[dict[str, Any]]:
    """The rows that add up to the saving per week, and those of what it costs in the window."""
    draft = rec.draft
    amounts = {
        "saving": weekly_parts(draft, report.window),
        "current": draft.parts if draft.current is None else draft.current,
    }
    return [
        {"report_id": report.report_id, "recommendation_id": rec.id, "amount": amount,
         "claim": part.claim, "cluster": part.cluster, "run_id": part.run_id, "node": part.node,
         "gpu_model": part.gpu_model, "day": part.day, "micro_gpu_s": part.micro_gpu_s,
         "cost": _six(part.cost), "cash": part.cash}
        for amount, parts in amounts.items() for part in parts
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenSaving:
    """Weekly savings of the newest report that are still open, of one kind and basis."""

    kind: str
    basis: str
    currency: str | None
    recommendations: int
    gpu_hours: float
    cost: Decimal | None


def newest_report(work: Work) -> dict[str, Any] | None:
    """The newest report's row of any scope, or None."""
    rows = work.rows("SELECT * FROM advice_report ORDER BY ts DESC, report_id LIMIT 1")
    return rows[0] if rows else None


def recommendations_of(
    work: Work, report_id: str, at: datetime, language: str = "en"
) -> list[dict[str, Any]]:
    """A report's recommendations as JSON, with the states of now in place of those of then."""
    history = histories(work)
    realised = _realised(work)
    found = []
    for row in work.rows(
        "SELECT recommendation_id, body FROM recommendation WHERE report_id = ? ORDER BY rank",
        [report_id],
    ):
        body: dict[str, Any] = json.loads(row["body"])[language]
        own = history.get(row["recommendation_id"], ())
        body["state"] = state_at(own, at).value
        body["realised"] = realised.get(row["recommendation_id"])
        body["history"] = [
            {"ts": iso(c.ts), "state": c.state.value, "actor": c.actor, "reason": c.reason,
             "until": iso(c.until)}
            for c in own
        ]  # fmt: skip
        found.append(body)
    return found


def _realised(work: Work) -> dict[str, dict[str, Any]]:
    """The newest judgement of each change that was advised, by recommendation."""
    rows = work.rows(
        "SELECT * FROM advice_outcome QUALIFY row_number() OVER "
        "(PARTITION BY subject_id ORDER BY ts DESC) = 1"
    )
    return {
        row["subject_id"]: {
            row["unit"]: row["realised"], "interval_80": [row["realised_low"],
                                                          row["realised_high"]],
            "predicted": row["predicted"], "verdict": row["verdict"], "detail": row["detail"],
            "changed_at": iso(row["changed_at"]), "kind": "observed", "per": "week",
        }
        for row in rows
    }  # fmt: skip


def rows_behind(work: Work, recommendation_id: str, amount: str = "saving") -> list[dict[str, Any]]:
    """What the newest report's ``saving`` or ``current`` amount adds up from, by run, node, day."""
    return work.rows(
        "SELECT p.claim, p.cluster, p.run_id, p.node, p.gpu_model, p.day, "
        "p.micro_gpu_s / 3.6e9 AS gpu_hours, p.cost, p.cash FROM recommendation_part p "
        "JOIN advice_report r ON r.report_id = p.report_id "
        "WHERE p.recommendation_id = $1 AND p.amount = $2 "
        "AND r.ts = (SELECT max(a.ts) FROM advice_report a JOIN recommendation c "
        "ON c.report_id = a.report_id WHERE c.recommendation_id = $1) "
        "ORDER BY p.day, p.claim, p.node",
        [recommendation_id, amount],
    )


def open_savings(work: Work, at: datetime) -> list[OpenSaving]:
    """By kind and basis, over the newest report of each scope; overlaps are not taken out."""
    history = histories(work)
    sums: dict[tuple[str, str, str | None], list[dict[str, Any]]] = {}
    for row in work.rows(
        "SELECT c.* FROM recommendation c JOIN advice_report r ON r.report_id = c.report_id "
        "WHERE r.report_id = (SELECT arg_max(report_id, ts) FROM advice_report) ORDER BY c.rank"
    ):
        state = state_at(history.get(row["recommendation_id"], ()), at)
        if state in (State.NEW, State.ACCEPTED) and row["basis"] != "none":
            sums.setdefault((row["kind"], row["basis"], row["currency"]), []).append(row)
    return [
        OpenSaving(
            kind=kind, basis=basis, currency=currency, recommendations=len(rows),
            gpu_hours=sum(row["gpu_hours"] for row in rows),
            cost=None if any(row["cost"] is None for row in rows)
            else sum((row["cost"] for row in rows), Decimal(0)),
        )
        for (kind, basis, currency), rows in sums.items()
    ]  # fmt: skip
