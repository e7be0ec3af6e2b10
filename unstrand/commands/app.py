"""The tree of commands."""

from __future__ import annotations

from importlib.metadata import version

import typer

from unstrand.commands import (
    adjust,
    advise,
    agent,
    audit,
    calculate,
    calibrate,
    checkpoint,
    close,
    demo,
    doctor,
    handover,
    import_facts,
    import_trace,
    invoice,
    issued,
    job,
    mark,
    measurements,
    money,
    org,
    overlays,
    pack,
    price,
    report,
    setting,
    sheet_books,
    simulate,
    statement,
    store_file,
    stranding,
    sweep,
    up,
    usage,
)

app = typer.Typer(
    name="unstrand",
    help="Where every GPU-hour and dollar of a cluster went, and why free GPUs could not be used.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"unstrand {version('unstrand')}")
        raise typer.Exit


@app.callback()
def root(
    _: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Where every GPU-hour and dollar of a cluster went, and why free GPUs could not be used."""


app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("agent")(agent.agent)
app.command("agent-token")(agent.agent_token)
app.add_typer(report.report_app, name="report")
app.add_typer(price.price_app, name="price")
sheet_books.register(price.price_app)
price.price_app.command("calculate")(calculate.calculate)
app.add_typer(org.org_app, name="org")
app.add_typer(setting.setting_app, name="setting")
app.add_typer(checkpoint.checkpoint_app, name="checkpoint")
app.add_typer(adjust.adjust_app, name="adjust")
app.add_typer(invoice.invoice_app, name="invoice")
app.command("audit")(audit.audit)
app.command("statement")(statement.statement)
app.add_typer(issued.issued_app, name="issued")
app.command("close")(close.close)
app.add_typer(import_facts.import_app, name="import")
import_facts.import_app.command("trace")(import_trace.trace)
app.command("pack")(pack.pack)
app.command("simulate")(simulate.simulate)
app.command("sweep")(sweep.sweep)
app.command("calibrate")(calibrate.calibrate)
app.command("doctor")(doctor.doctor)
app.add_typer(advise.advise_app, name="advise")
handover.register(advise.advise_app)
app.command("mark")(mark.mark)
app.command("job")(job.job)
stranding.register(report.report_app)
measurements.register(report.report_app)
money.register(report.report_app)
usage.register(report.report_app)
overlays.register(report.report_app)
app.command("backup")(store_file.backup)
app.command("restore")(store_file.restore)
app.command("migrate")(store_file.migrate)
