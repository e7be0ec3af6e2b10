"""Columns of text into columns of values; a value that cannot be read is refused with its line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm import stamp
from collector.slurm.delimited import Delimited
from collector.slurm.refusal import MalformedError, refusal

Value = TypeVar("Value")
_UNSET = pa.array(stamp.UNSET)


def looked_up(
    rows: Delimited, name: str, parse: Callable[[str], Value], remedy: str
) -> tuple[list[Value], np.ndarray]:
    """``parse`` applied once per distinct text of a column: (values, index of each row's value)."""
    encoded = rows.column(name).dictionary_encode()
    values: list[Value] = []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            values.append(parse(text))
        except MalformedError as error:
            first = int(np.argmax(_codes(encoded) == code))
            line = int(rows.lines[first])
            raise refusal(rows.source, line, f"{name}: {error}", remedy) from error
    return values, _codes(encoded)


def mapped(
    rows: Delimited, name: str, parse: Callable[[str], Value], kind: pa.DataType, remedy: str
) -> pa.Array:
    """A column of ``parse(text)`` as Arrow ``kind``."""
    values, codes = looked_up(rows, name, parse, remedy)
    return pa.array(values, kind).take(pa.array(codes))


def texts(rows: Delimited, name: str, *, unset: tuple[str, ...] = ("",)) -> pa.Array:
    """A column of text, null where it is one of ``unset``."""
    column = rows.column(name)
    return pc.if_else(pc.is_in(column, pa.array(unset)), pa.scalar(None, pa.string()), column)


def integers(rows: Delimited, name: str, remedy: str) -> pa.Array:
    """A column of whole numbers, null where it is empty."""
    column = texts(rows, name, unset=("", "Unknown", "None", "N/A", "(null)"))
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return mapped(rows, name, _integer, pa.int64(), remedy)


def instants(rows: Delimited, name: str, zone: tzinfo, remedy: str) -> pa.Array:
    """A column of epoch seconds (int64), null where Slurm has no instant; see `stamp`."""
    column = rows.column(name)
    filled = pc.if_else(pc.is_in(column, _UNSET), pa.scalar(None, pa.string()), column)
    values = _cast_epochs(filled) or _cast_iso(filled, zone)
    if values is None or not _in_range(values):
        return mapped(rows, name, lambda text: stamp.epoch(text, zone), pa.int64(), remedy)
    return values


def zoneless(rows: Delimited, name: str) -> bool:
    """Whether some instant of the column is written without an offset and not as epoch."""
    plain = pc.match_substring_regex(rows.column(name), r"^\d{4}-.*T\d\d:\d\d(:\d\d)?(\.\d+)?$")
    return bool(pc.any(plain).as_py())


def _codes(encoded: pa.DictionaryArray) -> np.ndarray:
    return np.asarray(encoded.indices)


def _integer(text: str) -> int | None:
    if text in ("", "Unknown", "None", "N/A", "(null)"):
        return None
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 18):
        raise MalformedError(f"{text[:40]!r} is no whole number")
    return int(text)


def _cast_epochs(column: pa.Array) -> pa.Array | None:
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return None


def _cast_iso(column: pa.Array, zone: tzinfo) -> pa.Array | None:
    """The fast way for a column that is ISO in UTC throughout."""
    if zone is not UTC:
        return None
    try:
        return pc.cast(pc.cast(column, pa.timestamp("s")), pa.int64())
    except pa.ArrowInvalid:
        return None


def _in_range(values: pa.Array) -> bool:
    bounds = pc.min_max(values).as_py()
    if bounds["min"] is None:
        return True
    return bool(bounds["min"] >= stamp.EARLIEST and bounds["max"] < stamp.LATEST)
