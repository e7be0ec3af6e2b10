"""`unstrand up`: the service over the store."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import timedelta
from typing import Annotated

import typer

from unstrand.commands.options import Config, Db
from unstrand.settings import Settings, load_settings


def up(
    config: Config = None,
    db: Db = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Loopback only, for now.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="TCP port, 0 = any free one. Default: 8501.")
    ] = None,
) -> None:
    """Run the service: pages, API, metrics and background work over one file.

    Example: `unstrand up --db site.duckdb --port 8501`
    """
    settings = load_settings(config, db=db, host=host, port=port)
    serve_until_signal(settings)


def serve_until_signal(settings: Settings) -> None:
    """The service in the foreground; prints its address once it answers."""
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # Here, not above: pages and server take a second to load, and no other command needs them.
    from unstrand.service.run import serve
    from unstrand.warm import warmed_beside

    with ExitStack() as stack:

        def ready(url: str) -> None:
            typer.echo(f"serving {settings.db} at {url}")
            stack.enter_context(warmed_beside())

        serve(
            settings.db,
            host=settings.host,
            port=settings.port,
            goals_file=settings.goals,
            delivery_file=settings.delivery,
            agent_secret_file=settings.agent_secret,
            local_cluster=settings.local_cluster or settings.slurm_cluster,
            slurm_cluster=settings.slurm_cluster,
            slurm_every=timedelta(seconds=settings.slurm_every_s),
            on_ready=ready,
        )
