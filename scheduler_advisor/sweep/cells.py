"""What a sweep runs: one cell for each policy and seed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler_advisor.engine import policy_text
from scheduler_advisor.engine.errors import SweepError
from scheduler_advisor.engine.policy import Policy


@dataclass(frozen=True, slots=True)
class Cell:
    """One replay to run. ``name`` is the policy's name in the file; the seed is in the policy."""

    name: str
    policy: Policy

    @property
    def seed(self) -> int:
        """The seed of every random choice of this replay."""
        return self.policy.seed


def read_cells(text: str) -> tuple[Cell, ...]:
    """Cells from TOML: ``seeds = [1, 2]`` for all, and a table ``[policy.NAME]`` for each policy.

    A policy's table is what a policy file holds: ``preset`` and the keys that change it.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SweepError(f"policies: not TOML: {error}") from error
    policies = tables.get("policy")
    if not isinstance(policies, Mapping) or not policies:
        raise SweepError("policies: no table [policy.NAME]; write one for each policy to try")
    if unknown := sorted(set(tables) - {"policy", "seeds"}):
        raise SweepError(f"policies: unknown key {unknown[0]}; known: seeds, [policy.NAME]")
    seeds = _seeds(tables.get("seeds"))
    return tuple(
        Cell(name, policy if seed is None else replace(policy, seed=seed))
        for name, table in policies.items()
        for policy in (_policy(name, table),)
        for seed in seeds
    )


def _policy(name: str, table: Any) -> Policy:
    if not isinstance(table, dict):
        raise SweepError(
            f"policies: [policy.{name}] is no table; write for example preset = 'easy'"
        )
    values = dict(table)
    base = policy_text.preset(str(values.pop("preset", "fifo")))
    return base.with_values(dict(_keys(values)))


def _keys(tables: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _seeds(given: Any) -> list[int | None]:
    if given is None:
        return [None]
    if not isinstance(given, list) or not given or not all(type(seed) is int for seed in given):
        raise SweepError("policies: seeds is no list of whole numbers; write seeds = [1, 2, 3]")
    return list(given)
