"""Who changed what decides a bill, and when: the log is only ever added to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from collector.store import Work


def note(  # noqa: PLR0913 - the columns of the log
    work: Work,
    at: datetime,
    actor: str,
    action: str,
    subject: str,
    *,
    after: str | None = None,
    before: str | None = None,
    reason: str | None = None,
) -> None:
    """Add one change to the log; ``action`` is what.verb, such as price.load."""
    row = {
        "ts": at, "actor": actor, "action": action, "subject": subject, "before_value": before,
        "after_value": after, "reason": reason,
    }  # fmt: skip
    work.append("audit", {name: [value] for name, value in row.items() if value is not None})


def audit_rows(
    work: Work,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    actor: str | None = None,
    action: str | None = None,
) -> list[dict[str, Any]]:
    """The log, oldest first; ``action`` may be its first part alone (price)."""
    return work.rows(
        "SELECT ts, actor, action, subject, before_value, after_value, reason FROM audit "
        "WHERE ($1 IS NULL OR ts >= $1) AND ($2 IS NULL OR ts < $2) "
        "AND ($3 IS NULL OR actor = $3) "
        "AND ($4 IS NULL OR action = $4 OR starts_with(action, $4 || '.')) ORDER BY ALL",
        [since, until, actor, action],
    )
