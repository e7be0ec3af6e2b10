"""Everything that was changed and can be judged: advice applied, operators' own, purchases."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from collector.store import Work
from scheduler_advisor.followup.measure import LOST_TO_STOPS, MEASURES, WIDE, Measure
from scheduler_advisor.followup.scope import NOBODY, Scope, scope_of
from scheduler_advisor.followup.verdict import Predicted

# One row = advice that somebody marked as applied, as the last report before that stated it.
_APPLIED = """
SELECT s.recommendation_id, min(s.ts) AS ts, any_value(c.cluster) AS cluster,
  any_value(c.kind) AS kind, any_value(c.subject) AS subject, arg_max(c.body, r.ts) AS body,
  arg_max(r.report_id, r.ts) AS report_id
FROM recommendation_state s JOIN recommendation c ON c.recommendation_id = s.recommendation_id
JOIN advice_report r ON r.report_id = c.report_id
WHERE s.state = 'applied' AND s.ts <= $1 AND r.ts <= s.ts AND c.cluster IS NOT NULL
GROUP BY s.recommendation_id ORDER BY ts
"""
_MARKS = """
SELECT cluster, ts, coalesce(text, '') AS text FROM event
WHERE kind = 'policy_change' AND ts <= $1 ORDER BY ts
"""
# One row = settings of the scheduler that were seen to have changed at one instant.
_SETTINGS = """
SELECT n.cluster, n.valid_from AS ts,
  string_agg(n.key || ' ' || o.value || ' -> ' || n.value, ', ' ORDER BY n.key) AS text
FROM scheduler_setting n JOIN scheduler_setting o
  ON o.cluster = n.cluster AND o.key = n.key AND o.valid_to = n.valid_from
WHERE n.valid_from <= $1 AND n.key NOT LIKE 'partition.%.State' GROUP BY n.cluster, n.valid_from
ORDER BY ts
"""
# One row = nodes that came in one day to a cluster that was known before.
_PURCHASES = """
WITH first AS (
  SELECT cluster, node, min(valid_from) AS ts, arg_min(gpus, valid_from) AS gpus FROM node
  GROUP BY cluster, node)
SELECT f.cluster, date_trunc('day', f.ts) AS ts, count(*) AS nodes, sum(f.gpus)::BIGINT AS gpus
FROM first f JOIN (SELECT cluster, min(ts) AS known FROM first GROUP BY cluster) k
  ON k.cluster = f.cluster
WHERE f.ts > k.known + INTERVAL 1 DAY AND f.ts <= $1
GROUP BY f.cluster, date_trunc('day', f.ts) ORDER BY ts
"""
WAITS = ("urgent", "big", "team")  # gains of the search that are hours of waiting
WRITING = "checkpoint_"  # what the search's changes of checkpoints begin with
SAME_CHANGE = timedelta(days=1)  # a mark and the setting that it speaks of are one change


@dataclass(frozen=True, slots=True)
class Changed:
    """One change. ``kind``: that of the advice, policy_change or purchase."""

    subject_id: str
    cluster: str
    kind: str
    at: datetime
    what: str
    predicted: Predicted | None = None
    gpus: int = 0
    scope: Scope = NOBODY
    target: float | None = None  # the ratio that the advice aimed at
    subject: str = ""

    gain: str = ""  # of a replay's promise: what it was advised for

    @property
    def waits(self) -> str | None:
        """The group whose shorter waits were promised (urgent, big, team); else None."""
        promised = self.kind == "policy_change" and self.gain in WAITS
        return self.gain if promised and self.measure is None else None

    @property
    def unit(self) -> str:
        """Of what is predicted and realised, a week."""
        return "gpu_hours" if self.waits is None else "wait_hours"

    @property
    def replayed(self) -> bool:
        """Promised by a replay: capacity that stood free while jobs waited."""
        return self.gain == "capacity"

    @property
    def measure(self) -> Measure | None:
        """What advice from facts, and of checkpoints alone, is judged by; None: by capacity free
        while jobs waited."""
        parts = self.subject.split(" + ")
        if self.kind == "policy_change" and all(part.startswith(WRITING) for part in parts):
            return LOST_TO_STOPS
        return None if self.replayed else MEASURES.get(self.kind)

    @property
    def wide(self) -> bool:
        """Whether it touches the whole cluster, and not only what some people hold."""
        return self.measure is None or self.measure.of in WIDE

    def disturbs(self, other: Changed) -> bool:
        """Whether what follows this change says nothing clear about ``other`` any more."""
        if self.cluster != other.cluster:
            return False
        same = self.kind == other.kind and bool(self.scope.people & other.scope.people)
        return (self.wide and other.wide) or same


def changes(work: Work, at: datetime) -> list[Changed]:
    """All changes up to ``at``, in order; a setting seen within a day of advice applied or of a
    mark is that change."""
    found = [
        _advice(work, row)
        for row in work.rows(_APPLIED, [at])
        if row["kind"] == "policy_change" or row["kind"] in MEASURES
    ]
    for name, sql in (("mark", _MARKS), ("setting", _SETTINGS)):
        for row in work.rows(sql, [at]):
            known = [c for c in found if c.cluster == row["cluster"] and c.wide
                     and abs(c.at - row["ts"]) <= SAME_CHANGE]  # fmt: skip
            if not known:
                subject = f"{name}-{row['cluster']}-{row['ts']:%Y%m%dT%H%M}"
                found.append(Changed(subject, row["cluster"], "own_change", row["ts"],
                                     row["text"][:500]))  # fmt: skip
    for row in work.rows(_PURCHASES, [at]):
        subject = f"purchase-{row['cluster']}-{row['ts']:%Y%m%d}"
        found.append(Changed(subject, row["cluster"], "purchase", row["ts"],
                             f"+{row['nodes']} nodes, +{row['gpus']} GPUs",
                             gpus=int(row["gpus"])))  # fmt: skip
    return sorted(found, key=lambda each: each.at)


def _advice(work: Work, row: dict[str, Any]) -> Changed:
    body = json.loads(row["body"])["en"]
    replay = body.get("replay") or {}
    targets = [each["value"] for each in body.get("rule", ()) if each["name"] == "target_ratio"]
    change = Changed(
        row["recommendation_id"], row["cluster"], row["kind"], row["ts"], body["title"],
        scope=scope_of(work, row["recommendation_id"], row["report_id"]),
        target=targets[0] if targets else None, subject=row["subject"] or "",
        gain=replay.get("gain") or "",
    )  # fmt: skip
    if change.waits is not None:
        promised = replay["measured"]
        return replace(change, predicted=_promised(promised["point"], promised["interval_80"]))
    saving = body["saving"]
    return replace(
        change, predicted=_promised(saving["gpu_hours"], saving["gpu_hours_interval_80"])
    )


def _promised(point: float | None, interval: list[float]) -> Predicted:
    """Without a point (the replay is not sure enough for one) the middle of the interval."""
    low, high = interval
    return Predicted(point or (low + high) / 2, low, high)
