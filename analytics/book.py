"""Books of dated rows: a row is never changed, a corrected one retires the old, and the log has
both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from analytics.audit import note
from analytics.errors import AnalyticsError
from collector.store import Work

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Book:
    """A table with ``loaded_at`` and ``retired_at``: what names a row, and what it says."""

    table: str
    what: str
    identity: tuple[str, ...]
    says: tuple[str, ...]
    error: type[AnalyticsError]

    def rows(self, work: Work) -> list[Row]:
        """Every row in force, in the order of its name."""
        order = ", ".join(f"{name} NULLS FIRST" for name in self.identity)
        return work.rows(
            f"SELECT * EXCLUDE (loaded_at, retired_at) FROM {self.table} "  # noqa: S608 - our own names
            f"WHERE retired_at IS NULL ORDER BY {order}"
        )

    def load(
        self, work: Work, rows: Iterable[Row], *, at: datetime, actor: str, correct: bool = False
    ) -> int:
        """Put rows in and return how many were new.

        Raises the book's error where a row of the same name says something else, unless
        ``correct``: the old one is then retired.
        """
        have = {self._name(row): row for row in self.rows(work)}
        new: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            name = self._name(row)
            old = have.get(name)
            if old is not None and self._told(old) == self._told(row):
                continue
            if old is not None and (name in new or not correct):
                raise self.error(self._contradiction(row, old, twice=name in new))
            if old is not None:
                self._retire(work, name, at)
            note(
                work, at, actor, f"{self.what}.load", _named(name), reason=row.get("source"),
                before=None if old is None else self._told(old), after=self._told(row),
            )  # fmt: skip
            have[name] = new[name] = row
        if new:
            batch = list(new.values())
            columns: dict[str, Sequence[Any]] = {c: [row[c] for row in batch] for c in batch[0]}
            work.append(self.table, columns | {"loaded_at": [at] * len(batch)})
        return len(new)

    def retire(self, work: Work, row: Row, *, at: datetime, actor: str, reason: str) -> None:
        """Take a row out of force."""
        self._retire(work, self._name(row), at)
        note(work, at, actor, f"{self.what}.retire", _named(self._name(row)),
             before=self._told(row), reason=reason)  # fmt: skip

    def _retire(self, work: Work, name: tuple[Any, ...], at: datetime) -> None:
        where = " AND ".join(f"{column} IS NOT DISTINCT FROM ?" for column in self.identity)
        work.execute(
            f"UPDATE {self.table} SET retired_at = ? WHERE retired_at IS NULL AND {where}",  # noqa: S608 - our own names
            [at, *name],
        )

    def _name(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[column] for column in self.identity)

    def _told(self, row: Row) -> str:
        return " ".join(_text(row[column]) for column in self.says if row[column] is not None)

    def _contradiction(self, row: Row, old: Row, *, twice: bool) -> str:
        where = f"{self.what} {_named(self._name(row))}"
        if twice:
            return f"{where}: the file says {self._told(old)} and {self._told(row)}"
        return (
            f"{where} is {self._told(old)} already ({old['source']}): correct it with --correct "
            "if that was wrong"
        )


def _named(name: tuple[Any, ...]) -> str:
    return " ".join(_text(value) for value in name if value is not None)


def _text(value: object) -> str:
    if isinstance(value, Decimal):
        plain = f"{value:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)
