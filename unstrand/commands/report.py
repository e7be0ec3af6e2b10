"""`unstrand report`: where GPU-hours and money went."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import typer

from analytics.window import Window
from collector.store import Store
from unstrand.commands.options import (
    Cluster,
    Currency,
    Db,
    How,
    Json,
    Out,
    Server,
    Since,
    Until,
    chosen,
    listed,
)
from unstrand.commands.question import Answer, Asked, fetch
from unstrand.commands.windowed import windowed
from unstrand.output import Format, print_document

Document = Mapping[str, Any]
report_app = typer.Typer(no_args_is_help=True, help="Where GPU-hours and money went.")


@report_app.command("cost")
@windowed
def cost(
    asked: Asked,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="KEYS",
            help="team, project, cost_center, user, account, "
            "queue, job, cluster, node, gpu_model, hour, day, week, month, hour_of_day, weekday, "
            "day_of_month, class.",
        ),
    ] = "team",
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Owners as they are now, not as they were then.")
    ] = False,
    currency: Currency = None,
) -> None:
    """What each team (or user, node, day, ...) held, used and pays.

    Every grouping adds up to the same total, to the cent.

    Example: `unstrand report cost --by team,gpu_model --since 2026-10-05 --until 2026-11-02`
    """
    keys = listed(by)
    as_of: Literal["now", "was"] = "now" if as_is else "was"

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports import cost_report

        return cost_report(
            store, window, keys, cluster=asked.cluster, currency=currency, as_of=as_of
        ).to_dict()

    tell(asked, "report/cost", answer, by=",".join(keys), as_of=as_of, currency=currency)


@report_app.command("ledger")
@windowed
def ledger(
    asked: Asked,
    by: Annotated[str, typer.Option("--by", metavar="KEYS", help="As for report cost.")] = "class",
    currency: Currency = None,
) -> None:
    """GPU-hours and cost of every class, and the proof that they are all there is.

    The last line is the identity: what is posted less what is installed, 0 in a true ledger.

    Example: `unstrand report ledger --since 2026-10-05 --until 2026-11-02`
    """
    keys = listed(by)

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports import ledger_report

        return ledger_report(
            store, window, keys, cluster=asked.cluster, currency=currency
        ).to_dict()

    tell(asked, "report/ledger", answer, by=",".join(keys), currency=currency)


@report_app.command("coverage")
def coverage(
    since: Since = None,
    until: Until = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """How much of the window is known, per node, and what keeps the rest in the dark.

    Example: `unstrand report coverage --since 2026-10-05 --until 2026-11-02`
    """

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports import coverage_report

        return coverage_report(store, window, cluster=asked.cluster).to_dict()

    asked = Asked(db, server, since, until, "UTC", cluster, chosen(how, as_json), out)
    document = fetch(asked, "report/coverage", answer)
    window, share = document["window"], document["coverage_ratio"]
    said = [
        f"window    {window['since']} to {window['until']}",
        f"coverage  {'not known' if share is None else f'{share:.2%}'} of GPU-time",
        *(
            f"{name:<9} {len(document[name])}, see --json"
            for name in ("gaps", "unmapped", "unpriced", "conflicts")
        ),
    ]
    print_document({"rows": document["nodes"], **document}, asked.how, out=asked.out, notes=said)


def tell(asked: Asked, path: str, answer: Answer, **parameters: object) -> None:
    """Print one report, from the service if one holds the file, else from the file itself."""
    document = fetch(asked, path, answer, **parameters)
    print_document(document, asked.how, out=asked.out, notes=notes(document))


def notes(document: Document) -> list[str]:
    """What has to stand beside the rows: window, coverage, prices, remarks; the identity last."""
    window, currency = document["window"], document["currency"] or ""
    coverage = document["coverage_ratio"]
    identity = document["identity"]
    return [
        f"window    {window['since']} to {window['until']}, {window['time_zone']}",
        f"coverage  {'not known' if coverage is None else f'{coverage:.2%}'} of GPU-time",
        f"prices    {document['price_book'] or 'none'}",
        *(f"remark    {remark}" for remark in document.get("remarks", ())),
        *_adjusted(document),
        f"identity  {identity['gpu_seconds_difference']} GPU-seconds, "
        f"{identity['cost_difference']} {currency}".rstrip(),
    ]


def _adjusted(document: Document) -> list[str]:
    """Adjustments, each in a line of its own, and the total with them."""
    lines = document.get("adjustments", ())
    told = [
        f"adjusted  {a['adjustment_id']} {a['month']} {a['team'] or 'platform'}: {a['kind']} "
        f"{a['amount']} {a['currency']}, {a['reason']} (approved by {a['approved_by']})"
        for a in lines
    ]
    if lines:
        cost, currency = document["adjusted_cost"], document["currency"]
        whole = "not known" if cost is None else f"{Decimal(cost):,.2f} {currency}"
        told.append(f"adjusted  total with adjustments {whole}")
    return told
