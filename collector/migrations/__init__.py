"""Forward-only schema steps: ``NNNN_name.sql`` beside this file, applied once, in order."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import duckdb

from collector.errors import StoreError, StoreTooNewError

_FOLDER = Path(__file__).parent


def steps() -> list[tuple[int, Path]]:
    """Every step as (version it leads to, file), in order; versions count from 1 without a gap."""
    files = sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return [(int(file.name[:4]), file) for file in files]


def latest() -> int:
    """The schema version that this program writes."""
    return steps()[-1][0]


def current(connection: duckdb.DuckDBPyConnection, path: str) -> int:
    """The file's schema version, 0 for an empty one; StoreError for somebody else's file."""
    found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    tables = {str(row[0]) for row in found}
    if not tables:
        return 0
    if "schema_version" not in tables:
        raise StoreError(
            f"{path} is a DuckDB file but not an unstrand store: choose another file with --db"
        )
    row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return int(row[0]) if row is not None and row[0] is not None else 0


def migrate(
    connection: duckdb.DuckDBPyConnection, path: str, at: datetime, *, up_to: int | None = None
) -> None:
    """Bring the file to ``up_to`` (default: newest), each step in its own transaction."""
    goal = latest() if up_to is None else up_to
    have = current(connection, path)
    if have > latest():
        raise StoreTooNewError(
            f"{path} has schema version {have}, this unstrand knows up to {latest()}: "
            "upgrade unstrand, or restore an older backup"
        )
    for version, file in steps():
        if have < version <= goal:
            _apply(connection, version, file, at)


def _apply(connection: duckdb.DuckDBPyConnection, version: int, file: Path, at: datetime) -> None:
    connection.execute("BEGIN TRANSACTION")
    try:
        if version == 1:
            connection.execute(
                "CREATE TABLE schema_version "
                "(version INTEGER NOT NULL, applied_at TIMESTAMP NOT NULL)"
            )
        connection.execute(file.read_text(encoding="utf-8"))
        connection.execute(
            "INSERT INTO schema_version VALUES (?, ?)",
            [version, at.astimezone(UTC).replace(tzinfo=None)],
        )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
