"""`unstrand doctor`: what is missing or broken here, and what to do."""

from __future__ import annotations

from dataclasses import asdict

import typer

from unstrand.clock import utc_now
from unstrand.commands.options import Config, Db, Json
from unstrand.output import Format, print_document
from unstrand.settings import load_settings


def doctor(config: Config = None, db: Db = None, as_json: Json = False) -> None:
    """Check this installation and its store; exit code 1 if something has failed.

    Example: `unstrand doctor --db site.duckdb`
    """
    # Here, not above: the node's part loads the driver's module, which no other command needs.
    from unstrand.doctor import State, examine

    findings = list(examine(load_settings(config, db=db), utc_now()))
    document = {"rows": [asdict(finding) for finding in findings]}
    print_document(document, Format.JSON if as_json else Format.TABLE)
    if any(finding.state is State.FAILED for finding in findings):
        raise typer.Exit(1)
