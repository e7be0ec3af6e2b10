"""`unstrand price`: the price book."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from analytics.errors import PriceError
from analytics.health.conflicts import unpriced
from analytics.prices import load_prices, read_prices, seed_shipped
from analytics.window import Window
from collector.store import Store
from unstrand.books import price_rows
from unstrand.clock import utc_now
from unstrand.commands.files import read_text
from unstrand.commands.options import Cluster, Db, How, Json, Out, Server, Since, Until, chosen
from unstrand.commands.question import Asked, failed, fetch
from unstrand.commands.send import send
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

price_app = typer.Typer(no_args_is_help=True, help="What a GPU-hour costs, since when.")


@price_app.command("list")
def list_prices(
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print the prices in the book, the shipped list prices included.

    Example: `unstrand price list --format csv`
    """
    address = server_for(db, server)
    if address is not None:
        rows = ask(address, "prices")
    else:
        with opened(db, create=True) as store, store.work() as work:
            seed_shipped(work)
            rows = price_rows(work)
    print_document({"rows": rows}, chosen(how, as_json), out=out)


@price_app.command("load")
def load(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header line.")],
    db: Db = None,
    server: Server = None,
) -> None:
    """Put the prices of a CSV file into the book; a broken file changes nothing.

    Columns: gpu_model, amount, currency; and, where known, kind (contracted, amortized, internal,
    list), effective_from, effective_to, cluster, purchase_type, source, retrieved_on, free.

    Example: `unstrand price load prices.csv`
    """
    text, actor = read_text(file, PriceError), getpass.getuser()
    prices = read_prices(text, str(file))
    address = server_for(db, server)
    if address is not None:
        new = send(address, "prices", {"text": text, "name": str(file), "actor": actor})["new"]
    else:
        with opened(db, create=True) as store, store.work() as work, work.transaction():
            new = load_prices(work, prices, at=utc_now(), actor=actor)
    typer.echo(f"{file}: {len(prices)} prices, {new} of them new")


@price_app.command("check")
def check(
    since: Since = None,
    until: Until = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
) -> None:
    """Name the GPU models that were installed without a price; exit code 1 if there are any.

    Example: `unstrand price check --since 2026-10-05`
    """

    def answer(store: Store, window: Window) -> list[dict[str, Any]]:
        return [asdict(row) for row in unpriced(store, window, cluster)]

    rows = fetch(Asked(db, server, since, until, cluster=cluster), "health/unpriced", answer)
    failed(rows, chosen(how, as_json), "every installed model has a price")
