"""Slurm hostlists: ``gn[01-03,7],login,rack[0-1]_blade[0-2]``.

Zero padding is significant (``[01-10]`` keeps two digits), brackets may stand anywhere and several
times in a name, and commas separate names only outside of brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, product

from collector.slurm.refusal import MalformedError, shown

MAX_HOSTS = 100_000
"""More names than this in one list are taken for a mistake (``n[0-99999999]``), not for a fleet."""

_NO_HOST = frozenset({"", "None assigned", "(null)", "None", "Unknown", "N/A"})
_PARTS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z", re.ASCII)
_FORBIDDEN = re.compile(r"[\s\[\]|=\x00]")
_NUMBERED = re.compile(r"(.*?)(\d{1,9})\Z", re.ASCII | re.DOTALL)


def expand(text: str, *, limit: int = MAX_HOSTS) -> list[str]:
    """The node names in ``text`` in its order, each once; empty for Slurm's words for "no node".

    Raises MalformedError for a broken list or one of more than ``limit`` names.
    """
    text = text.strip()
    if text in _NO_HOST:
        return []
    if "[" not in text and "]" not in text and "," not in text:
        return [_checked(text, text)]
    names: dict[str, None] = {}
    for part in _split(text):
        for name in _expand_one(part, text, limit):
            names[name] = None
            if len(names) > limit:
                raise MalformedError(f"hostlist {shown(text)} holds more than {limit} names")
    return list(names)


def compress(names: Iterable[str]) -> str:
    """The shortest list with one bracket group per prefix; `expand` gives the same names back."""
    groups: dict[tuple[str, int], set[int]] = {}
    plain: set[str] = set()
    for name in names:
        match = _NUMBERED.match(name)
        if match is None:
            plain.add(name)
            continue
        prefix, digits = match.groups()
        # Numbers that fill their width (10, 99) need no padding: any width may hold them.
        width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
        groups.setdefault((prefix, width), set()).add(int(digits))
    parts = [f"{prefix}{_bracket(numbers, width)}" for (prefix, width), numbers in groups.items()]
    return ",".join(sorted(plain) + sorted(parts))


def _bracket(numbers: set[int], width: int) -> str:
    if len(numbers) == 1:
        return f"{next(iter(numbers)):0{width}d}"
    ranges = []
    for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        values = [value for _, value in run]
        low, high = f"{values[0]:0{width}d}", f"{values[-1]:0{width}d}"
        ranges.append(low if low == high else f"{low}-{high}")
    return f"[{','.join(ranges)}]"


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for index, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
        if depth not in (0, 1):
            raise MalformedError(f"hostlist {shown(text)} has unbalanced brackets")
    if depth:
        raise MalformedError(f"hostlist {shown(text)} has unbalanced brackets")
    yield text[start:]


def _expand_one(part: str, text: str, limit: int) -> Iterator[str]:
    pieces = _PARTS.split(part)
    if len(pieces) == 1:
        yield _checked(part, text)
        return
    choices: list[list[str]] = []
    total = 1
    for index, piece in enumerate(pieces):
        choice = _numbers(piece, text, limit) if index % 2 else [piece]
        total *= len(choice)
        if total > limit:
            raise MalformedError(f"hostlist {shown(text)} holds more than {limit} names")
        choices.append(choice)
    for combination in product(*choices):
        yield _checked("".join(combination), text)


def _numbers(group: str, text: str, limit: int) -> list[str]:
    numbers: list[str] = []
    for item in group.split(","):
        match = _RANGE.match(item.strip())
        if match is None:
            raise MalformedError(f"hostlist {shown(text)} has the range {shown(item)}")
        low, high = match.group(1), match.group(2) or match.group(1)
        if max(len(low), len(high)) > 18 or int(low) > int(high):
            raise MalformedError(f"hostlist {shown(text)} has the range {shown(item)}")
        if len(numbers) + int(high) - int(low) + 1 > limit:
            raise MalformedError(f"hostlist {shown(text)} holds more than {limit} names")
        width = len(low)
        numbers.extend(f"{number:0{width}d}" for number in range(int(low), int(high) + 1))
    return numbers


def _checked(name: str, text: str) -> str:
    if not name or _FORBIDDEN.search(name):
        raise MalformedError(f"hostlist {shown(text)} holds the name {shown(name)}")
    return name
