"""Rates, commitments, overhead and carbon: read, and added to from a file's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request

from collector.store import Work
from unstrand.api.books import Sheet
from unstrand.api.query import read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written
from unstrand.books import SHEET_BOOKS, SheetBook

router = APIRouter(tags=["books"])


class CorrectableSheet(Sheet):
    """Rows; with ``correct``, rows that say something else than those in the book retire them."""

    correct: bool = False


def _reader(book: SheetBook) -> Callable[[Request], list[dict[str, Any]]]:
    def rows(request: Request) -> list[dict[str, Any]]:
        with service_of(request).store.work() as work:
            return book.rows(work)

    return rows


def _loader(book: SheetBook) -> Callable[[Request, CorrectableSheet], dict[str, int]]:
    def load(request: Request, sheet: CorrectableSheet) -> dict[str, int]:
        found = read_or_refuse("body", lambda: book.read(sheet.text, sheet.name))
        at = service_of(request).clock()

        def write(work: Work) -> int:
            return book.load(work, found, at=at, actor=sheet.actor, correct=sheet.correct)

        return {"rows": len(found), "new": written(request, write, source=book.name)}

    return load


for _book in SHEET_BOOKS:
    router.add_api_route(
        f"/{_book.name}", _reader(_book), methods=["GET"], description=f"{_book.what} Every row."
    )
    router.add_api_route(
        f"/{_book.name}", _loader(_book), methods=["POST"],
        description=f"{_book.what} Put the rows of a sheet in; a broken one changes nothing. "
        f"Columns: {_book.columns}",
    )  # fmt: skip
