"""Which keys of a policy change, from the fields that the policy has: a new one is never missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from scheduler_advisor.engine.policy import Policy

# Fields of a policy whose keys begin otherwise than the field.
_TABLES = {"fair": "fairshare", "eviction": "preemption"}
MODELLED = (
    "seed",
    "placement.ties",
    "topology.slowdown",
    "topology.message_mib",
    "topology.comm_milli",
    "topology.oversubscription",
    "topology.island_gb_s",
    "topology.node_gb_s",
    "topology.leaf_gb_s",
    "topology.spine_gb_s",
    "topology.core_gb_s",
    "defrag.horizon_s",
    "defrag.min_gain",
    "sharing.reconfigure_s",
    "sharing.crowding_milli",
    "sharing.switch_milli",
    "elastic.resize_s",
    "elastic.efficiency_milli",
    "preemption.gib_per_gpu",
    "preemption.storage_gib_s",
)
"""Keys that say how the world behaves, not what a scheduler does: nothing is to be set for them."""


@dataclass(frozen=True, slots=True)
class Change:
    """Keys of the command line with their values; a key that one side lacks is None there."""

    before: Mapping[str, object]
    after: Mapping[str, object]

    @classmethod
    def between(cls, before: Policy, after: Policy) -> Change:
        """From one policy to another."""
        return cls(keys_of(before), keys_of(after))

    @property
    def changed(self) -> tuple[str, ...]:
        """Keys whose values differ, sorted."""
        keys = {*self.before, *self.after}
        return tuple(sorted(k for k in keys if self.before.get(k) != self.after.get(k)))

    def back(self) -> Change:
        """The opposite change."""
        return Change(self.after, self.before)


def keys_of(policy: Policy) -> dict[str, object]:
    """Every key of the policy with its value, defaults included; enumerations as their text."""
    return {key: _plain(value) for key, value in _keys(policy)}


def _keys(policy: Policy) -> Iterator[tuple[str, object]]:
    for item in fields(policy):
        value = getattr(policy, item.name)
        if is_dataclass(value):
            yield from _part(_TABLES.get(item.name, item.name), value)
        else:
            yield item.name.replace("_", ".", 1), value


def _part(table: str, part: Any) -> Iterator[tuple[str, object]]:
    for item in fields(part):
        value = getattr(part, item.name)
        if item.name == "kind":
            yield table, value
        elif not isinstance(value, tuple):
            yield f"{table}.{item.name}", value
        else:
            yield from _rows(f"{table}.{item.name}", value)


def _rows(table: str, rows: tuple[Any, ...]) -> Iterator[tuple[str, object]]:
    for row in rows:
        if is_dataclass(row):
            columns = fields(row)
            name = getattr(row, columns[0].name)
            for item in columns[1:]:
                yield f"{table}.{name}.{item.name}", getattr(row, item.name)
        else:
            yield f"{table}.{row[0]}", row[1]


def _plain(value: object) -> object:
    return value.value if isinstance(value, StrEnum) else value


DEFAULTS: Mapping[str, object] = keys_of(Policy())
"""What every key is where nobody has said anything."""
