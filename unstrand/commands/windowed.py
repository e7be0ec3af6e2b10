"""The options of every question about a window, written once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, ParamSpec

from unstrand.commands.options import (
    Cluster,
    Db,
    How,
    Json,
    Out,
    Server,
    Since,
    TimeZone,
    Until,
    chosen,
)
from unstrand.commands.question import Asked
from unstrand.output import Format

Own = ParamSpec("Own")


def windowed(command: Callable[Concatenate[Asked, Own], None]) -> Callable[..., None]:
    """A command of its own options, then those of every question, which it gets as ``asked``."""
    shared = signature(_asked, eval_str=True).parameters
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    called: Callable[..., None] = command

    @wraps(command)
    def run(**values: Any) -> None:
        asked = _asked(**{name: values.pop(name) for name in shared})
        called(asked, **values)

    run.__signature__ = Signature([*own, *shared.values()])  # type: ignore[attr-defined]
    return run


def _asked(
    *,
    since: Since = None,
    until: Until = None,
    time_zone: TimeZone = "UTC",
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> Asked:
    return Asked(db, server, since, until, time_zone, cluster, chosen(how, as_json), out)
