"""Bytes of a file that ought to be plain UTF-8 text."""

from __future__ import annotations

from collector.slurm.refusal import refusal


def cleaned(source: str, data: bytes, remedy: str) -> bytes:
    """``data`` without byte order mark and carriage returns. Raises ImportRefusedError."""
    if b"\x00" in data:
        line = data.count(b"\n", 0, data.index(b"\x00")) + 1
        raise refusal(source, line, "this is no UTF-8 text (it holds a zero byte)", remedy)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise refusal(source, line, what, "Convert the file with `iconv -t UTF-8`") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    return data
