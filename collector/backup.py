"""A copy of the whole store in one new file, and back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import duckdb

from collector import migrations
from collector.errors import StoreBusyError, StoreError
from collector.store import Store


def backup(store: Store, target: Path) -> int:
    """Write everything that is committed now to ``target`` and return its size in bytes.

    Other units of work go on meanwhile. The file appears under its name only when it is whole;
    one that exists already is refused.
    """
    if target.exists():
        raise StoreError(f"{target} exists already: name a new file, a backup never overwrites one")
    if not target.parent.is_dir():
        raise StoreError(f"no folder {target.parent}: make it first")
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with store.work() as work:
            home = work.value("SELECT current_database()")
            work.execute(f"ATTACH '{_quoted(draft)}' AS unstrand_backup")
            try:
                work.execute(f'COPY FROM DATABASE "{home}" TO unstrand_backup')
            finally:
                work.execute("DETACH unstrand_backup")
        draft.replace(target)
    except duckdb.Error as error:
        raise StoreError(f"cannot write the backup {target}: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return target.stat().st_size


def restore(source: Path, path: Path, *, replace: bool, clock: Callable[[], datetime]) -> int:
    """Make ``path`` a copy of the backup ``source`` and return its schema version, now the newest.

    A store that is there already stays beside it as ``<name>.replaced``, and is only replaced when
    asked to. A backup that cannot be opened changes nothing.
    """
    if not source.is_file():
        raise StoreError(f"no backup at {source}: check the path")
    if path.exists() and not replace:
        raise StoreError(
            f"{path} exists already: --replace puts it aside as {_aside(path).name}, "
            "or name another file with --db"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copyfile(source, draft)
        Store.open(draft, clock=clock, create=False).close()
        if path.exists():
            # Opening it proves that nobody else holds it, and folds its log in.
            Store.open(path, clock=clock, create=False).close()
            path.replace(_aside(path))
        draft.replace(path)
    finally:
        for left in (draft, draft.with_name(draft.name + ".wal")):
            with suppress(FileNotFoundError):
                left.unlink()
    return migrations.latest()


def schema_version(path: Path) -> int:
    """The schema version of a store file, read without changing it."""
    if not path.exists():
        raise StoreError(f"no store at {path}: name the file with --db")
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            return migrations.current(connection, str(path))
    except duckdb.IOException as error:
        if "lock" in str(error).lower():
            raise StoreBusyError(f"{path} is held by another process") from error
        raise StoreError(f"cannot read {path}: {error}") from error
    except duckdb.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from error


def _aside(path: Path) -> Path:
    return path.with_name(path.name + ".replaced")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
