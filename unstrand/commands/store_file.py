"""`unstrand backup`, `restore` and `migrate`: the store's file as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collector import migrations
from collector.backup import backup as write_backup
from collector.backup import restore as read_backup
from collector.backup import schema_version
from collector.errors import StoreBusyError
from unstrand.clock import utc_now
from unstrand.commands.fetch_file import fetch_file
from unstrand.commands.options import Db, Server
from unstrand.commands.progress import working
from unstrand.commands.source import held, opened, server_for
from unstrand.settings import load_settings


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file.")],
    db: Db = None,
    server: Server = None,
) -> None:
    """Copy the whole store to a new file; a service that holds it goes on meanwhile.

    Example: `unstrand backup /backup/unstrand-2026-11-02.duckdb`
    """
    address = server_for(db, server)
    with working(f"copying to {file}"):
        if address is not None:
            size = fetch_file(address, "backup", file)
        else:
            with opened(db) as store:
                size = write_backup(store, file)
    typer.echo(f"{file}: {size:,} bytes")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    db: Db = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the store that is there aside.")
    ] = False,
) -> None:
    """Make the store a copy of a backup, brought to this version.

    Example: `unstrand restore /backup/unstrand-2026-11-02.duckdb --db new.duckdb`
    """
    path = load_settings(db=db).db
    with working(f"restoring {path}"):
        version = read_backup(file, path, replace=replace, clock=utc_now)
    typer.echo(f"{path}: restored, schema version {version}")


def migrate(db: Db = None) -> None:
    """Bring the store to this version's schema; every command that opens it does the same.

    Example: `unstrand migrate --db site.duckdb`
    """
    path = load_settings(db=db).db
    try:
        before = schema_version(path)
    except StoreBusyError as error:
        raise held(path) from error
    with opened(path):
        after = migrations.latest()
    typer.echo(
        f"{path}: schema version {before} -> {after}"
        if before != after
        else f"{path}: schema version {after}, the newest"
    )
