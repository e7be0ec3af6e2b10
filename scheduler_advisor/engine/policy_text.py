"""Policies as text: presets by name, TOML files, and `key=value` changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.live.settings_text import (
    LIVE_PARTS,
    live_changed,
    live_keys,
    live_toml,
)
from scheduler_advisor.engine.parts.settings import PARTS, part_changed, part_keys, part_toml
from scheduler_advisor.engine.policy import (
    Backfill,
    Order,
    Placement,
    Policy,
    Preemption,
    Ties,
)
from scheduler_advisor.engine.presets import SCHEDULERS

KEYS: Mapping[str, str] = {
    "order": "order",
    "backfill": "backfill",
    "backfill.kind": "backfill",
    "backfill.depth": "backfill_depth",
    "backfill.max_limit_s": "backfill_max_limit_s",
    "backfill.whole_nodes": "backfill_whole_nodes",
    "backfill.interval_s": "backfill_interval_s",
    "gang": "gang",
    "gang.on": "gang",
    "gang.timeout_s": "gang_timeout_s",
    "placement": "placement",
    "placement.kind": "placement",
    "placement.ties": "placement_ties",
    "preemption": "preemption",
    "preemption.kind": "preemption",
    "seed": "seed",
}
CHOICES: Mapping[str, type[StrEnum]] = {
    "order": Order,
    "backfill": Backfill,
    "placement": Placement,
    "placement_ties": Ties,
    "preemption": Preemption,
}
SHORT = {"sjf": "sjf-limit"}
FLAGS = ("gang", "backfill_whole_nodes")
PRESETS: Mapping[str, Policy] = {
    "fifo": Policy(),
    "easy": Policy(backfill=Backfill.EASY),
    "conservative": Policy(backfill=Backfill.CONSERVATIVE),
    "conservative-compress": Policy(backfill=Backfill.CONSERVATIVE_COMPRESS),
    "greedy": Policy(backfill=Backfill.GREEDY),
    "sjf": Policy(order=Order.SJF_LIMIT),
    **SCHEDULERS,
}


def preset(name: str) -> Policy:
    """The policy of that name: a preset, or the name of an order."""
    if name in PRESETS:
        return PRESETS[name]
    if name in tuple(Order):
        return Policy(order=Order(name))
    raise PolicyError(f"policy: no preset {name}; known: {sorted(PRESETS)}, or a .toml file")


def from_toml(text: str) -> Policy:
    """A policy from TOML; keys before a dot are tables, `kind` names the part itself."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"policy: not TOML: {error}") from error
    base = Policy()
    if "preset" in tables:
        base = preset(str(tables.pop("preset")))
    return base.with_values(dict(_flat(tables)))


def to_toml(policy: Policy) -> str:
    """The TOML that `from_toml` reads back to an equal policy."""
    lines = [f'order = "{policy.order}"', f"seed = {policy.seed}", ""]
    lines += ["[backfill]", f'kind = "{policy.backfill}"', f"depth = {policy.backfill_depth}"]
    lines += [f"max_limit_s = {policy.backfill_max_limit_s}"]
    lines += ["whole_nodes = true"] * policy.backfill_whole_nodes
    lines += [f"interval_s = {policy.backfill_interval_s}", ""]
    lines += ["[gang]", f"on = {str(policy.gang).lower()}", f"timeout_s = {policy.gang_timeout_s}"]
    lines += ["", "[placement]", f'kind = "{policy.placement}"']
    lines += [f'ties = "{policy.placement_ties}"', "", "[preemption]"]
    lines += [f'kind = "{policy.preemption}"']
    lines += live_toml(policy)
    for part in PARTS:
        lines += part_toml(getattr(policy, part))
    return "\n".join(lines) + "\n"


def parsed(values: Mapping[str, object], base: Policy) -> dict[str, Any]:
    """Field values of `Policy` from keys and texts of the command line."""
    changes: dict[str, Any] = {}
    for key, value in values.items():
        part = key.partition(".")[0]
        if part in PARTS:
            changes[part] = part_changed(changes.get(part, getattr(base, part)), key, value)
            continue
        if part in LIVE_PARTS and key not in KEYS:
            name = LIVE_PARTS[part]
            changes[name] = live_changed(changes.get(name, getattr(base, name)), key, value)
            continue
        if key not in KEYS:
            raise PolicyError(_unknown_key(key))
        name = KEYS[key]
        changes[name] = _value(key, name, value)
    return changes


def _value(key: str, name: str, value: object) -> object:
    if name in CHOICES:
        return _choice(key, CHOICES[name], str(value))
    if name in FLAGS:
        text = str(value).lower()
        if text not in ("true", "false"):
            raise PolicyError(f"policy: {key} = {value}; must be true or false")
        return text == "true"
    try:
        return int(str(value))
    except ValueError:
        raise PolicyError(f"policy: {key} = {value}; must be a whole number") from None


def _choice(key: str, choices: type[StrEnum], text: str) -> StrEnum:
    text = SHORT.get(text, text)
    try:
        return choices(text)
    except ValueError:
        known = ", ".join(choices)
        raise PolicyError(f"policy: {key} = {text} is not one of {known}") from None


def _unknown_key(key: str) -> str:
    known = sorted([*KEYS, *part_keys(), *live_keys()])
    return f"policy: no key {key}; known keys: {', '.join(known)}"


def _flat(tables: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
