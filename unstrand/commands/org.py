"""`unstrand org`: which account belongs to which team, since when."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from analytics.errors import OrgMapError
from analytics.org import UNMAPPED, WHOLE_PPM, load_mappings, mapping_rows, read_mappings
from analytics.window import Window
from collector.store import Store
from unstrand.clock import utc_now
from unstrand.commands.files import read_text
from unstrand.commands.options import Cluster, Db, How, Json, Out, Server, Since, Until, chosen
from unstrand.commands.question import Asked, failed, fetch
from unstrand.commands.send import send
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

org_app = typer.Typer(no_args_is_help=True, help="Who owns an account, user, project or queue.")


@org_app.command("list")
def list_mappings(
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print the map with its dates.

    Example: `unstrand org list --format csv`
    """
    address = server_for(db, server)
    if address is not None:
        found = ask(address, "org")
    else:
        with opened(db) as store, store.work() as work:
            found = mapping_rows(work)
    rows = [_shown(row) for row in found]
    print_document({"rows": rows}, chosen(how, as_json), out=out)


def _shown(row: dict[str, object]) -> dict[str, object]:
    ratio = int(str(row["ratio_ppm"])) / WHOLE_PPM
    names = ("cluster", "key_kind", "team", "project", "cost_center", "valid_from", "valid_to")
    return {
        "key_value": row["raw_value"],
        **{name: row[name] for name in names},
        "share_ratio": ratio,
        "source": row["source"],
    }


@org_app.command("load")
def load(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header line.")],
    db: Db = None,
    server: Server = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop the map that is there first.")
    ] = False,
) -> None:
    """Put the mappings of a CSV file into the map; a broken file changes nothing.

    Columns: key_kind (account, user, project, label, partition), key_value, team; and, where
    known, project, cost_center, ratio, valid_from, valid_to, cluster. A row that starts later ends
    the open one of the same key.

    Example: `unstrand org load org.csv`
    """
    text, actor = read_text(file, OrgMapError), getpass.getuser()
    mappings = read_mappings(text, str(file))
    address = server_for(db, server)
    if address is not None:
        sheet = {"text": text, "name": str(file), "actor": actor, "replace": replace}
        count = send(address, "org", sheet)["rows"]
    else:
        with opened(db, create=True) as store, store.work() as work, work.transaction():
            count = load_mappings(work, mappings, at=utc_now(), actor=actor, replace=replace)
    typer.echo(f"{file}: {count} mappings")


@org_app.command("check")
def check(
    since: Since = None,
    until: Until = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
) -> None:
    """Name the accounts and users that belong to no team; exit code 1 if there are any.

    Example: `unstrand org check --since 2026-10-05`
    """
    keys = ("team", "account", "user")

    def answer(store: Store, window: Window) -> dict[str, Any]:
        from analytics.reports import cost_report

        return cost_report(store, window, keys, cluster=cluster).to_dict()

    asked = Asked(db, server, since, until, cluster=cluster)
    found = fetch(asked, "report/cost", answer, by=",".join(keys))["rows"]
    columns = ("account", "user", "gpu_hours", "cost")
    unmapped = [row for row in found if row["team"] == UNMAPPED and row["gpu_hours"]]
    rows = [{name: row[name] for name in columns} for row in unmapped]
    rows.sort(key=lambda row: -row["gpu_hours"])
    failed(rows, chosen(how, as_json), "every holder belongs to a team")
