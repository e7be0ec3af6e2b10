"""`unstrand statement`: a team's bill of a month."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unstrand.clock import utc_now
from unstrand.commands import issued
from unstrand.commands.issued import write_file
from unstrand.commands.options import (
    By,
    Cluster,
    Currency,
    Db,
    Json,
    MonthName,
    Server,
    TimeZone,
    listed,
)
from unstrand.commands.progress import working
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

if TYPE_CHECKING:
    from unstrand.statements import StatementWish


def statement(
    month: MonthName,
    team: Annotated[str | None, typer.Option("--team", metavar="TEAM")] = None,
    platform: Annotated[
        bool, typer.Option("--platform", help="What no team pays, instead of a team's.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Every team's, and the platform's.")] = False,
    forms: Annotated[
        str, typer.Option("--format", metavar="FORMS", help="html, pdf, csv, json: files in --out.")
    ] = "",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the files go. Default: here.")
    ] = Path(),
    language: Annotated[str, typer.Option("--language", help="en or ko.")] = "en",
    issue: Annotated[
        bool, typer.Option("--issue", help="Freeze final statements; see unstrand issued.")
    ] = False,
    by: By = None,
    currency: Currency = None,
    time_zone: TimeZone = "UTC",
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """A team's bill of a month: used, idle, lost, adjustments, rules, and how to dispute.

    All of a month's statements add up to the fleet's cost, to the cent.

    Example: `unstrand statement --team nlp --month 2026-10 --format html,pdf --out bills`

    Example: `unstrand statement --all --month 2026-10 --issue`
    """
    if sum((team is not None, platform, every)) != 1:
        raise typer.BadParameter("name a --team, or say --platform or --all")
    # Here, not above: the ledger loads numba, which looking up help does not need.
    from unstrand.statements import StatementWish

    wish = StatementWish(
        month=month, team=team, platform=platform, time_zone=time_zone, cluster=cluster,
        currency=currency, language=language, forms=listed(forms),
    )  # fmt: skip
    if issue:
        print_document({"rows": issued.issue(wish, by, db, server)},
                       Format.JSON if as_json else Format.TABLE)  # fmt: skip
        return
    address = server_for(db, server)
    found = _from_file(wish, db) if address is None else _from_service(wish, address)
    for one in found:
        for name, content in one.pop("files").items():
            write_file(out, name, base64.b64decode(content))
    if as_json:
        body: dict[str, Any] = {"statements": found} if every else found[0]
        print_document({**body, "rows": []}, Format.JSON)
    elif not wish.forms:
        for one in found:
            print_document({"rows": _rows(one), "total": _total(one)}, Format.TABLE,
                           notes=_notes(one))  # fmt: skip


def _from_file(wish: StatementWish, db: Path | None) -> list[dict[str, Any]]:
    # Here, not above: the ledger loads numba, which asking a service does not need.
    from analytics.ledger import ensure_built
    from unstrand.statements import made

    asked, now = wish.asked(), utc_now()
    with opened(db) as store:
        with working("bringing the ledger up to date"):
            ensure_built(store, asked.window(now), cluster=wish.cluster)
        return made(store, wish, now)


def _from_service(wish: StatementWish, address: str) -> list[dict[str, Any]]:
    wish.asked()
    answer = ask(
        address, "statements", month=wish.month, team=wish.team, tz=wish.time_zone,
        platform="true" if wish.platform else None, cluster=wish.cluster, currency=wish.currency,
        language=wish.language, forms=",".join(wish.forms),
    )  # fmt: skip
    rows: list[dict[str, Any]] = answer["statements"]
    return rows


def _rows(one: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines that are paid."""
    lines = [
        {"line": line["name"], "gpu_hours": float(line["gpu_hours"]), "cost": line["amount"]}
        for line in one["lines"]
    ]
    lines += [
        {"line": f"overhead: {share['name']}", "gpu_hours": None, "cost": share["amount"]}
        for share in one["overhead"]
    ]
    return lines + [
        {"line": f"{a['kind']} {a['adjustment_id']}: {a['reason']}", "gpu_hours": None,
         "cost": a["cost"]}
        for a in one["adjustments"]
    ]  # fmt: skip


def _total(one: dict[str, Any]) -> dict[str, Any]:
    return {"cost": one["total"]}


def _notes(one: dict[str, Any]) -> list[str]:
    state = "final" if one["final"] else "provisional"
    coverage = one["coverage_ratio"]
    total = f"{Decimal(one['total']):,} {one['currency']}"
    return [
        f"statement {one['statement_id']}, {one['team'] or 'platform'}, {one['month']}: {total}",
        f"state     {state}, {one['closed_days']} of {one['days']} days closed",
        f"coverage  {'not known' if coverage is None else f'{coverage:.2%}'} of GPU-time",
        f"prices    {one['rules']['price_book'] or 'none'}",
        *_issued(one),
        *(f"pending   {a['adjustment_id']} {a['kind']} {a['amount']}" for a in one["pending"]),
        *(f"remark    {remark}" for remark in one["remarks"]),
    ]


def _issued(one: dict[str, Any]) -> list[str]:
    last = one.get("issued")
    if last is None:
        return []
    same = last["statement_id"] == one["statement_id"]
    what = "this" if same else "since then it has changed; --issue makes the next version"
    return [
        f"issued    {last['issue_id']} version {last['version']} ({last['statement_id']}): {what}"
    ]
