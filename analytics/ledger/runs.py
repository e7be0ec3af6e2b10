"""What is known of runs as wholes, as columns; a run becomes an object where somebody asks for
it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.ledger.kernel.state import NEVER, Array
from analytics.ledger.names import places


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


Holder = tuple[str | None, ...]
"""user, account, project, queue, qos."""
_HOLDER = ("user_name", "account", "project", "partition", "qos")


class Runs:
    """Runs by name, read from the rows of `factqueries.RUNS`."""

    def __init__(self, table: Any) -> None:
        self._table = table
        names = table.column("run_id").to_pylist()
        self._place: dict[str, int] = {name: at for at, name in enumerate(names)}

    @property
    def told_twice(self) -> bool:
        """Whether some run has several rows."""
        return len(self._place) < int(self._table.num_rows)

    @classmethod
    def none(cls) -> Runs:
        """No run at all."""
        return cls(pa.table({"run_id": pa.nulls(0, pa.string())}))

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._place

    def get(self, run_id: str) -> Run | None:
        """The run, or None where the facts do not describe it."""
        place = self._place.get(run_id)
        return None if place is None else self._at([place])[0]

    def named(self, run_id: str) -> list[Run]:
        """The run of this name, if the facts describe it."""
        return self._at([self._place[run_id]]) if run_id in self._place else []

    def in_states(self, states: Collection[str]) -> list[Run]:
        """The runs that were last seen in one of these states."""
        return self._where("state", states)

    def of_job(self, job_id: str | None) -> list[Run]:
        """The runs of a job."""
        return [] if job_id is None else self._where("job_id", (job_id,))

    def _where(self, column: str, wanted: Collection[str]) -> list[Run]:
        if not self._place:
            return []
        names, place = places(self._table.column(column))
        there = [at for at, name in enumerate(names) if name in wanted]
        found = self._at(np.flatnonzero(np.isin(place, there)).tolist())
        return sorted(found, key=lambda run: run.run_id)

    def _at(self, rows: list[int]) -> list[Run]:
        columns = self._table.take(pa.array(rows, pa.int64())).columns
        return [Run(*row) for row in zip(*(c.to_pylist() for c in columns), strict=True)]

    def _places(self, run_ids: list[str]) -> Array:
        """Where each run is; -1 = not described."""
        found = map(self._place.get, run_ids, repeat(-1))
        return np.fromiter(found, np.int64, len(run_ids))

    def jobs(self, run_ids: list[str]) -> pa.Array:
        """The job of each run; a run that is not described is its own."""
        names = pa.array(run_ids, pa.string())
        if not self._place:
            return names
        places = self._places(run_ids)
        jobs = self._table.column("job_id").take(pa.array(places, mask=places < 0))
        empty = np.flatnonzero(pc.equal(jobs, "").fill_null(True).to_numpy())
        if not empty.shape[0]:
            return jobs.combine_chunks()
        own = jobs.to_pylist()
        for at in empty.tolist():
            own[at] = run_ids[at]
        return pa.array(own, pa.string())

    def holders(self, run_ids: list[str]) -> tuple[list[Holder], Array]:
        """Whom the runs belong to, in the order in which they come, and the place of each run's;
        nobody's where it is not described."""
        nobody: Holder = (None, None, None, None, None)
        if not self._place:
            return [nobody], np.zeros(len(run_ids), np.int64)
        code = np.zeros(len(self._place), np.int64)
        named = []
        for name in _HOLDER:
            names, place = places(self._table.column(name))
            if names:
                # A number of its own for each pair seen so far keeps the code small.
                _, code = np.unique(code * (len(names) + 1) + place + 1, return_inverse=True)
            named.append(([*names, None], place))
        mine = np.append(code, -1)[self._places(run_ids)]
        _, first, of = np.unique(mine, return_index=True, return_inverse=True)
        come = np.argsort(first, kind="stable")
        rank = np.empty_like(come)
        rank[come] = np.arange(come.shape[0])
        rows = self._places([run_ids[at] for at in first[come].tolist()]).tolist()
        whose = [
            nobody if row < 0 else tuple(names[place[row]] for names, place in named)
            for row in rows
        ]
        return whose, rank[of]

    def expected_ends(self, run_ids: list[str]) -> Array:
        """When the scheduler must expect each run to end, us; NEVER without a limit."""
        if not self._place:
            return np.full(len(run_ids), NEVER, np.int64)
        t0, limit = (
            self._table.column(name).cast(pa.int64()).fill_null(0).to_numpy()
            for name in ("t0", "limit_s")
        )
        known = self._table.column("t0").is_valid().to_numpy(zero_copy_only=False) & (limit != 0)
        ends = np.append(np.where(known, t0 + limit * 1_000_000, NEVER), NEVER)
        return ends[self._places(run_ids)]
