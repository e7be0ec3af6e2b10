"""Files that the kernel makes as they are read: small, many of them, at every tick."""

from __future__ import annotations

import os
from pathlib import Path

_MOST_BYTES = 2**18  # /proc/stat of the largest nodes


def content(file: Path | str, most: int = _MOST_BYTES) -> bytes:
    """What the file says now, in one read; raises OSError.

    Without Python's file objects, which cost more than the kernel's own work.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)
