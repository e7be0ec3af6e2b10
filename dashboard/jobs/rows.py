"""Jobs with what they held and cost: records joined with the cost report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from analytics.questions.jobs import JobRecord
from dashboard.figures import Row, exact, row_efficiency
from dashboard.palette import STRANDED
from dashboard.view import View

HELD_COLUMNS = {
    "used": "used_gpu_hours",
    "allocated_idle": "allocated_idle_gpu_hours",
    "lost": "lost_gpu_hours",
    "allocated_unmeasured": "allocated_unmeasured_gpu_hours",
    "failed_held": "failed_held_gpu_hours",
    "unattributed": "unattributed_gpu_hours",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job; amounts are of the window, 0 for one that held nothing in it."""

    record: JobRecord
    team: str | None
    hours: dict[str, float]
    held: float
    stranded: float
    efficiency: float | None
    cost: Decimal | None

    def of_class(self, name: str | None) -> float:
        """What the list is ordered by: GPU-hours of a class, or cost (held where unpriced)."""
        if name in STRANDED:
            return self.stranded
        if name in self.hours:
            return self.hours[name]
        return self.held if self.cost is None else float(self.cost)


def job_rows(records: Iterable[JobRecord], costs: Sequence[Row]) -> list[JobRow]:
    """Every job once; a job split over several owners has the amounts of all of them."""
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in costs:
        if row["job"] is not None:
            parts.setdefault((row["cluster"], row["job"]), []).append(row)
    return [_row(record, parts.get((record.cluster, record.job_id), [])) for record in records]


def _row(record: JobRecord, parts: list[Row]) -> JobRow:
    names = ("held_gpu_hours", "stranded_gpu_hours", *HELD_COLUMNS.values())
    sums = {name: sum((exact(part[name]) for part in parts), Decimal()) for name in names}
    priced = [part["cost"] for part in parts if part["cost"] is not None]
    largest = max(parts, key=lambda part: exact(part["held_gpu_hours"]), default=None)
    return JobRow(
        record=record,
        team=None if largest is None else largest["team"],
        hours={name: float(sums[column]) for name, column in HELD_COLUMNS.items()},
        held=float(sums["held_gpu_hours"]),
        stranded=float(sums["stranded_gpu_hours"]),
        efficiency=row_efficiency(sums),
        cost=sum(priced, Decimal()) if priced else None,
    )


def chosen(rows: Iterable[JobRow], view: View) -> list[JobRow]:
    """The rows that the address asks for, the largest of its class (or the dearest) first."""
    found = [
        row
        for row in rows
        if view.team in (None, row.team)
        and view.user in (None, row.record.user_name)
        and view.queue in (None, row.record.queue)
        and view.state in (None, row.record.state)
        and (view.ledger_class is None or row.of_class(view.ledger_class) > 0)
    ]
    order = view.ledger_class
    return sorted(found, key=lambda row: (-row.of_class(order), row.record.job_id))
