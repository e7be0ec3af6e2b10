"""Spans of time as Slurm writes them: ``[D-]HH:MM:SS[.mmm]``, ``MM:SS``, minutes, UNLIMITED."""

from __future__ import annotations

import re

from collector.slurm.refusal import MalformedError, shown

_SPAN = re.compile(
    r"(?:(?P<days>\d{1,6})-)?(?:(?P<hours>\d{1,7}):)?(?P<minutes>\d{1,7}):(?P<seconds>\d{1,2})"
    r"(?:\.\d+)?\Z",
    re.ASCII,
)
_UNSET = frozenset({"", "INVALID", "Unknown", "None", "N/A", "NOT_SET", "NONE", "(null)"})
_NO_LIMIT = frozenset({"UNLIMITED", "INFINITE", "INFINITY"})
PARTITION_LIMIT = "partition_limit"


def seconds(text: str) -> int | None:
    """A span in whole seconds, parts of a second cut off; None where Slurm says it has none."""
    if text in _UNSET:
        return None
    match = _SPAN.match(text)
    if match is None:
        raise MalformedError(f"time span {shown(text)} is not [D-]HH:MM:SS")
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def limit_seconds(text: str) -> int | None:
    """A time limit in seconds, from whole minutes (TimelimitRaw) or a span; None = no limit known.

    `PARTITION_LIMIT` has to be looked up by the caller and is None here.
    """
    if text.upper() in _NO_LIMIT or text in _UNSET or text.lower() == PARTITION_LIMIT:
        return None
    if text.isascii() and text.isdigit() and len(text) < 12:
        return int(text) * 60
    return seconds(text)
