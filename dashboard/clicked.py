"""The moment at which somebody acts on a page."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The moment of a person's click."""
    return datetime.now(UTC)  # noqa: TID251 - a person's click happens now
