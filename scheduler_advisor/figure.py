"""A number that leaves the product, with the kind of number it is and the way back to its rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any


class NumberKind(StrEnum):
    """Observed, modelled and limit are never added to each other or drawn on one unmarked axis."""

    OBSERVED = "observed"
    MODELLED = "modelled"
    LIMIT = "limit"


class Unit(StrEnum):
    """What a figure counts; money carries its ISO code beside."""

    GPU_HOURS = "gpu_hours"
    MONEY = "money"
    RATIO = "ratio"
    SECONDS = "s"
    HOURS = "h"
    DAYS = "d"
    COUNT = "count"
    GPUS = "gpus"
    MIB = "mib"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One tagged number. ``command`` prints the rows that it was made from.

    ``value`` None = not measured. ``name`` is a key of the message files.
    """

    name: str
    value: float | int | Decimal | None
    unit: Unit
    kind: NumberKind
    currency: str | None = None
    command: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The figure as plain JSON values; money as a string."""
        value = str(self.value) if isinstance(self.value, Decimal) else self.value
        return {
            "name": self.name, "value": value, "unit": self.unit.value, "kind": self.kind.value,
            "currency": self.currency, "command": self.command,
        }  # fmt: skip


def observed(name: str, value: Any, unit: Unit, command: str | None = None) -> Figure:
    """A counted or measured number."""
    return Figure(name=name, value=value, unit=unit, kind=NumberKind.OBSERVED, command=command)


def modelled(name: str, value: Any, unit: Unit, command: str | None = None) -> Figure:
    """A number that a rule or an assumption decided."""
    return Figure(name=name, value=value, unit=unit, kind=NumberKind.MODELLED, command=command)


def limit(name: str, value: Any, unit: Unit, command: str | None = None) -> Figure:
    """A number that hardware or a setting allows at most."""
    return Figure(name=name, value=value, unit=unit, kind=NumberKind.LIMIT, command=command)
