"""`unstrand close`: fix a day, so that what comes later is a correction."""

from __future__ import annotations

import getpass
from datetime import timedelta
from typing import Annotated, Any

import typer

from unstrand.clock import utc_now
from unstrand.closing import COVERAGE, GRACE_DAYS, closing_day, ratio
from unstrand.commands.options import By, Db, Server
from unstrand.commands.progress import working
from unstrand.commands.send import send_long
from unstrand.commands.source import opened, server_for


def close(
    day: Annotated[str, typer.Argument(metavar="DAY", help="A UTC day, 2026-10-05.")],
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME")],
    grace_days: Annotated[
        int, typer.Option("--grace-days", min=0, help="For facts that come late.")
    ] = GRACE_DAYS,
    coverage: Annotated[
        str, typer.Option("--coverage", metavar="RATIO", help="Below it, the day stays open.")
    ] = COVERAGE,
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Close a day: its rows, prices and settings stay as they are; late facts become corrections.

    Example: `unstrand close 2026-10-05 --cluster c1`
    """
    body = {
        "day": day, "cluster": cluster, "grace_days": grace_days, "coverage": coverage,
        "actor": by or getpass.getuser(),
    }  # fmt: skip
    address = server_for(db, server)
    done = send_long(address, "close", body) if address is not None else _in_file(body, db)
    typer.echo(
        f"{done['cluster']} {done['day']}: closed, coverage {done['coverage_ratio']}, "
        f"ledger {done['ledger_hash'][:12]}"
    )


def _in_file(body: dict[str, Any], db: Db) -> dict[str, str]:
    # Here, not above: the ledger loads numba, which asking a service does not need.
    from analytics.ledger import ensure_built
    from analytics.ledger.closing import close_day, day_window

    day, least = closing_day(str(body["day"])), ratio(str(body["coverage"]))
    with opened(db) as store:
        with working("bringing the ledger up to date"):
            ensure_built(store, day_window(day), cluster=body["cluster"])
        closed = close_day(
            store, body["cluster"], day, now=utc_now(), actor=body["actor"],
            grace=timedelta(days=body["grace_days"]), least_coverage=least,
        )  # fmt: skip
    return closed.to_dict()
