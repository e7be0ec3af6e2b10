"""Generic resources of a node or job: ``gpu:h100:8(S:0-1),gpu:h100_1g.10gb:14,shard:32``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from collector.slurm.refusal import MalformedError, shown

_ITEM = re.compile(
    r"(?:gres[:/])?gpu(?::(?P<kind>[^:=()]+))?[:=](?P<count>\d{1,9})(?P<k>[KM]?)\Z", re.ASCII
)
_BARE = re.compile(r"(?:gres[:/])?gpu(?::(?P<kind>[^:=()\d][^:=()]*))?\Z", re.ASCII)
_FACTOR = {"": 1, "K": 1024, "M": 1024**2}


def gpus_by_type(text: str) -> dict[str | None, int]:
    """GPUs per type, lower case (None = without a type); shards, MPS and others are left out.

    ``gpu:x:0`` is no GPU. A type that repeats (several sockets) is summed.
    """
    counts: dict[str | None, int] = {}
    for item in items(text):
        name = re.split(r"[:=/]", item.removeprefix("gres:").removeprefix("gres/"), maxsplit=1)[0]
        if name != "gpu":
            continue
        kind, count = _parse(item, text)
        if count:
            counts[kind] = counts.get(kind, 0) + count
    return counts


def items(text: str) -> Iterator[str]:
    """The comma-separated items without what stands in parentheses (``(S:0-1)``, ``(IDX:0,2)``)."""
    bare = re.sub(r"\([^()]*\)", "", text.replace(":(null):", ":no_type:"))
    if "(" in bare or ")" in bare:
        raise MalformedError(f"Gres {shown(text)} has unbalanced parentheses")
    for item in bare.split(","):
        if item.strip():
            yield item.strip()


def _parse(item: str, text: str) -> tuple[str | None, int]:
    match = _ITEM.match(item)
    if match is not None:
        kind = match.group("kind")
        count = int(match.group("count")) * _FACTOR[match.group("k")]
    else:
        bare = _BARE.match(item)
        if bare is None:
            raise MalformedError(f"Gres {shown(text)} holds {shown(item)}, not gpu[:type]:count")
        kind, count = bare.group("kind"), 1
    return (None if kind in (None, "(null)", "no_type") else kind.lower()), count
