"""`unstrand sweep`: the same jobs under many policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unstrand.commands.options import Cluster, Db
from unstrand.commands.simulate import Overrun, check_source


def sweep(
    policies: Annotated[
        Path,
        typer.Option(
            "--policies", metavar="FILE.toml", help="A table [policy.NAME] each, and seeds = [...]."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.parquet", help="One row per policy and seed.")
    ],
    jobs: Annotated[
        Path | None,
        typer.Option("--jobs", metavar="FILE", help="SWF, or a CSV or Parquet of jobs."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="4w", help="The store's own last weeks, days or hours."),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option("--fleet", metavar="SPEC", help="pool:N, NxG, or a TOML or CSV of nodes."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="swf, openb, philly, itp, helios, jobs. Default: told by the file.",
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor",
            metavar="WHERE",
            help="here, process, or dask://HOST:PORT. Default: by size.",
        ),
    ] = None,
    overrun: Annotated[
        Overrun, typer.Option("--overrun", help="Of jobs longer than their limit.")
    ] = Overrun.RAISE,
    cluster: Cluster = None,
    db: Db = None,
) -> None:
    """Replay a history of jobs under every policy of a file, with every seed.

    Results are the same wherever they run. With --window, or a --db of your own, they are kept in
    the store, and what was run before is not run again.

    Example: `unstrand sweep --jobs kth.swf --fleet pool:100 --policies try.toml --out try.parquet`
    """
    check_source(jobs, window, fleet)
    # Here, not above: the compiler costs seconds that no other command owes.
    from unstrand.commands.replay_source import ReplaySource
    from unstrand.commands.sweep_run import sweep_to_file

    source = ReplaySource(
        jobs=jobs,
        kind=kind,
        window=window,
        fleet=fleet,
        overrun=overrun,
        cluster=cluster,
        db=db,
    )
    for line in sweep_to_file(source, policies, executor, out):
        typer.echo(line)
