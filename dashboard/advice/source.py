"""The newest report as the page shows it; not cached, because people change its states here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dashboard import connection
from dashboard.clicked import now
from scheduler_advisor.report.saved import newest_report, recommendations_of


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest report in one language, its recommendations in the states of now."""

    body: dict[str, Any]
    recommendations: list[dict[str, Any]]

    @property
    def open(self) -> list[dict[str, Any]]:
        """What still asks for something."""
        return [rec for rec in self.recommendations if rec["state"] in ("new", "accepted")]

    @property
    def aside(self) -> list[dict[str, Any]]:
        """What was snoozed, dismissed or applied."""
        return [rec for rec in self.recommendations if rec not in self.open]


def newest(path: str, language: str) -> Newest | None:
    """The newest report of the store at ``path``, or None while there is none."""
    with connection.store_at(path).work() as work:
        row = newest_report(work)
        if row is None:
            return None
        body: dict[str, Any] = json.loads(row["body"])[language]
        return Newest(body, recommendations_of(work, row["report_id"], now(), language))
