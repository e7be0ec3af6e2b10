"""A CSV file that a person wrote, line by line: prices and owners."""

from __future__ import annotations

import csv
from collections.abc import Callable, Set
from decimal import Decimal, InvalidOperation
from io import StringIO
from typing import TypeVar

from analytics.errors import AnalyticsError

T = TypeVar("T")


def read_sheet(
    text: str,
    name: str,
    needed: Set[str],
    error: type[AnalyticsError],
    read: Callable[[dict[str, str]], T],
) -> list[T]:
    """What ``read`` makes of every line after the header, whose cells come without outer blanks.

    Raises ``error`` with file, line and reason; nothing of a broken file is returned. A quote that
    is never closed is an error: it would swallow the lines after it without a word. So is a header
    alone: it would empty a book that it replaces.
    """
    lines = csv.DictReader(StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        header = list(lines.fieldnames or ())
        lacking = sorted(needed - set(header))
        twice = sorted({column for column in header if column and header.count(column) > 1})
        if not lacking and not twice:
            found = [read(_plain(cells)) for cells in lines]
            if not found:
                raise error("there is a header and no line after it; nothing was changed")
            return found
    except csv.Error as problem:
        where = f"{name} line {lines.reader.line_num}"
        raise error(f"{where}: {problem}; is a quote not closed, or a cell too long?") from problem
    except (AnalyticsError, ValueError) as problem:
        raise error(f"{name} line {lines.line_num}: {problem}") from problem
    if lacking:
        raise error(f"{name}: the header lacks {', '.join(lacking)}")
    raise error(f"{name}: the header names {', '.join(twice)} twice")


def _plain(cells: dict[str, str]) -> dict[str, str]:
    for column, cell in cells.items():
        if "\0" in (cell or ""):
            raise ValueError(f"{column} holds a zero byte: write the file as UTF-8 text")
    return {column: (cell or "").strip() for column, cell in cells.items() if column}


def decimal_cell(text: str, column: str, error: type[AnalyticsError]) -> Decimal:
    """An exact number as people write it (1234.56); ``error`` for anything else."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise error(f"{column} {text!r} is no number: write 1234.56")
    return number
