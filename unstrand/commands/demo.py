"""`unstrand demo`: a made-up cluster in a file of its own, and the service over it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from analytics.org import Mapping, load_mappings, mapping_rows
from analytics.prices import seed_shipped
from analytics.window import Window
from collector.demo import MEMBERSHIPS, SINCE, UNTIL, generate, holds_demo, write_demo
from collector.store import Store
from unstrand.commands.options import Db
from unstrand.commands.progress import working
from unstrand.commands.report import notes
from unstrand.commands.source import opened
from unstrand.commands.up import serve_until_signal
from unstrand.output import Format, print_document
from unstrand.settings import load_settings

DEMO_DB = Path("demo.duckdb")


def demo(
    db: Db = None,
    port: Annotated[
        int | None, typer.Option("--port", help="TCP port, 0 = any free one. Default: 8501.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Build it, print the ledger, and exit.")
    ] = False,
) -> None:
    """Show a made-up cluster of 16 nodes: build it if needed, then serve its pages.

    Its facts cover 2026-10-05 to 2026-11-02 UTC. It goes to --db, by default demo.duckdb in the
    current folder, and never into a file that holds real facts.

    Example: `unstrand demo --port 8501`
    """
    settings = load_settings(db=db or DEMO_DB, port=port)
    typer.echo(f"demo cluster, {SINCE:%Y-%m-%d} to {UNTIL:%Y-%m-%d} UTC, in {settings.db}")
    with opened(settings.db, create=True) as store:
        build_demo(store)
        if once:
            summarise(store)
    if not once:
        serve_until_signal(settings)


def build_demo(store: Store) -> None:
    """Bring an empty store, or one in which this was interrupted, to the whole demo."""
    if not holds_demo(store):
        with working("making four weeks of a made-up cluster"):
            write_demo(store, generate())
    with store.work() as work, work.transaction():
        seed_shipped(work)
        if not mapping_rows(work):
            load_mappings(work, _mappings(), at=SINCE, actor="demo")
    # Here, not above: the ledger loads numba, a second that no other command owes.
    from analytics.ledger import ensure_built

    with working("posting every GPU-second to the ledger"):
        ensure_built(store, Window(SINCE, UNTIL))


def summarise(store: Store) -> None:
    """Print the ledger of the demo's window."""
    from analytics.reports import ledger_report

    document = ledger_report(store, Window(SINCE, UNTIL)).to_dict()
    print_document(document, Format.TABLE, notes=notes(document))


def _mappings() -> list[Mapping]:
    return [
        Mapping(
            key_kind="account", key_value=m.account, team=m.team, project=m.project,
            cost_center=m.cost_centre, valid_from=m.valid_from, valid_to=m.valid_to,
            source="demo",
        )
        for m in MEMBERSHIPS
    ]  # fmt: skip
