"""`unstrand demo`: a made-up cluster in a file of its own, and the service over it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collector.demo import SINCE, UNTIL, generate, holds_demo, write_demo
from collector.store import Store
from unstrand.commands.options import Db
from unstrand.commands.progress import working
from unstrand.commands.source import opened
from unstrand.commands.up import serve_until_signal
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
    with opened(settings.db, create=True) as store:
        build_demo(store)
    typer.echo(f"demo cluster, {SINCE:%Y-%m-%d} to {UNTIL:%Y-%m-%d} UTC, in {settings.db}")
    if not once:
        serve_until_signal(settings)


def build_demo(store: Store) -> None:
    """Fill an empty store with the demo; one that holds the demo already stays as it is."""
    if holds_demo(store):
        return
    with working("making four weeks of a made-up cluster"):
        write_demo(store, generate())
