"""`unstrand calibrate`: how well a replay of today's policy repeats what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unstrand.commands.options import Cluster, Db, Json


def calibrate(
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="4w", help="The store's own last weeks, days or hours."),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option("--jobs", metavar="FILE", help="Instead: SWF, or a CSV or Parquet of jobs."),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option("--fleet", metavar="SPEC", help="pool:N, NxG, or a TOML or CSV of nodes."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="swf, openb, philly, itp, helios, jobs."),
    ] = None,
    language: Annotated[str, typer.Option("--language", help="en or ko.")] = "en",
    cluster: Cluster = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Replay the policy in force and grade how well it repeats what happened: A to D.

    The policy is read from the scheduler's settings where `import slurm --live` stored them, and
    searched for otherwise. Everything that a replay predicts carries this grade.

    Example: `unstrand calibrate --window 4w --json`
    """
    from unstrand.commands.simulate import check_source

    if window is None and jobs is None:
        window = "4w"
    check_source(jobs, window, fleet)
    # Here, not above: the compiler costs seconds that no other command owes.
    from unstrand.commands.calibrate_run import calibrated_lines
    from unstrand.commands.replay_source import ReplaySource

    source = ReplaySource(
        jobs=jobs, kind=kind, window=window, fleet=fleet, overrun="raise", cluster=cluster, db=db
    )
    for line in calibrated_lines(source, as_json=as_json, language=language):
        typer.echo(line)
