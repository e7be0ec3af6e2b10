"""How the kernels of this package are compiled, and why their cache can be trusted.

numba's file cache looks only at the file of the cached function, so an edited leaf in another file
would go on running in its old form. The drivers' cache entries are therefore stamped with a digest
of every source file of this package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


# No reference counting: every array is owned by Python for as long as a kernel runs, and counting
# each array of each named tuple at each call cost 5 to 10 times the work itself (docs/decisions/).
_njit: Any = njit  # its stub does not know `_nrt`
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


def leaf(function: F) -> F:
    """A small kernel that is inlined into its caller; it cannot make arrays."""
    return cast(F, _njit(forceinline=True, **_OPTIONS)(function))


def driver(function: F) -> F:
    """A loop that is compiled once per machine and cached on disk; it cannot make arrays."""
    compiled = _njit(cache=True, **_OPTIONS)(function)
    files = getattr(compiled, "_cache", None)  # absent where the compiler is switched off
    if files is not None:
        files._cache_file._source_stamp = sources_digest(Path(__file__).parent)
    return cast(F, compiled)


@cache
def sources_digest(folder: Path) -> str:
    """A digest of every source file in ``folder``."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
