"""The one door to the DuckDB file.

One process owns the file; inside it every unit of work takes a cursor of its own, because a
connection that two threads share breaks (measured: 415 of 800 calls failed). Rows go in as column
batches only. Times are stored as UTC without a zone and come out aware.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from collector import migrations
from collector.errors import StoreBusyError, StoreError, StoreLimitError
from collector.model import Fact
from collector.time_limit import interrupted_in_time, too_long

_ENGINE_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # The file must open on a machine that reaches nothing: no extension is ever fetched.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def to_utc_naive(value: object) -> object:
    """An aware datetime as the naive UTC that the store keeps; anything else unchanged."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise StoreError(f"naive time {value.isoformat()}: give it a zone before it is stored")
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


class Work:
    """A unit of work over one cursor; not for sharing between threads."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of ``sql`` as an Arrow table; timestamps are UTC without a zone.

        Cast sums of BIGINT back to BIGINT or DECIMAL: a HUGEINT leaves as a double.
        """
        relation = self._cursor.sql(sql, params=[to_utc_naive(p) for p in params])
        return relation.to_arrow_table()

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[dict[str, Any]]:
        """The rows of ``sql`` as dicts with aware datetimes, Decimals and exact integers."""
        result = self._cursor.execute(sql, [to_utc_naive(p) for p in params])
        columns = result.description or []
        names = [column[0] for column in columns]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        for name in (column[0] for column in columns if str(column[1]).startswith("TIMESTAMP")):
            for row in rows:
                row[name] = _aware(row[name])
        return rows

    def batches(
        self, sql: str, params: Sequence[object] = (), size: int = 1 << 20
    ) -> Iterator[pa.RecordBatch]:
        """The rows of ``sql`` as Arrow batches, for results that need not fit in memory.

        Read them to the end: a result that is left unfinished blocks the next append.
        """
        # Made as they are taken: what the engine made long before has left the processor's cache.
        self._cursor.execute("SET streaming_buffer_size = '1MiB'")
        relation = self._cursor.sql(sql, params=[to_utc_naive(p) for p in params])
        yield from relation.to_arrow_reader(size)

    def value(self, sql: str, params: Sequence[object] = ()) -> Any:
        """The single value that ``sql`` returns, or None for no row."""
        # Read to the end: a result that is left unfinished blocks the next append.
        found = self._cursor.execute(sql, [to_utc_naive(p) for p in params]).fetchall()
        return _aware(found[0][0]) if found else None

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run one statement whose rows, if any, are of no interest."""
        self._cursor.execute(sql, [to_utc_naive(p) for p in params])

    def append(self, table: str, columns: Mapping[str, Any] | pa.Table) -> int:
        """Append one column batch by column name and return the number of rows.

        ``columns``: an Arrow table, or equal-length sequences, numpy or Arrow arrays. Columns that
        are left out become NULL.
        """
        batch = columns if isinstance(columns, pa.Table) else _to_arrow(columns)
        if batch.num_rows == 0:
            return 0
        names = ", ".join(f'"{name}"' for name in batch.column_names)
        self._cursor.register("incoming_batch", batch)
        self._cursor.execute(
            f'INSERT INTO "{table}" ({names}) SELECT {names} FROM incoming_batch'  # noqa: S608 - our own table and column names
        )
        # Not in a finally: in an aborted transaction it fails too and would hide why.
        self._cursor.unregister("incoming_batch")
        return int(batch.num_rows)

    def append_facts(self, facts: Iterable[Fact]) -> int:
        """Append facts, one column batch per kind, and return the number of rows."""
        by_table: dict[str, list[Fact]] = {}
        for fact in facts:
            by_table.setdefault(fact.table, []).append(fact)
        return sum(self.append(table, _columns(rows)) for table, rows in by_table.items())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block or nothing of it."""
        self._cursor.execute("BEGIN TRANSACTION")
        try:
            yield
        except BaseException:
            self._cursor.execute("ROLLBACK")
            raise
        self._cursor.execute("COMMIT")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {folder}: {error.strerror}; name another file with --db"
        ) from error


