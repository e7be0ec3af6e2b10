"""Files that a command writes: whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from unstrand.errors import OutputError


def write_result(file: Path, content: str | bytes) -> None:
    """Write ``content``; a file of that name stays as it is until the new one is whole.

    Raises OutputError when it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    if file.exists() and not file.is_file():  # /dev/stdout and the like
        _put(file, data)
        return
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        _put(part, data)
        part.replace(file)
    except OSError as error:
        raise OutputError(f"cannot write {file}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _put(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise OutputError(f"cannot write {file}: {error.strerror}; check the folder") from error
