"""Options that several commands take, with one meaning each."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from analytics.errors import WindowError
from analytics.window import parse_time
from unstrand.output import Format


def instant(text: str) -> datetime:
    try:
        return parse_time(text)
    except WindowError as error:
        raise typer.BadParameter(str(error)) from error


Db = Annotated[
    Path | None,
    typer.Option(
        "--db",
        envvar="UNSTRAND_DB",
        metavar="FILE",
        help="The store. Default: ~/.local/share/unstrand/unstrand.duckdb.",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="UNSTRAND_SERVER",
        metavar="URL",
        help="Ask this service instead of the file. Default: the one that holds the file.",
    ),
]
Since = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        metavar="TIME",
        parser=instant,
        help="Beginning of the window; without a zone it is UTC.",
    ),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", metavar="TIME", parser=instant, help="End of the window, exclusive."),
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Only this cluster.")
]
How = Annotated[Format, typer.Option("--format", help="How to print.")]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write there instead of to stdout.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings in TOML; the environment wins."),
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who does this. Default: the user of this machine."),
]
MonthName = Annotated[str, typer.Option("--month", metavar="YYYY-MM", help="A calendar month.")]
TimeZone = Annotated[
    str,
    typer.Option("--time-zone", metavar="ZONE", help="Where days, weeks and months begin."),
]
Currency = Annotated[
    str | None,
    typer.Option("--currency", metavar="CODE", help="ISO 4217; converted only by dated rates."),
]


def chosen(how: Format, as_json: bool) -> Format:
    """The format that the two options mean together."""
    if as_json and how not in (Format.TABLE, Format.JSON):
        raise typer.BadParameter(f"--json and --format {how} contradict each other")
    return Format.JSON if as_json else how


def listed(text: str | None) -> tuple[str, ...]:
    """``a,b`` as its parts; blanks and empty parts are dropped."""
    return tuple(part for part in (p.strip() for p in (text or "").split(",")) if part)
