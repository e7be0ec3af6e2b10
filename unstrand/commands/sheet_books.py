"""`unstrand price rates|commitments|overhead|carbon`: the books beside the prices."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from analytics.errors import AnalyticsError
from collector.store import Work
from unstrand.books import SHEET_BOOKS, SheetBook
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.files import read_text
from unstrand.commands.options import Db, How, Json, Out, Server, chosen
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document


def register(price_app: typer.Typer) -> None:
    """Put one group per book under `price`."""
    for book in SHEET_BOOKS:
        price_app.add_typer(_group(book), name=book.name)


def _group(book: SheetBook) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=book.what)
    group.command("list", help=f"{book.what}\n\nExample: `unstrand price {book.name} list`")(
        _lister(book)
    )
    group.command(
        "load",
        help=f"Put the rows of a CSV file into the book; a broken file changes nothing.\n\n"
        f"Columns: {book.columns}\n\nExample: `unstrand price {book.name} load {book.name}.csv`",
    )(_loader(book))
    return group


def _lister(book: SheetBook):  # type: ignore[no-untyped-def]  # typer reads the inner signature
    def listed(
        db: Db = None,
        server: Server = None,
        how: How = Format.TABLE,
        as_json: Json = False,
        out: Out = None,
    ) -> None:
        address = server_for(db, server)
        if address is not None:
            rows = ask(address, book.name)
        else:
            with opened(db) as store, store.work() as work:
                rows = book.rows(work)
        print_document({"rows": rows}, chosen(how, as_json), out=out)

    return listed


def _loader(book: SheetBook):  # type: ignore[no-untyped-def]  # typer reads the inner signature
    def load(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header line.")],
        correct: Annotated[
            bool,
            typer.Option("--correct", help="Replace rows that say something else; both are kept."),
        ] = False,
        db: Db = None,
        server: Server = None,
    ) -> None:
        text, actor = read_text(file, AnalyticsError), getpass.getuser()
        rows = book.read(text, str(file))

        def write(work: Work) -> dict[str, int]:
            new = book.load(work, rows, at=utc_now(), actor=actor, correct=correct)
            return {"new": new}

        body = {"text": text, "name": str(file), "actor": actor, "correct": correct}
        new = change(db, server, book.name, body, write)["new"]
        typer.echo(f"{file}: {len(rows)} rows, {new} of them new")

    return load
