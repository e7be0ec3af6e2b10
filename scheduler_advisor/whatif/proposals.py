"""Candidates that somebody saved to talk about."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from collector.store import Work
from scheduler_advisor.report.json_form import plain
from scheduler_advisor.window import Window


def save_proposal(  # noqa: PLR0913 - one argument per column
    work: Work,
    *,
    cluster: str,
    name: str,
    actor: str,
    window: Window,
    result: dict[str, Any],
    ts: datetime,
) -> str:
    """Keep a candidate with what its replay said; returns its id."""
    proposal_id = hashlib.sha256(f"{cluster}{name}{ts.isoformat()}".encode()).hexdigest()[:12]
    work.append(
        "proposal",
        {"proposal_id": [proposal_id], "cluster": [cluster], "ts": [ts], "actor": [actor],
         "name": [name], "since": [window.since], "until": [window.until],
         "policy": [result["policy"]],
         "result": [json.dumps(result, default=plain, ensure_ascii=False)]},
    )  # fmt: skip
    return proposal_id


def proposals(work: Work, cluster: str | None = None) -> list[dict[str, Any]]:
    """Every proposal, the newest first, with its saving and grade."""
    rows = work.rows(
        "SELECT * FROM proposal WHERE $1::VARCHAR IS NULL OR cluster = $1 ORDER BY ts DESC",
        [cluster],
    )
    return [{**row, "result": json.loads(row["result"])} for row in rows]
