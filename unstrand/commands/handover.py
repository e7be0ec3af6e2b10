"""`unstrand advise snippet`: a change of policy for the scheduler in use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from unstrand.clock import utc_now
from unstrand.commands.options import Cluster, Db, Json, Server
from unstrand.commands.send import send
from unstrand.commands.source import opened, server_for
from unstrand.errors import OutputError, SettingsError
from unstrand.output import Format, print_document

DIFF = "change.diff"


def snippet(
    scheduler: Annotated[
        str, typer.Option("--scheduler", metavar="NAME", help="slurm, kueue, volcano, kai or yarn.")
    ],
    before: Annotated[
        str, typer.Option("--from", metavar="POLICY", help="Preset or TOML file: today.")
    ],
    after: Annotated[
        str | None,
        typer.Option("--to", metavar="POLICY", help="Preset or TOML file. Default: as --from."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of --to; may be repeated."),
    ] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A configuration file of today, such as slurm.conf, topology.conf, gres.conf, "
            "kueue.yaml, capacity-scheduler.xml; may be repeated.",
        ),
    ] = None,
    mem_per_gpu: Annotated[
        int | None, typer.Option("--mem-per-gpu", metavar="MIB", help="Default memory per GPU.")
    ] = None,
    cpus_per_gpu: Annotated[
        int | None, typer.Option("--cpus-per-gpu", metavar="N", help="Default CPUs per GPU.")
    ] = None,
    headroom: Annotated[
        int | None, typer.Option("--headroom", metavar="GPUS", help="Keep so many GPUs empty.")
    ] = None,
    mig: Annotated[
        list[str] | None,
        typer.Option("--mig", metavar="MODEL=P+P", help="Cut each GPU: A100-80GB=3g.40gb+3g.40gb."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help=f"Write {DIFF} and the files before and after there."
        ),
    ] = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Print what to change, how to try it, see it and undo it, and what cannot be expressed.

    With --cluster the nodes and the scheduler's settings come from the store. It applies nothing.

    Example: `unstrand advise snippet --scheduler slurm --from fifo --to easy --config slurm.conf`
    """  # fmt: skip
    texts = _policies(before, after or before, _pairs(changes or [], "--set"))
    wish: dict[str, Any] = {
        "scheduler": scheduler, "before": texts[0], "after": texts[1], "cluster": cluster,
        "files": {file.name: _text(file) for file in config or []},
        "mem_mib_per_gpu": mem_per_gpu, "cpus_per_gpu": cpus_per_gpu, "headroom_gpus": headroom,
        "mig": {model: profiles.split("+") if profiles else []
                for model, profiles in _pairs(mig or [], "--mig").items()},
    }  # fmt: skip
    address = server_for(db, server) if cluster is not None else None
    document = _made(wish, db) if address is None else send(address, "handover", wish)
    if out is not None:
        _write(out, document)
    if as_json:
        print_document({**document, "rows": []}, Format.JSON)
    elif out is None:
        from scheduler_advisor.handover.told import told

        typer.echo(told(document), nl=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("snippet")(snippet)


def _policies(before: str, after: str, changes: Mapping[str, str]) -> tuple[str, str]:
    from scheduler_advisor.engine.policy_text import to_toml
    from unstrand.commands.simulate_run import read_policy

    return to_toml(read_policy(before, {})), to_toml(read_policy(after, changes))


def _made(wish: Mapping[str, Any], db: Path | None) -> dict[str, Any]:
    from scheduler_advisor.engine import policy_text
    from scheduler_advisor.handover.make import for_change, scheduler_named
    from scheduler_advisor.handover.site import Beside, Site, site_of

    site = Site(files=wish["files"])
    if wish["cluster"] is not None:
        with opened(db) as store, store.work() as work:
            site = site_of(work, wish["cluster"], utc_now(), wish["files"])
    beside = Beside(
        wish["mem_mib_per_gpu"], wish["cpus_per_gpu"], wish["headroom_gpus"],
        {model: tuple(profiles) for model, profiles in wish["mig"].items()},
    )  # fmt: skip
    before, after = (policy_text.from_toml(wish[side]) for side in ("before", "after"))
    return for_change(scheduler_named(wish["scheduler"]), before, after, site, beside).as_json()


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise typer.BadParameter(f"{option} {text}: write NAME=VALUE")
        found[name] = value
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {file} ({error}): check the path") from error


def _write(out: Path, document: Mapping[str, Any]) -> None:
    edits = [step for step in document["apply"] if "file" in step]
    texts = {DIFF: "".join(edit["diff"] for edit in edits)}
    for edit in edits:
        for side in ("before", "after"):
            if edit[side] is not None:
                texts[f"{side}/{edit['file']}"] = edit[side]
    try:
        for name, text in texts.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text, "utf-8")
            typer.echo(out / name)
    except OSError as error:
        raise OutputError(f"cannot write into {out}: {error.strerror or error}") from error
