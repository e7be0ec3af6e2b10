"""The order of names with numbers in them: 4002_7 before 4002_10."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_PARTS = re.compile(r"\d+|\D+").findall
_PLAIN = re.compile(r"(\D*)(\d+)").fullmatch


def natural_order(names: list[str]) -> Callable[[str], Any]:
    """The key by which these names are to be sorted."""
    return str if _already(names) else _natural


def _already(names: list[str]) -> bool:
    """Whether names in their own order are in this one, too: the same text and then digits, as many
    in each."""
    text = names[0].rstrip("0123456789") if names else ""
    rest = "".join([name[len(text) :] for name in names])
    return (
        rest.isascii()
        and rest.isdigit()
        and not any(c.isdigit() for c in text)
        and len({len(name) for name in names}) == 1
        and all(name.startswith(text) for name in names)
    )


def _natural(name: str) -> tuple[int | str, ...]:
    """Numbers in a name count as numbers. Three places for each part."""
    if name.isdecimal():
        return 0, int(name), ""
    plain = _PLAIN(name)
    if plain is not None:
        text, number = plain.groups()
        return (1, 0, text, 0, int(number), "") if text else (0, int(number), "")
    found: list[int | str] = []
    for part in _PARTS(name):
        found += (0, int(part), "") if part.isdecimal() else (1, 0, part)
    return tuple(found)
