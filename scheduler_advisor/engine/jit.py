"""The compiler, at arm's length: with NUMBA_DISABLE_JIT=1 everything below is plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """A function called from Python or from rare branches; compiled once, kept in the cache."""
    return cast(F, njit(cache=True, error_model="numpy", _nrt=False)(function))


def leaf(function: F) -> F:
    """A small function of a hot loop; it must dissolve into its caller to cost nothing."""
    return cast(F, njit(forceinline=True, cache=True, error_model="numpy", _nrt=False)(function))
