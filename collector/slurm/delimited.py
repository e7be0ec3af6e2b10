"""``-P`` output of Slurm's tools as columns of text, each row with its line number.

The regular lines go through Arrow's reader; only lines with another number of cells (a job name
that holds the delimiter or a line break) are looked at one by one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from collector.slurm import free_text, plain
from collector.slurm.refusal import refusal, shown

UNIT_SEPARATOR = "\x1f"
_DELIMITERS = ("|", UNIT_SEPARATOR, ";", "\t", "^", ",")
_WIDTH = re.compile(r"%-?\d+\Z", re.ASCII)
_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file may look like: the field that marks a header, and the formats without one.

    ``begun``: the text that the cell under a mark has in every row, where that can be told from
    free text; without it a line that is too short is never taken for the rest of a name.
    """

    marks: frozenset[str]
    formats: tuple[tuple[str, ...], ...]
    remedy: str
    begun: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Delimited:
    """Columns of text by lower-case field name; ``lines[i]`` is the line of row ``i``, from 1.

    ``rests``: lines that were taken for the rest of a broken name.
    """

    source: str
    columns: dict[str, pa.Array]
    lines: np.ndarray
    rests: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> pa.Array:
        """The column, or empty texts where the file does not have it."""
        if name in self.columns:
            return self.columns[name]
        return pa.repeat(pa.scalar(""), len(self))

    def take(self, mask: np.ndarray) -> Delimited:
        """The rows where ``mask`` is true."""
        keep = pa.array(mask)
        columns = {name: column.filter(keep) for name, column in self.columns.items()}
        return replace(self, columns=columns, lines=self.lines[mask])


def fields_of(text: str) -> tuple[str, ...]:
    """Lower-case field names of a ``--format`` value, without widths (``%30``)."""
    return tuple(_WIDTH.sub("", name.strip()).lower() for name in text.split(","))


def read(source: str, data: bytes, layout: Layout) -> Delimited:
    """The rows of ``data``; blank lines and repeated headers are left out.

    Raises ImportRefusedError for text that is not such a file, or a line that is not such a row.
    """
    data = plain.cleaned(source, data, layout.remedy)
    number, first = _first_line(source, data, layout)
    delimiter = _delimiter(first, layout)
    cells = first.split(delimiter)
    header = tuple(_WIDTH.sub("", cell.strip()).lower() for cell in cells)
    known = not layout.marks.isdisjoint(header)
    names = header if known else _format_of(source, number, first, layout, cells)
    _check_names(source, number, names, layout)
    table, odd = _read_regular(data, delimiter, names)
    regular = _line_numbers(len(table), [line for line, _ in odd])
    odd = [(line, text) for line, text in odd if text.strip()]
    cut = None if data.endswith(b"\n") else data.count(b"\n") + 1
    odd, rests = _rests_of_names(odd, names, delimiter, layout, (number + known, cut))
    try:
        repaired = free_text.rows(odd, names, delimiter)
    except free_text.NoRowError as error:
        raise refusal(source, error.line, str(error), layout.remedy) from None
    rows = _joined(source, table, regular, repaired, names)
    free_text.lengthen(rows.columns, rows.lines, names, rests)
    rows = replace(rows, rests=tuple(line for line, _ in rests))
    return _without_headers(rows, cells)


def _delimiter(first: str, layout: Layout) -> str:
    """The one that makes a header of the first line; without a header what Slurm uses itself."""
    for delimiter in _DELIMITERS:
        names = {cell.strip().lower() for cell in first.split(delimiter)}
        if not layout.marks.isdisjoint(names) and len(names) > 1:
            return delimiter
    return UNIT_SEPARATOR if UNIT_SEPARATOR in first else "|"


def _first_line(source: str, data: bytes, layout: Layout) -> tuple[int, str]:
    for number, raw in enumerate(io.BytesIO(data), start=1):
        text = raw.decode("utf-8").rstrip("\n")
        if text.strip():
            return number, text
    raise refusal(source, None, "the file is empty", layout.remedy)


