"""Trackable resources: ``billing=64,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=524288M,node=1``.

Generic and typed GPU counts may both be there and mean the same devices: they are never added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from collector.slurm.refusal import MalformedError, shown

_AMOUNT = re.compile(r"(\d+)(?:\.(\d+))?([KMGTPE]?)\Z", re.ASCII)
_MIB = {
    "": 1.0,
    "K": 1 / 1024,
    "M": 1.0,
    "G": 1024.0,
    "T": 1024.0**2,
    "P": 1024.0**3,
    "E": 1024.0**4,
}
_LARGEST = 1 << 53


@dataclass(frozen=True, slots=True)
class Tres:
    """One list of trackable resources; None = the list does not name it."""

    cpus: int | None = None
    mem_mib: int | None = None
    nodes: int | None = None
    gpus_generic: int | None = None
    gpus_by_type: dict[str, int] = field(default_factory=dict)
    shared_gpus: bool = False
    """It names shards or MPS shares, which are no whole GPUs."""

    @property
    def gpus(self) -> int:
        """Whole GPUs (MIG instances count as Slurm counts them, one each): generic, else typed."""
        if self.gpus_generic is not None:
            return self.gpus_generic
        return sum(self.gpus_by_type.values())


def parse(text: str) -> Tres | None:
    """The resources in ``text``; None for an empty list. Raises MalformedError."""
    if text in ("", "(null)", "None", "N/A"):
        return None
    items = text.split(",")
    try:
        amounts = dict([item.split("=", 1) for item in items])
    except ValueError:
        raise _malformed(text, items) from None
    if len(amounts) != len(items) or "" in amounts or "" in amounts.values():
        raise _malformed(text, items)
    return _from_amounts(amounts)


def render(tres: Tres) -> str:
    """The list in Slurm's own spelling (``--noconvert``); `parse` gives the same resources back."""
    items = {
        "cpu": tres.cpus,
        "gres/gpu": tres.gpus_generic,
        "mem": None if tres.mem_mib is None else f"{tres.mem_mib}M",
        "node": tres.nodes,
        "gres/shard": 1 if tres.shared_gpus else None,
    } | {f"gres/gpu:{kind}": count for kind, count in tres.gpus_by_type.items()}
    return ",".join(f"{name}={amount}" for name, amount in items.items() if amount is not None)


def _from_amounts(amounts: dict[str, str]) -> Tres:
    by_type: dict[str, int] = {}
    shared = False
    for name in amounts:
        if name.startswith("gres/gpu:"):
            by_type[name[len("gres/gpu:") :].lower()] = _count(name, amounts[name])
        elif name.startswith(("gres/shard", "gres/mps")):
            shared = True
    return Tres(
        _optional(amounts, "cpu"),
        _mib(amounts["mem"]) if "mem" in amounts else None,
        _optional(amounts, "node"),
        _optional(amounts, "gres/gpu"),
        by_type,
        shared,
    )


def _malformed(text: str, items: list[str]) -> MalformedError:
    names: set[str] = set()
    for item in items:
        name, equals, amount = item.partition("=")
        if not equals or not name or not amount:
            return MalformedError(f"TRES list {shown(text)} holds {shown(item)}, not name=amount")
        if name in names:
            return MalformedError(f"TRES list {shown(text)} names {shown(name)} twice")
        names.add(name)
    return MalformedError(f"TRES list {shown(text)} cannot be read")


def _optional(amounts: dict[str, str], name: str) -> int | None:
    return _count(name, amounts[name]) if name in amounts else None


def _count(name: str, amount: str) -> int:
    if not (amount.isascii() and amount.isdigit()) or len(amount) > 15:
        raise MalformedError(f"TRES {name} has the amount {shown(amount)}, not a whole number")
    return int(amount)


def _mib(amount: str) -> int:
    if amount[-1:] == "M" and amount[:-1].isdigit() and len(amount) < 15 and amount.isascii():
        return int(amount[:-1])
    match = _AMOUNT.match(amount)
    if match is None:
        raise MalformedError(f"TRES mem has the amount {shown(amount)}")
    whole, fraction, unit = match.groups()
    mib = float(f"{whole}.{fraction or 0}") * _MIB[unit]
    if mib >= _LARGEST:
        raise MalformedError(f"TRES mem has the amount {shown(amount)}")
    return int(mib)
