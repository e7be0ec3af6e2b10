"""Which rows of the price book hold, and which of several wins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from analytics.prices import DEFAULT_SOURCE, KINDS
from analytics.window import EPOCH


def alive_sql(closed_at: datetime | None) -> str:
    """Which rows of the book hold now; with two parameters of ``closed_at``, which did then.

    Shipped prices count as always loaded: a release that has them replaces nothing.
    """
    if closed_at is None:
        return "retired_at IS NULL"
    return (
        f"(loaded_at <= ? OR starts_with(source, '{DEFAULT_SOURCE}')) "
        "AND (retired_at IS NULL OR retired_at > ?)"
    )


def alive(row: dict[str, Any], closed_at: datetime | None) -> bool:
    """The same of a row that was read."""
    if closed_at is None:
        return row["retired_at"] is None
    loaded = row["loaded_at"] <= closed_at or row["source"].startswith(DEFAULT_SOURCE)
    return loaded and (row["retired_at"] is None or row["retired_at"] > closed_at)


def rank(row: dict[str, Any], purchase_type: str) -> tuple[object, ...]:
    """Which of several prices in force wins: the smallest rank.

    The cluster's own before a general one, the user's before a shipped one, the purchase type asked
    for, then internal, contracted, amortized, list; then the latest start, the latest loaded.
    """
    return (
        row["cluster"] is None,
        row["source"].startswith(DEFAULT_SOURCE),
        row["purchase_type"] != purchase_type,
        KINDS.index(row["kind"]),
        -(row["effective_from"] - EPOCH).total_seconds(),
        -(row["loaded_at"] - EPOCH).total_seconds(),
        row["price_id"],
    )


def in_force(
    rows: Sequence[dict[str, Any]], at: datetime, purchase_type: str
) -> dict[str, Any] | None:
    """The price that holds at one instant, or None where there is none."""
    live = [
        row
        for row in rows
        if row["effective_from"] <= at and (row["effective_to"] is None or at < row["effective_to"])
    ]
    return min(live, key=lambda row: rank(row, purchase_type), default=None)
