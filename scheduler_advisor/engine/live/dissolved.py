"""Functions with one caller, which become a part of it before anything is compiled.

A kernel's library holds all that it calls, and is made better as a whole once more at every level
of calls. The search for victims lay seven levels deep: most of the time to compile went there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])
_njit: Any = njit  # its stub does not know `_nrt`


def dissolved(function: F) -> F:
    """Written apart to be read apart; the caller's compiled code contains it."""
    return cast(F, _njit(inline="always", error_model="numpy", _nrt=False)(function))
