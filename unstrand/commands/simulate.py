"""`unstrand simulate`: the same jobs under another scheduling policy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
        Path, typer.Option("--jobs", metavar="FILE", help="SWF, or a CSV or Parquet of jobs.")
    ],
    fleet: Annotated[
        str,
        typer.Option("--fleet", metavar="SPEC", help="pool:N, NxG, or a TOML or CSV of nodes."),
    ],
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
) -> None:
    """Replay a history of jobs on a fleet under a policy, and say what the waits would have been.

    Rows that cannot be replayed are counted by reason. Waits are from submit to the first start.

    Example: `unstrand simulate --jobs kth.swf --fleet pool:100 --policy easy --summary easy.json`
    """
    wanted = changes(set_ or [])
    from unstrand.commands.simulate_run import SimulateQuestion, simulate_to_files

    question = SimulateQuestion(
        jobs=jobs, kind=kind, fleet=fleet, policy=policy, changes=wanted, overrun=overrun
    )
    for line in simulate_to_files(question, out, summary):
        typer.echo(line)
