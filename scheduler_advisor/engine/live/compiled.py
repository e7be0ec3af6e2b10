"""How this driver is compiled: as the rest of the engine, and each function once.

Numba compiles a function again for every constant that it is called with, and for the constant
that a variable begins with, though it takes other values later. Half of this driver's time to
compile went into that. Here constants count as the whole numbers that they are; where a function
dissolves into its caller the constant is known there anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba.core import types

from scheduler_advisor.engine.jit import kernel as any_kernel
from scheduler_advisor.engine.jit import leaf as any_leaf

F = TypeVar("F", bound=Callable[..., object])
_types: Any = types  # has no stub


def kernel(function: F) -> F:
    """`engine.jit.kernel`, once for all constants."""
    return _for_all_constants(any_kernel(function))


def leaf(function: F) -> F:
    """`engine.jit.leaf`, once for all constants."""
    return _for_all_constants(any_leaf(function))


def _for_all_constants(compiled: Any) -> Any:
    found = getattr(compiled, "get_call_template", None)  # absent where the compiler is off
    if found is not None:

        def template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            plain = {name: _types.unliteral(one) for name, one in kws.items()}
            return found(tuple(_types.unliteral(one) for one in args), plain)

        compiled.get_call_template = template
    return compiled
