"""What is known of runs as wholes, as columns; a run becomes an object where somebody asks for
it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from analytics.ledger.kernel.state import NEVER, Array


class Run(NamedTuple):
    """What is known of a run as a whole."""

    run_id: str
    job_id: str
    user: str | None
    account: str | None
    project: str | None
    queue: str | None
    qos: str | None
    state: str
    t0: int | None
    t1: int | None
    limit_s: int | None


Holder = tuple[str | None, str | None, str | None, str | None, str | None]
"""user, account, project, queue, qos."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs by name; ``columns`` in the order of the fields of `Run`."""

    columns: list[list[Any]]
    place: dict[str, int] = field(repr=False)

    @classmethod
    def of(cls, table: Any) -> Runs:
        """From the rows of `factqueries.RUNS`."""
        columns = [column.to_pylist() for column in table.columns]
        return cls(columns, {name: at for at, name in enumerate(columns[0])})

    @classmethod
    def none(cls) -> Runs:
        """No run at all."""
        return cls([[] for _ in Run._fields], {})

    def __contains__(self, run_id: str) -> bool:
        return run_id in self.place

    def get(self, run_id: str) -> Run | None:
        """The run, or None where the facts do not describe it."""
        place = self.place.get(run_id)
        return None if place is None else self._at(place)

    def _at(self, place: int) -> Run:
        return Run(*(column[place] for column in self.columns))

    def in_states(self, states: Collection[str]) -> list[Run]:
        """The runs that were last seen in one of these states."""
        return [self._at(at) for at, state in enumerate(self.columns[7]) if state in states]

    def named(self, run_id: str) -> list[Run]:
        """The run of this name, if the facts describe it."""
        return [self._at(self.place[run_id])] if run_id in self.place else []

    def of_job(self, job_id: str | None) -> list[Run]:
        """The runs of a job."""
        return [self._at(at) for at, job in enumerate(self.columns[1]) if job == job_id]

    def jobs(self, run_ids: list[str]) -> list[str]:
        """The job of each run; a run that is not described is its own."""
        jobs, place = self.columns[1], self.place
        return [jobs[place[name]] if name in place else name for name in run_ids]

    def holders(self, run_ids: list[str]) -> list[Holder]:
        """Whose each run is; nobody's where it is not described."""
        rows: list[Holder] = list(zip(*self.columns[2:7], strict=True))
        rows.append((None, None, None, None, None))
        return [rows[self.place.get(name, -1)] for name in run_ids]

    def expected_ends(self, run_ids: list[str]) -> Array:
        """When the scheduler must expect each run to end, us; NEVER without a limit."""
        starts, limits = self.columns[8], self.columns[10]
        ends = [
            NEVER if t0 is None or not limit else t0 + limit * 1_000_000
            for t0, limit in zip(starts, limits, strict=True)
        ]
        ends.append(NEVER)
        return np.array([ends[self.place.get(name, -1)] for name in run_ids], np.int64)
