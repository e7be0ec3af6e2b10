"""The report as JSON: the contract of the command line, the API and the store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Any

from scheduler_advisor.advice.advise import Advice
from scheduler_advisor.advice.draft import FromReplay
from scheduler_advisor.advice.recommendation import Recommendation, money
from scheduler_advisor.messages import Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.measured_json import measurements_json
from scheduler_advisor.report.replay_json import bottleneck_json, fidelity_json
from scheduler_advisor.report.sureness import sure_text, worse_text
from scheduler_advisor.report.wording import PARTS, kind_name, reason_text, said, sentence


def report_json(report: WeeklyReport, language: str = "en") -> dict[str, Any]:
    """Everything the report says; sentences in ``language``, money as strings."""
    words = Words(language)
    since, until = report.window.since, report.window.until
    return {
        "report_id": report.report_id, "made_at": iso(report.made_at), "cluster": report.cluster,
        "demo": report.demo, "language": language,
        "window": {"since": iso(since), "until": iso(until), "time_zone": report.window.time_zone},
        "currency": report.currency, "coverage_ratio": report.coverage_ratio,
        "enough_data": report.enough,
        "price_book": {"version": report.prices.version, "kinds": list(report.prices.kinds),
                       "models": dict(report.prices.models)},
        "goals": {"given": report.goals.given, "first": report.goals.first,
                  "version": report.goals_version},
        "classes": [
            {"class": entry.name, "gpu_hours": round(entry.gpu_hours, 4),
             "cost": money(entry.cost), "kind": "observed"}
            for entry in report.classes
        ],
        "total": {"gpu_hours": round(report.installed_gpu_hours, 4), "cost": money(report.cost)},
        "diagnosis": [
            {"bottleneck": entry.name, "gpu_hours": round(entry.gpu_hours, 4),
             "cost": money(entry.cost), "kind": "observed"}
            for entry in report.diagnosis
        ],
        "recommendations": [
            recommendation_json(rec, report, words) for rec in report.advice.recommendations
        ],
        "joint_saving": report.advice.joint.as_json(report.currency),
        **_not_advised(report.advice, words),
        "measurements": measurements_json(report.measurements, report.window),
        "fidelity": fidelity_json(report.replays, words),
        "bottleneck": bottleneck_json(report.replays),
    }  # fmt: skip


def _not_advised(advice: Advice, words: Words) -> dict[str, Any]:
    return {
        "not_measured": [
            {"kind": entry.kind, "missing": list(entry.missing)} for entry in advice.not_measured
        ],
        "not_recommended": [
            {"kind": entry.kind, "subject": entry.subject, "reason": entry.reason,
             "params": {name: said(value, words) for name, value in entry.params.items()},
             "text": reason_text(entry, words)}
            for entry in advice.not_recommended
        ],
    }  # fmt: skip


def recommendation_json(rec: Recommendation, report: WeeklyReport, words: Words) -> dict[str, Any]:
    """One recommendation with every field of the contract; fidelity and realised stay empty."""
    draft, window = rec.draft, report.window
    texts = {part: sentence(rec, part, report.currency, words) for part in PARTS}
    defaults = [assumption.default for assumption in draft.assumptions]
    return {
        "id": rec.id, "rank": rec.rank, "kind": rec.kind, "kind_name": kind_name(rec.kind, words),
        "title": texts["title"], "why": texts["why"], "action": texts["do"],
        "scope": {"cluster": draft.cluster, "subject": draft.subject},
        "owner": {"team": draft.owner.team, "user": draft.owner.user, "duty": draft.duty.value},
        "evidence": {
            "window": {"since": iso(window.since), "until": iso(window.until)},
            "figures": [figure.as_json() for figure in draft.figures],
            "examples": [
                {"job_id": job, "command": f"unstrand job {job}"} for job in draft.examples
            ],
            "sample_count": draft.samples,
            "coverage_ratio": draft.coverage_ratio or report.coverage_ratio,
            "queries": [f"unstrand advise rows {rec.id}",
                        *sorted({f.command for f in draft.figures if f.command})],
        },
        "current_cost": {"per": "window", "gpu_hours": round(rec.current_gpu_hours, 2),
                         "cost": money(rec.current_cost), "currency": report.currency,
                         "kind": "observed"},
        "saving": {**rec.saving.as_json(report.currency), "price_version": report.prices.version,
                   "price_kinds": list(report.prices.kinds)},
        "fidelity": None if draft.replay is None else draft.replay.grade,
        "assumptions": [asdict(assumption) for assumption in draft.assumptions],
        "assumptions_default_ratio": sum(defaults) / len(defaults) if defaults else None,
        "break_even": {"text": texts["pays"],
                       "figure": draft.break_even.as_json() if draft.break_even else None},
        "rule": [dict(threshold) for threshold in rec.rules],
        "risk": {"level": rec.risk, "reason": texts["risk"]}, "effort": rec.effort,
        "blast_radius": None if draft.replay is None else {
            "fullest_node_gpus": {"before": draft.replay.blast_gpus[0],
                                  "after": draft.replay.blast_gpus[1]}, "kind": "modelled"},
        "replay": None if draft.replay is None else replay_json(draft.replay),
        "apply": {"text": texts["do"], "command": draft.commands.get("apply") or None},
        "verify": {"text": texts["check"], "command": draft.commands.get("verify") or None},
        "rollback": {"text": texts["undo"], "command": draft.commands.get("rollback") or None},
        "alternatives": [{"name": name, "text": words.say(f"alternative.{name}")}
                         for name in draft.alternatives],
        "confidence": None if rec.confidence is None else {
            "judged": rec.confidence.judged, "held": rec.confidence.held,
            "ratio": round(rec.confidence.ratio, 3)},
        "sure": sure_text(rec, words), "gets_worse": worse_text(rec, words),
        "exclusive_group": rec.exclusive_group, "overlaps": list(rec.overlaps),
        "state": rec.state.value,
        "history": [
            {"ts": iso(change.ts), "state": change.state.value, "actor": change.actor,
             "reason": change.reason, "until": iso(change.until)}
            for change in rec.history
        ],
        "expires": iso(rec.expires_at), "realised": None,
    }  # fmt: skip


def replay_json(own: FromReplay) -> dict[str, Any]:
    """What a replay adds: gained and lost, boundary, everything tried, snippets by scheduler."""
    return {
        "grade": own.grade, "promises": own.promises, "gain": own.gain,
        "measured": {"measure": own.measure, "point": own.measured[0] if own.promises else None,
                     "interval_80": list(own.measured[1:])},
        "shifts": [{"measure": n, "before": a, "after": b} for n, a, b in own.shifts],
        "classes": [asdict(each) for each in own.classes],
        "teams": [asdict(each) for each in own.teams],
        "bounds": [dict(bound) for bound in own.bounds], "tried": [dict(t) for t in own.tried],
        "worth_nodes": own.worth_nodes, "handover": dict(own.handover), "kind": "modelled",
        "not_resumable": None if own.not_resumable is None else {
            "count": own.not_resumable.count,
            "lost_gpu_hours": round(own.not_resumable.lost_gpu_hours, 2),
            "jobs": [{"job_id": job.job_id, "gpus": job.gpus, "stops": job.stops,
                      "lost_gpu_hours": round(job.lost_gpu_hours, 2)}
                     for job in own.not_resumable.jobs]},
    }  # fmt: skip


def iso(at: datetime | None) -> str | None:
    """ISO 8601 with Z."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def plain(value: object) -> object:
    """Decimals as strings and times as ISO 8601, for ``json.dumps(default=plain)``."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return iso(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")
