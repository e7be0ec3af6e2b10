"""How holders are named on pages."""

from __future__ import annotations

from dashboard.words import Words


def team_name(team: str | None, words: Words) -> str:
    """A team's name; null is the platform, ``unmapped`` a holder without mapping."""
    if team is None:
        return words("teams.platform")
    return words("teams.unmapped") if team == "unmapped" else team
