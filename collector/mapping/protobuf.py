"""Just enough of protobuf's wire format to read the kubelet's answer."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def fields(raw: bytes) -> Iterator[tuple[int, bytes | int]]:
    """(field number, value) in order; nested messages and strings as bytes.

    Raises ValueError for bytes that are no message.
    """
    position, end = 0, len(raw)
    while position < end:
        tag, position = _varint(raw, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(raw, position)
            yield number, value
            continue
        if kind == _LENGTH:
            size, position = _varint(raw, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} is not known")
        if position + size > end:
            raise ValueError("the message is cut off")
        yield number, raw[position : position + size]
        position += size


def texts(raw: bytes, number: int) -> list[str]:
    """The strings in field ``number``."""
    return [
        v.decode("utf-8", "replace") for n, v in fields(raw) if n == number and isinstance(v, bytes)
    ]


def messages(raw: bytes, number: int) -> list[bytes]:
    """The nested messages in field ``number``."""
    return [value for n, value in fields(raw) if n == number and isinstance(value, bytes)]


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise ValueError("a number is cut off")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
