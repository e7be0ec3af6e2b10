"""Whose the demo's accounts are: four teams, one account that changes hands, one unmapped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

_EVER = datetime(2026, 1, 1, tzinfo=UTC)
MOVED_AT = datetime(2026, 10, 19, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Membership:
    """An account belongs to this project, team and cost centre over ``[valid_from, valid_to)``."""

    account: str
    project: str
    team: str
    cost_centre: str
    valid_from: datetime = _EVER
    valid_to: datetime | None = None


# `guest` is left out on purpose, see PLANTED["unmapped_user"].
MEMBERSHIPS: tuple[Membership, ...] = (
    Membership("language", "language", "language", "CC-100"),
    Membership("vision", "vision", "vision", "CC-200"),
    Membership("vision-ocr", "ocr", "vision", "CC-200"),
    Membership("research", "research", "research", "CC-300"),
    Membership("robotics", "gripper", "research", "CC-300", valid_to=MOVED_AT),
    Membership("robotics", "gripper", "vision", "CC-200", valid_from=MOVED_AT),
    Membership("speech", "speech", "speech", "CC-400"),
)