def _format_of(
    source: str, number: int, first: str, layout: Layout, cells: Sequence[str]
) -> tuple[str, ...]:
    """The header-less format that the first line can be a row of."""
    for names in layout.formats:
        if len(cells) == len(names) or (
            len(cells) > len(names) and free_text.place(names) is not None
        ):
            return names
    raise refusal(
        source,
        number,
        f"no header line, and {len(cells)} cells fit no known format: {shown(first)}",
        layout.remedy,
    )


def _check_names(source: str, number: int, names: Sequence[str], layout: Layout) -> None:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise refusal(source, number, f"the header names {twice[0]} twice", layout.remedy)


def _read_regular(
    data: bytes, delimiter: str, names: Sequence[str]
) -> tuple[pa.Table, list[tuple[int, str]]]:
    odd: list[tuple[int, str]] = []

    def set_aside(row: csv.InvalidRow) -> str:
        odd.append((row.number, row.text))
        return "skip"

    keys = [f"{index}" for index in range(len(names))]
    table = csv.read_csv(
        io.BytesIO(data),
        read_options=csv.ReadOptions(use_threads=False, column_names=keys, block_size=_BLOCK_BYTES),
        parse_options=csv.ParseOptions(
            delimiter=delimiter,
            quote_char=False,
            double_quote=False,
            escape_char=False,
            ignore_empty_lines=False,
            invalid_row_handler=set_aside,
        ),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(keys, pa.string()), strings_can_be_null=False
        ),
    )
    return table, odd


def _rests_of_names(
    odd: list[tuple[int, str]],
    names: Sequence[str],
    delimiter: str,
    layout: Layout,
    ends: tuple[int, int | None],
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Odd lines that may be rows, and those that go on with the name of the row before them."""
    mark = next((index for index, name in enumerate(names) if name in layout.marks), None)
    if layout.begun is None or mark is None:
        return odd, []
    return free_text.parted(odd, names, delimiter, (mark, layout.begun), *ends)


def _line_numbers(rows: int, odd: Sequence[int]) -> np.ndarray:
    """The line of every regular row: all lines but the odd ones, in order."""
    every = np.arange(1, rows + len(odd) + 1, dtype=np.int64)
    return np.delete(every, np.asarray(odd, dtype=np.int64) - 1) if odd else every


def _joined(
    source: str,
    table: pa.Table,
    regular: np.ndarray,
    repaired: Sequence[tuple[int, list[str]]],
    names: Sequence[str],
) -> Delimited:
    columns: dict[str, pa.Array] = {}
    for index, name in enumerate(names):
        if name:
            extra = pa.array([row[index] for _, row in repaired], pa.string())
            chunks = [*table.column(index).chunks, extra]
            columns[name] = pa.concat_arrays(chunks)
    lines = np.concatenate([regular, np.array([line for line, _ in repaired], dtype=np.int64)])
    return Delimited(source, columns, lines)


def _without_headers(rows: Delimited, cells: Sequence[str]) -> Delimited:
    """Without blank lines and every line that repeats the header (files put one after another)."""
    names = list(rows.columns)
    first, second = rows.columns[names[0]], rows.columns[names[min(1, len(names) - 1)]]
    head = [cell for cell in cells if cell.strip()][:2]
    header = pc.and_(pc.equal(first, head[0]), pc.equal(second, head[-1]))
    keep = np.ones(len(rows), dtype=bool)
    if _WIDTH.sub("", head[0].strip()).lower() == names[0]:
        keep &= ~header.to_numpy(zero_copy_only=False)
    blank = np.ones(len(rows), dtype=bool)
    for column in rows.columns.values():
        blank &= pc.equal(column, "").to_numpy(zero_copy_only=False)
        if not blank.any():
            break
    return rows.take(keep & ~blank) if (blank.any() or not keep.all()) else rows
