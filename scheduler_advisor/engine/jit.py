"""The compiler, at arm's length: with NUMBA_DISABLE_JIT=1 everything below is plain Python.

Kernels neither allocate nor raise, so reference counts and error branches are left out: counting
alone made the driver loop five times slower. numba's cache looks only at the file of the function
itself, though the functions that dissolve into it may have changed: here an entry is stamped with
the sources of its module and of every module of the engine that this one imports, near or far.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

F = TypeVar("F", bound=Callable[..., object])

_HERE = Path(__file__).parent
_ENGINE = __name__.rpartition(".")[0]
_njit: Any = njit  # its stub does not know `_nrt`
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}


def kernel(function: F) -> F:
    """A function called from Python or from rare branches; compiled once, kept in the cache."""
    return cast(F, _stamped(_njit(**_OPTIONS)(function)))


def leaf(function: F) -> F:
    """A small function of a hot loop; it must dissolve into its caller to cost nothing."""
    return cast(F, _stamped(_njit(forceinline=True, **_OPTIONS)(function)))


def sources_digest(module: str, folder: Path = _HERE) -> str:
    """Changes with the source of `module` or of what it imports from the engine in `folder`."""
    state = hashlib.sha256()
    for path in sorted(_closure(module, folder)):
        state.update(str(path.relative_to(folder)).encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def _stamped(compiled: Any) -> Any:
    if hasattr(compiled, "compile"):  # absent where the compiler is switched off
        compiled.compile = _lightly(compiled.compile)
    files = getattr(compiled, "_cache", None)
    if files is not None:
        files._cache_file._source_stamp = _digest(compiled.py_func.__module__)
    return compiled


def _lightly(compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compiles at the first level of optimisation, and leaves the compiler as it was."""

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
def _digest(module: str) -> str:
    return sources_digest(module)


def _closure(module: str, folder: Path) -> set[Path]:
    found: set[Path] = set()
    left = [_file(module, folder)]
    while left:
        path = left.pop()
        if path is not None and path not in found:
            found.add(path)
            left += [_file(name, folder) for name in _imported(path)]
    return found


def _imported(path: Path) -> Iterator[str]:
    """Dotted names that the file imports; for `from a import b` both `a` and `a.b`."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str, folder: Path) -> Path | None:
    """The file of a module of the engine; None for what is no module or lies elsewhere."""
    if module != _ENGINE and not module.startswith(_ENGINE + "."):
        return None
    path = folder.joinpath(*module.removeprefix(_ENGINE).split(".")[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None
