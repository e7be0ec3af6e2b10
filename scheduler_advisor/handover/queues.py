"""The queues of a policy, read back from its keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_HEAD = "quota.queues."


@dataclass(frozen=True, slots=True)
class Queue:
    """GPUs; None: no bound."""

    name: str
    guarantee: int
    maximum: int | None
    weight: int
    lend: int | None
    parent: str


def queues_of(keys: Mapping[str, object]) -> dict[str, Queue]:
    """Queues by name, in order of name."""
    names = sorted({key[len(_HEAD) :].rpartition(".")[0] for key in keys if key.startswith(_HEAD)})
    return {name: _queue(name, keys) for name in names}


def _queue(name: str, keys: Mapping[str, object]) -> Queue:
    def whole(column: str) -> int | None:
        value = keys.get(f"{_HEAD}{name}.{column}")
        return value if isinstance(value, int) else None

    weight = whole("weight")
    return Queue(
        name,
        whole("guarantee") or 0,
        whole("maximum"),
        1 if weight is None else weight,
        whole("lend"),
        str(keys.get(f"{_HEAD}{name}.parent") or ""),
    )
