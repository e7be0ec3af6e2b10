"""`unstrand simulate`: the same jobs under another scheduling policy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unstrand.commands.options import Cluster, Db


class Overrun(StrEnum):
    """What becomes of a job that ran longer than its limit."""

    RAISE = "raise"
    KILL = "kill"


def changes(pairs: list[str]) -> dict[str, str]:
    """``KEY=VALUE`` options as a mapping; a later one wins."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"--set {pair}: write KEY=VALUE, such as backfill.depth=100")
        found[key.strip()] = value.strip()
    return found


def simulate(
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME|FILE",
            help="fifo, easy, conservative, conservative-compress, greedy, sjf, or a TOML file.",
        ),
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
        typer.Option(
            "--fleet",
            metavar="SPEC",
            help="pool:N, NxG, or a TOML or CSV of nodes. Default with --window: the store's.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="swf, openb, philly, itp, helios, jobs. Default: told by the file.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a part; may be repeated."),
    ] = None,
    overrun: Annotated[
        Overrun, typer.Option("--overrun", help="Of jobs longer than their limit.")
    ] = Overrun.RAISE,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="CSV: what became of each job.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option("--summary", metavar="FILE", help="JSON: waits, occupancy, ...")
    ] = None,
    cluster: Cluster = None,
    db: Db = None,
) -> None:
    """Replay a history of jobs on a fleet under a policy, and say what the waits would have been.

    Rows that cannot be replayed are counted by reason. Waits are from submit to the first start.

    Example: `unstrand simulate --jobs kth.swf --fleet pool:100 --policy easy --summary easy.json`
    """
    wanted = changes(set_ or [])
    check_source(jobs, window, fleet)
    # Here, not above: the compiler costs seconds that no other command owes.
    from unstrand.commands.replay_source import ReplaySource
    from unstrand.commands.simulate_run import simulate_to_files

    source = ReplaySource(
        jobs=jobs,
        kind=kind,
        window=window,
        fleet=fleet,
        overrun=overrun,
        cluster=cluster,
        db=db,
    )
    for line in simulate_to_files(source, policy, wanted, out, summary):
        typer.echo(line)


def check_source(jobs: Path | None, window: str | None, fleet: str | None) -> None:
    """Wrong usage, unless the options name one history and a fleet for it."""
    if (jobs is None) == (window is None):
        raise typer.BadParameter("give --jobs FILE or --window 4w, one of them")
    if jobs is not None and fleet is None:
        raise typer.BadParameter("--jobs FILE needs --fleet: pool:N, NxG, or a file of nodes")
