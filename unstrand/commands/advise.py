"""`unstrand advise`: the weekly report, and what people make of it."""

from __future__ import annotations

import base64
import getpass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from unstrand.clock import utc_now
from unstrand.commands.advice_made import Wish, made_by_service, made_from_file
from unstrand.commands.options import (
    Cluster,
    Db,
    How,
    Json,
    Server,
    Until,
    chosen,
    instant,
    listed,
)
from unstrand.commands.send import send
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

advise_app = typer.Typer(
    help="What to change this week, what it brings, and what it risks.",
    invoke_without_command=True,
)
Goals = Annotated[
    Path | None,
    typer.Option("--goals", metavar="FILE", help="goals.toml: what matters here."),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="As `unstrand advise list` prints it.")]


@advise_app.callback()
def advise(
    context: typer.Context,
    window: Annotated[str, typer.Option("--window", help="12h, 7d or 4w.")] = "4w",
    until: Until = None,
    time_zone: Annotated[
        str | None, typer.Option("--time-zone", metavar="ZONE", help="Default: that of the goals.")
    ] = None,
    goals: Goals = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the report's files there.")
    ] = None,
    forms: Annotated[
        str, typer.Option("--format", metavar="FORMS", help="html, json, md, pdf; with --out.")
    ] = "html",
    language: Annotated[str | None, typer.Option("--language", help="en or ko.")] = None,
    delivery: Annotated[
        Path | None,
        typer.Option("--deliver", metavar="FILE", help="Send it to the receivers of this TOML."),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay/--no-replay",
            help="Try changes of scheduling on the window's own jobs, or give facts alone.",
        ),
    ] = True,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough",
            help="Also changes that the diagnosis gives no reason to try, and slow replays.",
        ),
    ] = False,
    db: Db = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Make the report of the last weeks and keep it. It never acts on the cluster.

    Example: `unstrand advise --window 4w --out report --format html,pdf`
    """
    if context.invoked_subcommand is not None:
        return
    wish = Wish(
        length=window, until=until, time_zone=time_zone, goals=goals, cluster=cluster,
        forms=listed(forms) if out is not None else (), language=language, delivery=delivery,
        replay=replay, thorough=thorough,
    )  # fmt: skip
    address = server_for(db, server)
    report = made_from_file(wish, db) if address is None else made_by_service(wish, address)
    files = report.pop("files")
    for form, content in files.items():
        _write(out, report, form, content)
    if as_json:
        print_document({**report, "rows": []}, Format.JSON)
    elif out is None:
        _print(report["recommendations"], Format.TABLE, report)


def _write(out: Path | None, report: dict[str, Any], form: str, content: str) -> None:
    assert out is not None
    out.mkdir(parents=True, exist_ok=True)
    cluster = report["cluster"] or "all"
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in cluster)
    path = out / f"gpu-report-{safe}-{report['window']['until'][:10]}.{form}"
    path.write_bytes(base64.b64decode(content))
    typer.echo(path)


@advise_app.command("list")
def list_(
    language: Annotated[str, typer.Option("--language", help="en or ko.")] = "en",
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
) -> None:
    """The newest report's recommendations with their states.

    Example: `unstrand advise list`
    """
    report = _newest(language, db, server)
    _print(report["recommendations"], chosen(how, as_json), report)


@advise_app.command("show")
def show(
    recommendation: Id,
    language: Annotated[str, typer.Option("--language", help="en or ko.")] = "en",
    db: Db = None,
    server: Server = None,
) -> None:
    """Everything about one recommendation, as JSON.

    Example: `unstrand advise show drained-nodes-1a2b3c4d`
    """
    report = _newest(language, db, server)
    found = [rec for rec in report["recommendations"] if rec["id"] == recommendation]
    if not found:
        from scheduler_advisor.errors import AdviceStateError

        raise AdviceStateError(
            f"the newest report has no recommendation {recommendation!r}: `unstrand advise list`"
        )
    print_document({"recommendation": found[0], "rows": []}, Format.JSON)


@advise_app.command("rows")
def rows(
    recommendation: Id,
    current: Annotated[
        bool, typer.Option("--current", help="What it cost in the window, not the weekly saving.")
    ] = False,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
) -> None:
    """The rows that a recommendation's amount adds up from.

    Example: `unstrand advise rows drained-nodes-1a2b3c4d --format csv`
    """
    amount = "current" if current else "saving"
    address = server_for(db, server)
    if address is not None:
        document = ask(address, f"advice/rows/{recommendation}", amount=amount)
    else:
        from scheduler_advisor.report.saved import rows_behind

        with opened(db) as store, store.work() as work:
            document = {"rows": rows_behind(work, recommendation, amount)}
    print_document(document, chosen(how, as_json))


@advise_app.command("accept")
def accept(recommendation: Id, db: Db = None, server: Server = None) -> None:
    """It will be done. Example: `unstrand advise accept ID`"""
    _change(recommendation, "accepted", db, server)


@advise_app.command("applied")
def applied(
    recommendation: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="What was done.")] = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """It has been done. Example: `unstrand advise applied ID`"""
    _change(recommendation, "applied", db, server, reason=reason)


@advise_app.command("snooze")
def snooze(
    recommendation: Id,
    until: Annotated[
        datetime, typer.Option("--until", metavar="TIME", parser=instant, help="Until when.")
    ],
    db: Db = None,
    server: Server = None,
) -> None:
    """Not now. Example: `unstrand advise snooze ID --until 2026-12-01`"""
    _change(recommendation, "snoozed", db, server, until=until)


@advise_app.command("dismiss")
def dismiss(
    recommendation: Id,
    reason: Annotated[str, typer.Option("--reason", help="Why not; it is kept.")],
    db: Db = None,
    server: Server = None,
) -> None:
    """Not here, and why. Example: `unstrand advise dismiss ID --reason "kept for exams"`"""
    _change(recommendation, "dismissed", db, server, reason=reason)


@advise_app.command("reopen")
def reopen(recommendation: Id, db: Db = None, server: Server = None) -> None:
    """New again. Example: `unstrand advise reopen ID`"""
    _change(recommendation, "new", db, server)


@advise_app.command("outcomes")
def outcomes(
    db: Db = None, server: Server = None, how: How = Format.TABLE, as_json: Json = False
) -> None:
    """What changes really brought, adjusted for load: advice, your own changes, purchases.

    Example: `unstrand advise outcomes`
    """
    address = server_for(db, server)
    if address is not None:
        document = ask(address, "advice/outcomes")
    else:
        from scheduler_advisor.followup.record import outcomes as judged

        with opened(db) as store, store.work() as work:
            document = {"rows": judged(work)}
    print_document(document, chosen(how, as_json))


@advise_app.command("nudges")
def nudges(
    db: Db = None, server: Server = None, how: How = Format.TABLE, as_json: Json = False
) -> None:
    """Personal notes to owners: what was or, in a dry run, would have been sent to whom.

    Example: `unstrand advise nudges --json`
    """
    address = server_for(db, server)
    if address is not None:
        document = ask(address, "advice/nudges")
    else:
        from scheduler_advisor.delivery.nudges import nudges_written

        with opened(db) as store, store.work() as work:
            document = {"rows": nudges_written(work)}
    print_document(document, chosen(how, as_json))


@advise_app.command("kinds")
def kinds(goals: Goals = None, how: How = Format.TABLE, as_json: Json = False) -> None:
    """Every kind of advice with its thresholds in force and their reasons.

    Example: `unstrand advise kinds --goals goals.toml`
    """
    from scheduler_advisor.advice.kinds import KINDS
    from scheduler_advisor.goals import load_goals

    given = load_goals(goals)
    found = [
        {"kind": kind.RULE.kind, "risk": kind.RULE.risk, "effort": kind.RULE.effort, **threshold}
        for kind in KINDS
        for threshold in kind.RULE.as_json(given)
    ]
    print_document({"rows": found}, chosen(how, as_json))


@advise_app.command("goals")
def goals_(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Check this file.")] = None,
) -> None:
    """Print the documented default goals, or check a file.

    Example: `unstrand advise goals > goals.toml && unstrand advise goals goals.toml`
    """
    from scheduler_advisor.advice.advise import check_thresholds
    from scheduler_advisor.goals import DEFAULT_TOML, load_goals

    if file is None:
        typer.echo(DEFAULT_TOML.read_text(encoding="utf-8"), nl=False)
        return
    check_thresholds(load_goals(file).thresholds)
    typer.echo(f"{file}: fine")


def _newest(language: str, db: Path | None, server: str | None) -> dict[str, Any]:
    address = server_for(db, server)
    if address is not None:
        answer: dict[str, Any] = ask(address, "advice", language=language)
        return answer
    from unstrand.commands.advice_made import newest_from_file

    return newest_from_file(db, language)


def _change(
    recommendation: str,
    state: str,
    db: Path | None,
    server: str | None,
    *,
    reason: str | None = None,
    until: datetime | None = None,
) -> None:
    actor, address = getpass.getuser(), server_for(db, server)
    if address is not None:
        body = {"state": state, "actor": actor, "reason": reason,
                "until": until.isoformat() if until else None}  # fmt: skip
        send(address, f"advice/state/{recommendation}", body)
    else:
        from scheduler_advisor.advice.recommendation import State, StateChange
        from scheduler_advisor.advice.states import change_state

        change = StateChange(
            ts=utc_now(), state=State(state), actor=actor, reason=reason, until=until
        )
        with opened(db) as store, store.work() as work:
            change_state(work, recommendation, change)
    typer.echo(f"{recommendation}: {state}")


def _print(found: list[dict[str, Any]], how: Format, report: dict[str, Any]) -> None:
    table = [
        {"rank": rec["rank"], "title": rec["title"], "cost": rec["saving"]["cost"],
         "gpu_hours": rec["saving"]["gpu_hours"], "basis": rec["saving"]["basis"],
         "owner": rec["owner"]["user"] or rec["owner"]["team"] or "platform",
         "risk": rec["risk"]["level"], "state": rec["state"], "id": rec["id"]}
        for rec in found
    ]  # fmt: skip
    joint, window = report["joint_saving"], report["window"]
    notes = [
        f"window    {window['since']} to {window['until']}, {window['time_zone']}",
        f"together  {joint['cost'] or '-'} {report['currency'] or ''} and "
        f"{joint['gpu_hours']:,.0f} GPU-hours a week (modelled), overlaps counted once",
    ]
    if not report["enough_data"]:
        notes.append("too little is known to advise: less than a day of accounted GPU time")
    print_document({"rows": table, "joint_saving": joint}, how, notes=notes)
