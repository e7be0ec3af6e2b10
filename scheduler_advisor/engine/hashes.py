"""Digests of inputs, so that a result is found again and never mistaken for another."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

VERSION = "2"  # of the engine's semantics: raised whenever a start time can change


def digest(*parts: Any) -> str:
    """A hash of arrays, numbers, texts and tuples of them; order and types count."""
    state = hashlib.sha256()
    for part in parts:
        _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, part: Any) -> None:
    if isinstance(part, np.ndarray) and part.dtype.kind in "iub":
        state.update(f"<{part.shape}>".encode())
        state.update(np.ascontiguousarray(part, dtype="<i8"))
    elif isinstance(part, np.ndarray):
        _feed(state, tuple(part.tolist()))
    elif hasattr(part, "codes"):
        # Codes alone would depend on names that no job uses.
        used, codes = np.unique(part.codes, return_inverse=True)
        _feed(state, codes.reshape(-1))
        _feed(state, tuple(part.names[int(code)] for code in used))
    elif isinstance(part, tuple | list):
        state.update(f"({len(part)}".encode())
        for item in part:
            _feed(state, item)
    else:
        text = repr(part).encode()
        state.update(f"{len(text)}:".encode() + text)
