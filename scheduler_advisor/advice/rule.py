"""A rule's thresholds, each with the reason why it is not another number."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from scheduler_advisor.goals import Goals


@dataclass(frozen=True, slots=True)
class Threshold:
    """A default, its unit and why; operators change it under ``[thresholds.<kind>]``."""

    default: float
    unit: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind of advice decides.

    ``needs``: the facts without which the kind says "not measured". ``risk`` 0 (none) to 4;
    ``effort`` low, medium or high. The words are in the message files under ``kind.<kind>``.
    """

    kind: str
    risk: int
    effort: str
    thresholds: MappingProxyType[str, Threshold]
    needs: tuple[str, ...] = ()

    def values(self, goals: Goals) -> dict[str, float]:
        """The thresholds in force."""
        return {
            name: goals.threshold(self.kind, name, threshold.default)
            for name, threshold in self.thresholds.items()
        }

    def as_json(self, goals: Goals) -> list[dict[str, Any]]:
        """The thresholds in force, with reason and whether each is the default."""
        own = goals.thresholds.get(self.kind, {})
        return [
            {"name": name, "value": own.get(name, t.default), "unit": t.unit, "reason": t.reason,
             "default": name not in own}
            for name, t in self.thresholds.items()
        ]  # fmt: skip


def rule(
    kind: str, *, risk: int, effort: str, needs: tuple[str, ...] = (), **thresholds: Threshold
) -> Rule:
    """A rule with its thresholds by name."""
    return Rule(
        kind=kind, risk=risk, effort=effort, needs=needs, thresholds=MappingProxyType(thresholds)
    )
