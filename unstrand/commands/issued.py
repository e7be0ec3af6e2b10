"""`unstrand issued`: statements as they were issued, version by version."""

from __future__ import annotations

import base64
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.months import Month
from unstrand.clock import utc_now
from unstrand.commands.options import Db, How, Json, MonthName, Out, Server, chosen, listed
from unstrand.commands.progress import working
from unstrand.commands.send import send_long
from unstrand.commands.source import ask, opened, server_for
from unstrand.errors import OutputError
from unstrand.output import Format, print_document

if TYPE_CHECKING:
    from unstrand.statements import StatementWish

issued_app = typer.Typer(no_args_is_help=True, help="Statements as they were issued.")
_COLUMNS = ("issue_id", "month", "team", "version", "statement_id", "total", "currency",
            "price_book", "org_version", "rules_version", "issued_by", "issued_at")  # fmt: skip


@issued_app.command("list")
def list_issued(
    month: MonthName,
    team: Annotated[str | None, typer.Option("--team", metavar="TEAM")] = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Every version of a month's statements, with the versions of what decided it.

    Example: `unstrand issued list --month 2026-10`
    """
    address = server_for(db, server)
    if address is not None:
        found = ask(address, "statements/issued", month=month, team=team)["issued"]
    else:
        # Here, not above: statements load numba, which asking a service does not need.
        from analytics.statements.issue import issue_rows

        with opened(db) as store, store.work() as work:
            found = issue_rows(work, Month.parse(month), team)
    rows = [{name: row[name] for name in _COLUMNS} for row in found]
    print_document({"rows": rows}, chosen(how, as_json), out=out)


@issued_app.command("get")
def get(
    issue_id: Annotated[str, typer.Argument(metavar="ID", help="As issued list shows it.")],
    forms: Annotated[
        str, typer.Option("--format", metavar="FORMS", help="html, pdf, csv, json.")
    ] = "html",
    language: Annotated[str, typer.Option("--language", help="en or ko.")] = "en",
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the files go. Default: here.")
    ] = Path(),
    db: Db = None,
    server: Server = None,
) -> None:
    """The files of an issue, the same bytes that went out.

    Example: `unstrand issued get S-000001 --format html,csv --out bills`
    """
    address = server_for(db, server)
    if address is not None:
        path = f"statements/issued/{issue_id}"
        files = ask(address, path, forms=forms, language=language)["files"]
    else:
        from unstrand.statements import issued_files

        with opened(db) as store:
            files = issued_files(store, issue_id, listed(forms), language)
    for name, content in files.items():
        write_file(folder, name, base64.b64decode(content))


def issue(wish: StatementWish, by: str | None, db: Path | None, server: str | None) -> Any:
    """Freeze the statements that are wished for; what became of each."""
    actor = by or getpass.getuser()
    wish.asked()
    address = server_for(db, server)
    if address is not None:
        body = {
            "month": wish.month, "team": wish.team, "platform": wish.platform,
            "tz": wish.time_zone, "cluster": wish.cluster, "currency": wish.currency,
            "actor": actor,
        }  # fmt: skip
        return send_long(address, "statements/issue", body)["issued"]
    from analytics.ledger import ensure_built
    from unstrand.statements import drafts, put_drafts

    now = utc_now()
    with opened(db) as store:
        with working("bringing the ledger up to date"):
            ensure_built(store, wish.asked().window(now), cluster=wish.cluster)
        found = drafts(store, wish, now)
        with store.work() as work, work.transaction():
            return put_drafts(work, found, at=now, actor=actor)


def write_file(folder: Path, name: str, content: bytes) -> None:
    """Put a file there and say where."""
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    typer.echo(path)
