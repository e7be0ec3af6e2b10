"""Facts of this source as they stand in the store, read and put in place as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TypeVar

from collector.model import Fact, FactWindow, Node, NodeState, Reservation
from collector.slurm.inventory import SOURCE
from collector.store import Work

_Row = TypeVar("_Row", Node, NodeState, FactWindow, Reservation)


def stored(work: Work, cluster: str, kind: type[_Row], source: str = SOURCE) -> list[_Row]:
    """Every row of the cluster that came from Slurm, by this way."""
    names = [field.name for field in fields(kind)]
    rows = work.rows(
        f"SELECT {', '.join(names)} FROM {kind.table} WHERE cluster = ? AND source = ?",  # noqa: S608 - our own names
        [cluster, source],
    )
    build: Callable[..., _Row] = kind
    lists = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    return [build(**row) for row in lists]


def put_in_place(work: Work, cluster: str, before: Sequence[Fact], after: Sequence[Fact]) -> None:
    """Write ``after`` over ``before``, and nothing where they are the same."""
    if set(before) == set(after) and len(before) == len(after):
        return
    table, source = (before or after)[0].table, (before or after)[0].source
    work.execute(f"DELETE FROM {table} WHERE cluster = ? AND source = ?", [cluster, source])  # noqa: S608 - our own names
    work.append_facts(after)
