"""Who pays most and who least for a GPU-hour that worked."""

from __future__ import annotations

from decimal import Decimal

from dashboard.data import Report
from dashboard.figures import Row, cost_per_used_hour, exact, row_efficiency
from dashboard.formats import money, percent
from dashboard.teams.names import team_name
from dashboard.words import Words

# A team with little time says little: it is left out of the sentence, not of the table.
LEAST_SHARE = Decimal("0.01")


def answer_text(report: Report, words: Words) -> str:
    """The dearest and the cheapest used GPU-hour among teams that held a hundredth or more."""
    held = exact(report.total["held_gpu_hours"])
    rows = [
        row
        for row in report.rows
        if row["team"] is not None
        and cost_per_used_hour(row) is not None
        and exact(row["held_gpu_hours"]) >= held * LEAST_SHARE
    ]
    if not rows:
        return words("teams.answer_none")
    rows.sort(key=lambda row: cost_per_used_hour(row) or Decimal(), reverse=True)
    values = _part("dear", rows[0], report, words)
    if len(rows) == 1:
        return words("teams.answer_one", **values)
    return words("teams.answer", **values, **_part("cheap", rows[-1], report, words))


def _part(side: str, row: Row, report: Report, words: Words) -> dict[str, str]:
    return {
        side: f"{team_name(row['team'], words)} ({row['gpu_model'] or '–'})",
        f"{side}_rate": money(cost_per_used_hour(row), report.currency),
        f"{side}_eff": percent(row_efficiency(row)),
    }
