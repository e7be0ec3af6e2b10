"""Which team an account, user or project belonged to at one instant, from the org map."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from analytics.org import KEY_KINDS, folded
from collector.store import Work


class Teams:
    """The org map in memory; a split goes to its largest part here, where one owner is asked."""

    def __init__(self, work: Work) -> None:
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in work.rows(
            "SELECT cluster, key_kind, key_value, team, ratio_ppm, valid_from, valid_to "
            "FROM org_map ORDER BY ratio_ppm DESC, team"
        ):
            self._rows[row["key_kind"], row["key_value"]].append(row)

    def of(self, cluster: str, at: datetime, **keys: str | None) -> str | None:
        """The team of the first key that is mapped, or None."""
        for kind in KEY_KINDS:
            value = keys.get(kind)
            if value is None:
                continue
            for row in self._rows.get((kind, folded(value)), ()):
                if row["cluster"] in (None, cluster) and _covers(row, at):
                    return str(row["team"])
        return None


def _covers(row: dict[str, Any], at: datetime) -> bool:
    return bool(row["valid_from"] <= at and (row["valid_to"] is None or at < row["valid_to"]))
