"""`unstrand org`: which account belongs to which team, since when."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from analytics.errors import OrgMapError
from analytics.job_labels import put_labels, read_labels
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

    Columns: key_kind (account, user, project, partition, or label:KEY), key_value, team; and, where
    known, project, cost_center, ratio, valid_from, valid_to, cluster. A row that starts later ends
    the open one of the same key. A label's row with key_value * is for any value of it, and with
    team * the value is the team.

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


@org_app.command("labels")
def labels(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pods as JSON, or a CSV.")],
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME")],
    db: Db = None,
    server: Server = None,
) -> None:
    """Put labels on jobs, for mappings of label:KEY: pods from kubectl, or a CSV job_id,labels.

    Pods: the output of `kubectl get pods -A -o json`.

    Example: `unstrand org labels pods.json --cluster k8s`
    """
    text, actor = read_text(file, OrgMapError), getpass.getuser()
    found = read_labels(text, str(file))
    address = server_for(db, server)
    if address is not None:
        sheet = {"text": text, "name": str(file), "actor": actor, "cluster": cluster}
        done = send(address, "org/labels", sheet)
    else:
        with opened(db) as store, store.work() as work, work.transaction():
            known, unknown = put_labels(work, cluster, found, at=utc_now(), actor=actor)
            done = {"jobs": known, "unknown": unknown}
    typer.echo(f"{file}: labels of {done['jobs']} jobs; {done['unknown']} are not known here")


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

    def hinted(store: Store, window: Window) -> dict[str, Any]:
        from analytics.reports import coverage_report

        return coverage_report(store, window, cluster=cluster).to_dict()

    asked = Asked(db, server, since, until, cluster=cluster)
    found = fetch(asked, "report/cost", answer, by=",".join(keys))["rows"]
    columns = ("account", "user", "gpu_hours", "cost")
    unmapped = [row for row in found if row["team"] == UNMAPPED and row["gpu_hours"]]
    told = fetch(asked, "report/coverage", hinted)["unmapped"] if unmapped else []
    hints = {(row["account"], row["user"]): row["hint"] for row in told}
    rows = [
        {name: row[name] for name in columns} | {"hint": hints.get((row["account"], row["user"]))}
        for row in unmapped
    ]
    rows.sort(key=lambda row: -row["gpu_hours"])
    failed(rows, chosen(how, as_json), "every holder belongs to a team")
