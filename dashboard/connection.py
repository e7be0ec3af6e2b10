"""The store that this process has open, for pages: a page finds it by the path in its arguments."""

from __future__ import annotations

from collections.abc import Callable

from analytics.window import Window
from collector.store import Store

Account = Callable[[Window, str | None], object]
"""Brings the ledger of a cluster (None: all) up to date where a window reaches past the facts."""
_open: dict[str, tuple[Store, Account]] = {}
_current: list[str] = []


def attach(store: Store, account: Account = lambda window, cluster: None) -> None:
    """Make ``store`` the one that pages show; ``account`` is called before a report is shown."""
    _open[store.path] = (store, account)
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
    return _open[path][0]


def accounted(path: str, window: Window, cluster: str | None) -> Store:
    """The open store of ``path``, its ledger up to date for the window."""
    store, account = _open[path]
    account(window, cluster)
    return store
