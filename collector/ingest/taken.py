"""Which batches are in already, and which agent speaks for a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from collector.agent.batch import Batch
from collector.errors import AgentConflictError
from collector.store import Work
from collector.telemetry.rows import micros

# An agent that was heard of within this time is alive; another one for the same node must wait.
ALIVE = timedelta(minutes=2)
_Start = tuple[str, str, str]  # node, agent, boot


@dataclass(slots=True)
class _Range:
    """Batches first to last of one start; ``stored``: its first in the store, None if new."""

    cluster: str | None
    first: int
    last: int
    heard_at: datetime
    row_count: int
    stored: int | None = None
    changed: bool = False


class Taken:
    """The ranges of the nodes of some batches; grows with what is admitted until it is saved."""

    def __init__(self, work: Work, batches: Sequence[Batch], now: datetime) -> None:
        self._now = now
        self._ranges: dict[_Start, list[_Range]] = {}
        self._gone: list[tuple[_Start, int]] = []
        nodes = sorted({batch.node for batch in batches})
        marks = ", ".join("?" * len(nodes))
        for row in work.rows(f"SELECT * FROM ingest_range WHERE node IN ({marks})", nodes):
            start = (row["node"], row["agent_id"], row["boot_id"])
            found = _Range(
                row["cluster"], row["first"], row["last"], row["heard_at"], row["row_count"],
                row["first"],
            )  # fmt: skip
            self._ranges.setdefault(start, []).append(found)

    def admit(self, batch: Batch) -> bool:
        """Count the batch in; False if it was before.

        Raises AgentConflictError while another agent speaks for the node.
        """
        start = (batch.node, batch.agent_id, batch.boot_id)
        ranges = self._ranges.get(start, [])
        if any(one.first <= batch.sequence <= one.last for one in ranges):
            return False
        self._check_alone(batch)
        self._add(start, batch)
        return True

    def save(self, work: Work) -> None:
        """Write what was admitted."""
        for (node, agent_id, boot_id), first in self._gone:
            work.execute(
                "DELETE FROM ingest_range WHERE node = ? AND agent_id = ? AND boot_id = ? "
                "AND first = ?",
                [node, agent_id, boot_id, first],
            )
        changed = [(start, one) for start, of in self._ranges.items() for one in of if one.changed]
        _update(work, [(start, one) for start, one in changed if one.stored is not None])
        fresh = [(start, one) for start, one in changed if one.stored is None]
        work.append(
            "ingest_range",
            {
                "cluster": [one.cluster for _, one in fresh],
                "node": [start[0] for start, _ in fresh],
                "agent_id": [start[1] for start, _ in fresh],
                "boot_id": [start[2] for start, _ in fresh],
                "first": [one.first for _, one in fresh],
                "last": [one.last for _, one in fresh],
                "heard_at": [one.heard_at for _, one in fresh],
                "row_count": [one.row_count for _, one in fresh],
            },
        )

    def _check_alone(self, batch: Batch) -> None:
        for (node, agent_id, _), ranges in self._ranges.items():
            if node != batch.node or agent_id == batch.agent_id:
                continue
            heard = [one.heard_at for one in ranges if one.cluster in (None, batch.cluster)]
            if heard and max(heard) > self._now - ALIVE:
                raise AgentConflictError(
                    f"agent {agent_id} spoke for {node} at {max(heard):%H:%M:%S}, now "
                    f"{batch.agent_id} does, too: stop one of them (or give each node a name of "
                    f"its own with --node); it is taken {ALIVE.seconds} s after the other fell "
                    "silent"
                )

    def _add(self, start: _Start, batch: Batch) -> None:
        ranges = self._ranges.setdefault(start, [])
        below = next((one for one in ranges if one.last == batch.sequence - 1), None)
        above = next((one for one in ranges if one.first == batch.sequence + 1), None)
        grown = below or above
        if grown is None:
            grown = _Range(batch.cluster, batch.sequence, batch.sequence, self._now, 0)
            ranges.append(grown)
        elif below is not None and above is not None:
            below.last, below.row_count = above.last, below.row_count + above.row_count
            self._drop(start, ranges, above)
        elif grown is below:
            grown.last = batch.sequence
        else:
            if grown.stored is not None:  # the first names it in the store
                self._gone.append((start, grown.stored))
            grown.first, grown.stored = batch.sequence, None
        grown.heard_at = self._now
        grown.row_count += batch.row_count
        grown.changed = True

    def _drop(self, start: _Start, ranges: list[_Range], one: _Range) -> None:
        ranges.remove(one)
        if one.stored is not None:
            self._gone.append((start, one.stored))


def prune(work: Work, before: datetime) -> None:
    """Forget what was taken before ``before``, which no spool can keep for so long."""
    work.execute("DELETE FROM ingest_range WHERE heard_at < ?", [before])


def _update(work: Work, grown: list[tuple[_Start, _Range]]) -> None:
    if not grown:
        return
    if len(grown) == 1:  # without a join, which costs as much as the rest of a batch
        start, one = grown[0]
        work.execute(
            "UPDATE ingest_range SET last = ?, heard_at = ?, row_count = ? WHERE node = ? "
            "AND agent_id = ? AND boot_id = ? AND first = ?",
            [one.last, one.heard_at, one.row_count, *start, one.first],
        )
        return
    work.execute(
        "UPDATE ingest_range SET last = g.last, heard_at = make_timestamp(g.heard_us), "
        "row_count = g.row_count FROM (SELECT unnest(?::VARCHAR[]) AS node, "
        "unnest(?::VARCHAR[]) AS agent_id, unnest(?::VARCHAR[]) AS boot_id, "
        "unnest(?::BIGINT[]) AS first, unnest(?::BIGINT[]) AS last, "
        "unnest(?::BIGINT[]) AS heard_us, unnest(?::BIGINT[]) AS row_count) g "
        "WHERE ingest_range.node = g.node AND ingest_range.agent_id = g.agent_id "
        "AND ingest_range.boot_id = g.boot_id AND ingest_range.first = g.first",
        [
            [start[0] for start, _ in grown],
            [start[1] for start, _ in grown],
            [start[2] for start, _ in grown],
            [one.first for _, one in grown],
            [one.last for _, one in grown],
            [micros(one.heard_at) for _, one in grown],
            [one.row_count for _, one in grown],
        ],
    )
