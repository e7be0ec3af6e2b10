"""Lines with too many or too few cells: a free text, such as a job name, broke them.

A delimiter in the text makes a line too long, a line break makes it too short. Where the text is
the last column, the first piece looks like a whole row and what follows is the rest of its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm.refusal import shown

_FREE_TEXT = ("jobname", "name", "comment", "admincomment", "systemcomment", "submitline", "reason")

_TOOL_SPOKE = ("sacct: ", "slurm_", "slurmdbd: ")

Line = tuple[int, str]
"""A line's number, from 1, and its text."""


class NoRowError(ValueError):
    """A line that cannot be a row; the reader adds the source and what to do."""

    def __init__(self, odd: Line, width: int, delimiter: str) -> None:
        self.line, text = odd
        found = text.count(delimiter) + 1
        why = "the line is cut or no row" if found < width else "a cell holds the delimiter"
        super().__init__(f"{found} cells where {width} are expected ({why}): {shown(text)}")


def place(names: Sequence[str]) -> int | None:
    """The place of the one column that may hold anything, or None (none, or more than one)."""
    places = [index for index, name in enumerate(names) if name in _FREE_TEXT[:1]]
    if not places:
        places = [index for index, name in enumerate(names) if name in _FREE_TEXT]
    return places[0] if len(places) == 1 else None


def parted(
    odd: Sequence[Line],
    names: Sequence[str],
    delimiter: str,
    begun: tuple[int, re.Pattern[str]],
    first: int,
    cut: int | None,
) -> tuple[list[Line], list[Line]]:
    """``odd`` split in lines that have to be rows and rests of the last column's text.

    ``begun``: the place and the form of a cell that every row has and the rest of a name has not.
    ``first``: the number of the first row, before which no name can break. ``cut``: the number of
    a last line without an end, which is never a rest; nor is what a tool said between the rows.
    """
    if place(names) != len(names) - 1:
        return list(odd), []
    mark, form = begun
    rows: list[Line] = []
    rests: list[Line] = []
    for line, text in odd:
        cells = text.split(delimiter)
        row = len(cells) >= len(names) or (len(cells) > mark and form.match(cells[mark]))
        row = row or line <= first or line == cut or text.startswith(_TOOL_SPOKE)
        (rows if row else rests).append((line, text))
    return rows, rests


def rows(odd: Sequence[Line], names: Sequence[str], delimiter: str) -> list[tuple[int, list[str]]]:
    """Rows of lines whose one free text holds delimiters or line breaks. Raises NoRowError."""
    free, found, index = place(names), [], 0
    while index < len(odd):
        line, text = odd[index]
        cells, taken = text.split(delimiter), 1
        while len(cells) < len(names) and free is not None and index + taken < len(odd):
            following, more = odd[index + taken]
            if following != line + taken:
                break
            text, taken = f"{text}\n{more}", taken + 1
            cells = text.split(delimiter)
        row = _fold(cells, len(names), free, delimiter)
        if row is None:
            raise NoRowError(odd[index], len(names), delimiter)
        found.append((line, row))
        index += taken
    return found


def lengthen(
    columns: dict[str, pa.Array], lines: np.ndarray, names: Sequence[str], rests: Sequence[Line]
) -> None:
    """Appends each rest to the last column of the row, no blank one, whose line is before it."""
    if not rests:
        return
    texts = columns[names[-1]].to_pylist()
    full = np.flatnonzero(np.any([pc.not_equal(c, "") for c in columns.values()], axis=0))
    order = full[np.argsort(lines[full], kind="stable")]
    at = np.searchsorted(lines[order], [line for line, _ in rests]) - 1
    for row, (_, rest) in zip(order[at], rests, strict=True):
        texts[row] = f"{texts[row]}\n{rest}"
    columns[names[-1]] = pa.array(texts, pa.string())


def _fold(cells: list[str], width: int, free: int | None, delimiter: str) -> list[str] | None:
    """``cells`` with the surplus folded into the free column; None if that cannot be the row."""
    surplus = len(cells) - width
    if free is None or surplus < 0:
        return None
    middle = delimiter.join(cells[free : free + surplus + 1])
    row = [*cells[:free], middle, *cells[free + surplus + 1 :]]
    if any("\n" in cell for index, cell in enumerate(row) if index != free):
        return None
    return row
