"""Naive local times of trace files as seconds after an origin in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import numpy as np
import pyarrow as pa

from collector.traces.columns import Columns

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instants(
    columns: Columns, name: str, zone: tzinfo, blank: Sequence[str] = ()
) -> list[datetime | None]:
    """The column's times in UTC, None where blank; a time without a zone is local to ``zone``.

    In the repeated hour at the end of daylight saving the first of the two instants is meant.
    """
    found: list[datetime | None] = []
    for row, text in enumerate(columns.text(name)):
        if not text.strip() or text in blank:
            found.append(None)
            continue
        try:
            stamp = datetime.fromisoformat(text.strip())
        except ValueError:
            raise columns.refused(row, f"{name} is {text!r}, not a date and time") from None
        found.append((stamp if stamp.tzinfo else stamp.replace(tzinfo=zone)).astimezone(UTC))
    return found


def ambiguous(found: Sequence[datetime | None], zone: tzinfo) -> int:
    """How many of these instants lie in an hour that the clock of ``zone`` shows twice."""
    count = 0
    for stamp in found:
        if stamp is not None:
            local = stamp.astimezone(zone)
            twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
            count += twice
    return count


def since(origin: datetime, found: Sequence[datetime | None]) -> pa.Array:
    """Whole seconds after ``origin``."""
    values = [0 if s is None else int((s - origin).total_seconds()) for s in found]
    known = np.array([stamp is not None for stamp in found], dtype=bool)
    return pa.array(np.array(values, dtype=np.int64), mask=~known)
