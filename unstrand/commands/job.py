"""`unstrand job ID`: what a job held, used, waited for and cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unstrand.clock import utc_now
from unstrand.commands.options import Cluster, Db, How, Json, Server, chosen
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document


def job(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The scheduler's job id.")],
    line: Annotated[bool, typer.Option("--line", help="One line, for a Slurm epilog.")] = False,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
) -> None:
    """What a job held, used, waited for and why, what it cost, and where it ran.

    Example: `unstrand job 41987`
    """
    how = chosen(how, as_json)
    card = _card(job_id, cluster, db, server)
    if line:
        typer.echo(card["line"])
        return
    print_document(card, how, notes=[card["line"], *_notes(card)])


def _card(job_id: str, cluster: str | None, db: Any, server: str | None) -> dict[str, Any]:
    address = server_for(db, server)
    if address is not None:
        answer: dict[str, Any] = ask(address, f"job/{job_id}", cluster=cluster)
        return answer
    from scheduler_advisor.job_card import job_card

    with opened(db) as store:
        card = job_card(store, job_id, utc_now(), cluster)
    return {**card.body, "line": card.line}


def _notes(card: dict[str, Any]) -> list[str]:
    idle, used = card["allocated_idle_gpu_hours"], card["used_gpu_hours"]
    notes = [
        f"{card['name'] or '-'} of {card['user'] or '-'} ({card['account'] or '-'}) in "
        f"{card['queue'] or '-'}: {card['state']}",
        f"used {used:,.1f}, idle {idle:,.1f}, lost {card['lost_gpu_hours']:,.1f}, "
        f"not measured {card['allocated_unmeasured_gpu_hours']:,.1f} GPU-hours",
    ]
    if not card["started"]:
        notes.append(f"not started: {card['reason'] or 'no reason on record'}")
    marks = [mark for mark in card["marks"] if mark["kind"].endswith("_end")]
    notes.append(f"{len(marks)} checkpoint or restore marks")
    return notes
