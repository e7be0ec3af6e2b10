"""A delimited file as columns of text, and the numbers in them, with the line of every fault."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.errors import ImportRefusedError

Bools = NDArray[np.bool_]
Numbers = NDArray[np.float64]

_MOST = 2**62


def refused(path: Path, line: int | None, what: str, remedy: str) -> ImportRefusedError:
    """The error for a broken file: where, what, and what to do."""
    where = path.name if line is None else f"{path.name}, line {line}"
    return ImportRefusedError(f"{where}: {what}; {remedy}. Nothing was taken in.")


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """The file as text, unpacked if its name ends in .gz; what cannot be read is refused."""
    try:
        unpack = gzip.open if path.suffix == ".gz" else Path.open
        with unpack(path, "rt", encoding="utf-8-sig", newline="") as text:
            yield cast(IO[str], text)
    except FileNotFoundError:
        raise refused(path, None, f"there is no such file at {path}", "check the path") from None
    except IsADirectoryError:
        raise refused(path, None, "this is a folder", "name the file in it") from None
    except UnicodeDecodeError as error:
        raise refused(path, None, f"not UTF-8 text ({error.reason})", "convert it") from None
    except (OSError, EOFError) as error:
        raise refused(path, None, f"cannot be read ({error})", "get a whole copy") from None


class Columns:
    """The columns of a file, by name, as text; ``lines[i]`` is the line of row ``i``."""

    def __init__(self, path: Path, header: Sequence[str], lines: list[int]) -> None:
        self.path = path
        self.header = tuple(header)
        self.lines = lines
        self._text: dict[str, list[str]] = {}

    @classmethod
    def read(cls, path: Path, *, header: Sequence[str] | None = None) -> Columns:
        """A comma-separated file. Without ``header`` its first line names the columns."""
        with opened(path) as text:
            reader = csv.reader(text)
            names = [name.strip() for name in (header or next(reader, []))]
            rows, lines = [], []
            for row in reader:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                if len(row) != len(names):
                    what = f"{len(row)} fields where {len(names)} columns are named"
                    raise refused(path, reader.line_num, what, "correct or delete the line")
                rows.append(row)
                lines.append(reader.line_num)
        columns = cls(path, names, lines)
        fields = zip(*rows, strict=True) if rows else ([] for _ in names)
        columns._text = {name: list(field) for name, field in zip(names, fields, strict=True)}
        return columns

    def add(self, name: str, text: list[str]) -> None:
        """Give a named column its text."""
        self._text[name] = text

    def renamed(self, names: Mapping[str, str]) -> Columns:
        """The same columns, some under another name."""
        columns = Columns(self.path, [names.get(name, name) for name in self.header], self.lines)
        columns._text = {names.get(name, name): text for name, text in self._text.items()}
        return columns

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.header

    def require(self, *names: str) -> None:
        """Refuse a file without these columns, or without any row."""
        missing = [name for name in names if name not in self.header]
        if missing:
            what = f"no column {', '.join(missing)} (found: {', '.join(self.header) or 'none'})"
            raise refused(self.path, 1, what, "check --format, or name the columns so")
        if not self.lines:
            raise refused(self.path, None, "no rows", "give a file that holds some")

    def text(self, name: str) -> list[str]:
        """The column as it stands."""
        return self._text[name]

    def names(self, name: str) -> list[str | None]:
        """The column with blanks as None; all None where there is no such column."""
        if name not in self.header:
            return [None] * len(self)
        return [value.strip() or None for value in self._text[name]]

    def numbers(self, name: str) -> tuple[Numbers, Bools]:
        """The column as numbers, and where there is one; anything else is refused with its line."""
        if name not in self.header:
            return np.zeros(len(self)), np.zeros(len(self), dtype=bool)
        text = self._text[name]
        known = np.array([value.strip() not in _BLANK for value in text], dtype=bool)
        try:
            values = np.array(text if known.all() else _zero_blanks(text, known), dtype=np.float64)
        except ValueError:
            at = next(i for i, value in enumerate(text) if known[i] and not _is_number(value))
            raise self.refused(at, f"{name} is {text[at]!r}, not a number") from None
        odd = np.flatnonzero(~np.isfinite(values) | (np.abs(values) > _MOST))
        if len(odd):
            at = int(odd[0])
            raise self.refused(at, f"{name} is {text[at]!r}, which is out of range")
        return values, known

    def whole(self, name: str, *, least: int | None = None, needed: bool = False) -> pa.Array:
        """The column as whole numbers (fractions round half up), NULL where it is blank."""
        values, known = self.numbers(name)
        rounded = np.floor(values + 0.5).astype(np.int64)
        if needed and not known.all():
            raise self.refused(int(np.argmin(known)), f"{name} is empty")
        if least is not None:
            small = np.flatnonzero(known & (rounded < least))
            if len(small):
                at = int(small[0])
                raise self.refused(at, f"{name} is {self._text[name][at]!r}, less than {least}")
        return pa.array(rounded, mask=~known)

    def refused(self, row: int, what: str) -> ImportRefusedError:
        """The error for what one row says."""
        return refused(self.path, self.lines[row], what, "correct or delete the line")


_BLANK = frozenset({"", "None", "NULL", "NaN", "nan", "N/A", "Unknown"})


def _zero_blanks(text: Sequence[str], known: Bools) -> list[str]:
    return [value if there else "0" for value, there in zip(text, known, strict=True)]


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