class Store:
    """An open DuckDB file at the newest schema version."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: str) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._threads_lock = threading.Lock()
        self._alone = 0
        self._threads = 1
        self.path = path

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], datetime],
        memory_limit: str | None = None,
        create: bool = True,
    ) -> Store:
        """Open ``path`` (``:memory:`` for none), making it if allowed and migrating it forward.

        Raises StoreBusyError when another process holds it, StoreTooNewError when a newer version
        wrote it, StoreError when it is no store.
        """
        name = str(path)
        if name != ":memory:":
            if not create and not Path(name).exists():
                raise StoreError(
                    f"no store at {name}: import facts first (unstrand import ...), run "
                    "`unstrand demo`, or name the file with --db"
                )
            _make_folder(Path(name).expanduser().parent)
        connection = _connect(name)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            if memory_limit is not None:
                connection.execute(f"SET memory_limit = '{memory_limit}'")
            migrations.migrate(connection, name, clock())
        except BaseException:
            connection.close()
            raise
        return cls(connection, name)

    @contextmanager
    def work(self) -> Iterator[Work]:
        """A unit of work over a cursor of its own; safe to call from any thread.

        Raises StoreLimitError for a question that needs more memory than the store may use, or
        more time than a `time_limit` around it leaves.
        """
        with self._lock:
            cursor = self._connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            with interrupted_in_time(cursor.interrupt):
                yield Work(cursor)
        except duckdb.InterruptException as error:
            raise too_long() from error
        except duckdb.OutOfMemoryException as error:
            raise StoreLimitError(
                "the question needs more memory than the store may use: ask for a shorter window "
                "or fewer groups"
            ) from error
        finally:
            cursor.close()

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """While it lasts, every question is answered on the thread that asks it.

        For long work in which much leaves the engine or little is asked at a time: handing rows
        from thread to thread costs as much CPU as reading them. The engine knows this setting for
        the whole file only, so that others' questions meanwhile use one core each.
        """
        self._count_alone(1)
        try:
            yield
        finally:
            self._count_alone(-1)

    def _count_alone(self, more: int) -> None:
        with self._threads_lock:
            begins, ends = self._alone == 0 and more > 0, self._alone + more == 0
            if begins or ends:
                # Not a unit of work: a time limit must not leave the engine with one thread.
                with self._connection.cursor() as cursor:
                    if begins:
                        asked = cursor.execute("SELECT current_setting('threads')").fetchall()
                        self._threads = int(asked[0][0])
                    cursor.execute(f"SET threads = {1 if begins else self._threads}")
            self._alone += more

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """One query in a unit of work of its own, see `Work.query`."""
        with self.work() as work:
            return work.query(sql, params)

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[dict[str, Any]]:
        """One query in a unit of work of its own, see `Work.rows`."""
        with self.work() as work:
            return work.rows(sql, params)

    def value(self, sql: str, params: Sequence[object] = ()) -> Any:
        """One query in a unit of work of its own, see `Work.value`."""
        with self.work() as work:
            return work.value(sql, params)

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file."""
        with self.work() as work:
            work.execute("CHECKPOINT")

    def close(self) -> None:
        """Close the file; DuckDB folds its log in."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _connect(name: str) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(
            str(Path(name).expanduser()) if name != ":memory:" else name, config=_ENGINE_SETTINGS
        )
    except duckdb.IOException as error:
        if "lock" in str(error).lower():
            raise StoreBusyError(
                f"{name} is held by another process: stop it, or ask it with --server URL"
            ) from error
        raise StoreError(f"cannot open {name}: {error}") from error


def _aware(value: object) -> object:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _columns(facts: Sequence[Fact]) -> dict[str, list[object]]:
    names = [field.name for field in fields(facts[0])]
    return {name: [getattr(fact, name) for fact in facts] for name in names}


def _is_special(values: Sequence[object]) -> bool:
    """Whether a column is of times or tuples; a column has one kind of value."""
    kind = next((value for value in values if value is not None), None)
    return isinstance(kind, (datetime, tuple))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else to_utc_naive(value)


def _to_arrow(columns: Mapping[str, Any]) -> pa.Table:
    arrays = {}
    for name, values in columns.items():
        if isinstance(values, (list, tuple)) and _is_special(values):
            values = [_plain(value) for value in values]
        arrays[name] = (
            values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
        )
    return pa.table(arrays)
