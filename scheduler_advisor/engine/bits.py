"""The lowest set bit of a 64-bit word, in one instruction where the compiler is on."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from scheduler_advisor.engine.jit import leaf

ONE = np.int64(1)
ALL = np.int64(-1)


@intrinsic
def _cttz(typing_context: Any, word: Any) -> Any:
    """llvm's count of trailing zeros; numba offers no function for it that is plain Python too."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.IntType(64)
        name = "llvm.cttz.i64"
        count = builder.module.globals.get(name)
        if count is None:
            count = ir.Function(
                builder.module, ir.FunctionType(kind, [kind, ir.IntType(1)]), name=name
            )
        return builder.call(count, [args[0], ir.Constant(ir.IntType(1), 1)])

    return types.int64(types.int64), generate


def _lowest_plain(word: int) -> int:
    bits = int(word) & 0xFFFFFFFFFFFFFFFF
    return (bits & -bits).bit_length() - 1


@leaf
def _lowest_compiled(word: int) -> int:
    return _cttz(word)  # type: ignore[call-arg]


_PLAIN: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
lowest = _lowest_plain if _PLAIN else _lowest_compiled


@leaf
def from_bit(bit: int) -> int:
    """A word with all bits at `bit` and above set."""
    return ALL << bit  # type: ignore[return-value]


@leaf
def set_bit(words: Any, at: int) -> None:
    words[at >> 6] |= ONE << (at & 63)


@leaf
def clear_bit(words: Any, at: int) -> None:
    words[at >> 6] &= ~(ONE << (at & 63))
