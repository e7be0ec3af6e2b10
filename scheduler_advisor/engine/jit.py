"""The compiler, at arm's length: with NUMBA_DISABLE_JIT=1 everything below is plain Python.

Kernels neither allocate nor raise, so reference counts and error branches are left out: counting
alone made the driver loop five times slower. numba's cache looks only at the file of the function
itself, though the functions that dissolve into it may have changed: here the cache's folder is
named after the sources of the whole engine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

F = TypeVar("F", bound=Callable[..., object])

_HERE = Path(__file__).parent
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}


def sources_digest() -> str:
    """Changes with any source file of the engine."""
    state = hashlib.sha256()
    for path in sorted(_HERE.rglob("*.py")):
        state.update(path.name.encode())
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def _cache_folder() -> str | None:
    """Beside the engine, where that can be written; else numba finds a place of its own."""
    folder = _HERE / "__pycache__"
    given: str = config.CACHE_DIR  # type: ignore[attr-defined]
    if given or not os.access(folder if folder.is_dir() else _HERE, os.W_OK):
        return None
    return str(folder / f"kernels-{sources_digest()}")


if folder := _cache_folder():
    config.CACHE_DIR = folder  # type: ignore[attr-defined]


def kernel(function: F) -> F:
    """A function called from Python or from rare branches; compiled once, kept in the cache."""
    return cast(F, njit(**_OPTIONS)(function))


def leaf(function: F) -> F:
    """A small function of a hot loop; it must dissolve into its caller to cost nothing."""
    return cast(F, njit(forceinline=True, **_OPTIONS)(function))
