"""Results as a table for people, or as CSV, JSON or Parquet for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from analytics.money import shown_parts
from unstrand.errors import OutputError

Row = Mapping[str, Any]
_MONEY = ("cost", "amount")
_WORD = 20
"""Characters of a word in a text that stay on one line, such as a time to the second."""
_TERMINAL_ROWS = 200
"""What a terminal is shown of a long table: some screens, not thousands of lines."""


class Format(StrEnum):
    """How a command prints data."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def print_document(
    document: Mapping[str, Any], how: Format, *, out: Path | None = None, notes: Sequence[str] = ()
) -> None:
    """A result whose ``rows`` are a table: all of it as JSON, its rows in the other formats.

    ``notes`` go under a table, and to stderr beside CSV and Parquet, whose rows must stay a table.
    """
    if how is Format.JSON:
        _text(json.dumps(document, indent=2, ensure_ascii=False, default=_plain) + "\n", out)
        return
    rows: Sequence[Row] = document["rows"]
    if how is Format.TABLE:
        looked_at = out is None and sys.stdout.isatty()
        _text(_drawn(rows, document.get("total"), notes, looked_at=looked_at), out)
        return
    if how is Format.CSV:
        _text(_csv(rows), out)
    else:
        _bytes(_parquet(rows), out)
    for note in notes:
        sys.stderr.write(note + "\n")


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if value is None or isinstance(value, (str, int, float, Decimal)):
        return value
    return (
        json.dumps(value, ensure_ascii=False, default=_plain) if _nested(value) else _plain(value)
    )


def _nested(value: object) -> bool:
    return isinstance(value, (list, tuple, dict))


def _is_money(name: str) -> bool:
    return name in _MONEY or name.endswith("_cost")


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _parquet(rows: Sequence[Row]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for name in _columns(rows):
        values = [row.get(name) for row in rows]
        if _is_money(name):
            money = [None if value is None else Decimal(str(value)) for value in values]
            columns[name] = pa.array(money, pa.decimal128(38, 6))
        else:
            columns[name] = pa.array(values)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _drawn(rows: Sequence[Row], total: Row | None, notes: Sequence[str], *, looked_at: bool) -> str:
    # A column that says nothing in any row only makes the others harder to read.
    columns = [name for name in _columns(rows) if any(_says(row.get(name)) for row in rows)]
    shown = len(rows) if not looked_at else _TERMINAL_ROWS
    cells = [
        [_told(name, row.get(name)) for name in columns] for row in _in_cents(rows, total)[:shown]
    ]
    if total is not None and rows:
        last = [_told(name, total.get(name)) if name in total else "" for name in columns]
        cells.append([last[0] or "total", *last[1:]])
    below = list(notes)
    if len(rows) > shown:
        more = f"{len(rows) - shown:,} more rows: --out FILE, --format csv or a pipe has them all"
        below.insert(0, more)
    right = [_is_right(name, rows) for name in columns]
    if not rows:
        table = "no rows\n"
    elif looked_at:
        table = _for_terminal(columns, cells, right, total=total is not None)
    else:
        table = _aligned([[_heading(name) for name in columns], *cells], right)
    return "".join([table, *(f"{line}\n" for line in below)])


def _is_right(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column is of figures, which stand to the right."""
    return _is_money(name) or all(isinstance(row.get(name), (int, float, NoneType)) for row in rows)


def _aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Plain text in columns, two spaces apart, a line for each line however long it is."""
    flat = [[" ".join(cell.split("\n")) for cell in line] for line in lines]
    widths = [max(cell_len(line[at]) for line in flat) for at in range(len(right))]
    text = []
    for line in flat:
        padded = [
            " " * (width - cell_len(cell)) + cell if to_right
            else cell + " " * (width - cell_len(cell))
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]  # fmt: skip
        text.append("  ".join(padded).rstrip() + "\n")
    return "".join(text)


def _for_terminal(
    columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], *, total: bool
) -> str:
    """A table as wide as the terminal: figures and names never wrap, long texts do, headings have
    a word a line. A figure cut short is a wrong figure: too narrow a terminal folds lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, name in enumerate(columns):
        short = right[at] or at == 0
        words = _heading(name).split()
        texts = [line[at] for line in cells]
        if not short:
            texts = [word[:_WORD] for text in texts for word in text.split()]
        table.add_column(
            "\n".join(words),
            justify="right" if right[at] else "left",
            vertical="bottom",
            no_wrap=short,
            overflow="fold",
            min_width=max(cell_len(text) for text in [*texts, *words]),
        )
    for number, line in enumerate(cells, 1):
        table.add_row(*line, style="bold" if total and number == len(cells) else None)
    least = sum((column.min_width or 0) + 2 for column in table.columns)
    text = io.StringIO()
    width = max(least, Console().width)
    Console(file=text, force_terminal=True, markup=False, highlight=False, width=width).print(table)
    return text.getvalue()


def _in_cents(rows: Sequence[Row], total: Row | None) -> Sequence[Row]:
    """The rows with money that adds up to a total in whole cents that do so too: the same cents as
    on statements."""
    shown = [dict(row) for row in rows]
    for name in total or ():
        values = [Decimal(str(row.get(name) or 0)) for row in rows] if name.endswith("cost") else []
        if values and sum(values) == Decimal(str((total or {})[name] or 0)):
            cents = shown_parts([Fraction(value) for value in values], Decimal("0.01"))
            for row, amount in zip(shown, cents, strict=True):
                if row.get(name) is not None:
                    row[name] = amount
    return shown


def _says(value: object) -> bool:
    return not _nested(value) and value not in (None, "", 0)


def _heading(name: str) -> str:
    return name.replace("_gpu_hours", " h").replace("gpu_hours", "GPU-hours").replace("_", " ")


def _told(name: str, value: object) -> str:
    """A cell for people: thousands separators, money in cents, a dash for what is not known."""
    if value is None:
        return "-"
    if name.endswith("cost"):
        return f"{Decimal(str(value)):,.2f}"
    return _number(name, value) if isinstance(value, (int, float)) else str(_cell(value))


def _number(name: str, value: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_ratio"):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _text(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        _bytes(text.encode(), out)


def _bytes(content: bytes, out: Path | None) -> None:
    if out is not None:
        try:
            out.write_bytes(content)
        except OSError as error:
            raise OutputError(f"cannot write {out}: {error.strerror}") from error
        return
    if sys.stdout.isatty():
        raise OutputError("Parquet is not for a terminal: name a file with --out, or redirect")
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
