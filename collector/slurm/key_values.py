"""``Key=value Key=value`` lines of ``scontrol -o``, where a value may hold spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from collector.slurm.refusal import refusal, shown

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][A-Za-z0-9_:/-]*)=")


def fields(line: str, keys: frozenset[str] | None = None) -> dict[str, str]:
    """The values by key; the first of a repeated key wins.

    ``keys``: the words that may start a new value; anything else with ``=`` belongs to the value
    before it (a drain reason may hold ``nhc=failed``).
    """
    found: dict[str, str] = {}
    name, start = "", 0
    for match in _KEY.finditer(line):
        if keys is not None and match.group(1) not in keys:
            continue
        if name:
            found.setdefault(name, line[start : match.start()].strip())
        name, start = match.group(1), match.end()
    if name:
        found.setdefault(name, line[start:].strip())
    return found


def records(source: str, text: str, first_key: str, remedy: str) -> Iterator[tuple[int, str]]:
    """Each record's first line number and text on one line; without ``-o`` records are joined.

    A record starts with ``first_key=``; blank lines and comments are skipped.
    """
    number, parts = 0, list[str]()
    mark = f"{first_key}="
    for line, raw in enumerate(text.splitlines(), start=1):
        content = raw.strip()
        if content.startswith(mark):
            if parts:
                yield number, " ".join(parts)
            number, parts = line, [content]
        elif content and not content.startswith("#"):
            if not parts or (raw[0] not in " \t"):
                what = f"expected a line that starts with {mark}, found {shown(content)}"
                raise refusal(source, line, what, remedy)
            parts.append(content)
    if parts:
        yield number, " ".join(parts)
