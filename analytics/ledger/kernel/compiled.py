"""How the ledger's loops are compiled: as little as can be, and never in an old form.

Python makes every array, the loops make none and count no references: counting took most of the
compiler's time (docs/decisions/0010-the-ledgers-loops-make-no-arrays.md). Everything below is plain
Python with NUMBA_DISABLE_JIT=1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = njit  # its stub does not know `_nrt`
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


def leaf(function: F) -> F:
    """A loop that only other loops call."""
    return cast(F, _njit(**_OPTIONS)(function))


def driver(function: F) -> F:
    """A loop that Python calls: compiled once per machine, kept on disk.

    numba looks only at the driver's own file, so the entry carries a digest of the whole folder.
    """
    return cast(F, _stamped(_njit(cache=True, **_OPTIONS)(function)))


def maker(function: F) -> F:
    """A driver that must make arrays as it goes."""
    return cast(F, _stamped(_njit(cache=True, error_model="numpy")(function)))


def _stamped(compiled: Any) -> Any:
    if hasattr(compiled, "compile"):  # absent where the compiler is switched off
        compiled.compile = _lightly(compiled.compile)
    files = getattr(compiled, "_cache", None)  # absent where the compiler is switched off
    if files is not None:
        files._cache_file._source_stamp = _digest()
    return compiled


def _lightly(compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compiles at the first level of optimisation, a tenth sooner for loops as fast, and leaves the
    compiler as it was."""

    def compiled(signature: Any) -> Any:
        settings: Any = config
        before = settings.OPT
        settings.OPT = type(before)(min(int(before), 1))
        try:
            return compile_(signature)
        finally:
            settings.OPT = before

    return compiled


@cache
def _digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
