"""The store that this process has open, for pages: a page finds it by the path in its arguments."""

from __future__ import annotations

from collector.store import Store

_open: dict[str, Store] = {}
_current: list[str] = []


def attach(store: Store) -> None:
    """Make ``store`` the one that pages show."""
    _open[store.path] = store
    _current[:] = [store.path]


def detach(store: Store) -> None:
    """Forget ``store``; pages say that the service is stopping."""
    _open.pop(store.path, None)
    if _current == [store.path]:
        _current.clear()


def current_path() -> str | None:
    """The path of the store that pages show."""
    return _current[0] if _current else None


def store_at(path: str) -> Store:
    """The open store of ``path``."""
    return _open[path]
