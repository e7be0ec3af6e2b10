"""Facts of other systems as files: taken in whole, or refused with the line and left alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from pydantic import BaseModel, ConfigDict, Field

from analytics.window import parse_time
from collector.demo import holds_demo
from collector.errors import CollectorError
from scheduler_advisor.errors import AdvisorError
from unstrand.api.query import read_or_refuse
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError, SettingsError
from unstrand.import_documents import slurm_document, trace_document

if TYPE_CHECKING:
    from unstrand.service.core import Service

router = APIRouter(prefix="/import", tags=["imports"])

Text = Annotated[str | None, Form()]
Sent = Annotated[UploadFile | None, File()]


class LiveImport(BaseModel):
    """Which Slurm, and how far back."""

    model_config = ConfigDict(extra="forbid")

    cluster: str = Field(min_length=1, description="The name that it goes under.")
    since: str | None = Field(None, description="Default: where the last import ended.")
    until: str | None = Field(None, description="Default: now.")


@router.post("/slurm")
def slurm(  # noqa: PLR0913 - one form field per option of `unstrand import slurm`
    request: Request,
    cluster: Annotated[str, Form(min_length=1)],
    sacct: Annotated[UploadFile, File(description="Output of sacct -P.")],
    nodes: Annotated[UploadFile, File(description="Output of scontrol show node.")],
    events: Sent = None,
    topology: Sent = None,
    partitions: Sent = None,
    config: Sent = None,
    qos: Sent = None,
    associations: Sent = None,
    since: Text = None,
    until: Text = None,
    time_zone: Annotated[str, Form()] = "UTC",
    sacct_fields: Text = None,
) -> dict[str, Any]:
    """Take in files that Slurm's tools wrote; a broken one changes nothing."""
    from collector.slurm.importer import import_files

    service = _real(request)
    first, last = _time(since, "since"), _time(until, "until")
    sent = {"events": events, "topology": topology, "partitions": partitions,
            "config": config, "qos": qos, "associations": associations}  # fmt: skip
    with _kept(sacct=sacct, nodes=nodes, **sent) as paths:
        summary = import_files(
            service.store,
            cluster,
            sacct=paths["sacct"],
            nodes=paths["nodes"],
            now=service.clock(),
            events=paths.get("events"),
            topology=paths.get("topology"),
            partitions=paths.get("partitions"),
            config=paths.get("config"),
            qos=paths.get("qos"),
            associations=paths.get("associations"),
            since=first,
            until=last,
            time_zone=time_zone,
            sacct_fields=sacct_fields,
        )
    return slurm_document(summary)


@router.post("/slurm/live")
def slurm_live(request: Request, asked: LiveImport) -> dict[str, Any]:
    """Ask the Slurm of the host on which the service runs, once."""
    from collector.slurm.live_import import import_live

    service = _real(request)
    since, until = _time(asked.since, "since"), _time(asked.until, "until")
    try:
        summary = import_live(service.store, asked.cluster, since, until, service.clock())
    except CollectorError as error:
        raise _refused(str(error)) from error
    return slurm_document(summary)


@router.post("/trace")
def trace(  # noqa: PLR0913 - one form field per option of `unstrand import trace`
    request: Request,
    file: Annotated[UploadFile, File(description="The trace.")],
    format: Annotated[str, Form(description="swf, openb, philly, itp, helios or jobs.")],
    cluster: Annotated[str, Form(min_length=1)],
    nodes: Sent = None,
    shape: Text = None,
    origin: Text = None,
    policy: Annotated[
        str | None, Form(pattern="^[a-z0-9-]+$", description="A name, for a trace without starts.")
    ] = None,
    policy_file: Sent = None,
) -> dict[str, Any]:
    """Take in another cluster's past; a broken file changes nothing."""
    from unstrand.trace_import import TraceQuestion, take_in

    service = _real(request)
    with _kept(file=file, nodes=nodes, policy=policy_file) as paths:
        question = TraceQuestion(
            file=paths["file"],
            kind=format,
            cluster=cluster,
            nodes=paths.get("nodes"),
            shape=shape,
            origin=_time(origin, "origin"),
            policy=str(paths["policy"]) if "policy" in paths else policy,
        )
        return trace_document(take_in(service.store, question, service.clock()))


def _real(request: Request) -> Service:
    """The service, unless its store holds the demo: real facts must not mix with made-up ones."""
    service = service_of(request)
    if holds_demo(service.store):
        raise RequestRefusedError(
            "the store holds the demo cluster",
            where="store",
            remedy="import real facts into another file: a service of its own with --db",
            status=409,
        )
    return service


def _time(text: str | None, name: str) -> datetime | None:
    return None if text is None else read_or_refuse(f"form field {name}", lambda: parse_time(text))


@contextmanager
def _kept(**files: UploadFile | None) -> Iterator[dict[str, Path]]:
    """Where each file that was sent lies meanwhile, under the name that it was sent with.

    What an importer refuses inside is the request's fault, told without our own paths.
    """
    with tempfile.TemporaryDirectory(prefix="unstrand-import-") as folder:
        paths = {name: _put(Path(folder, name), sent) for name, sent in files.items() if sent}
        try:
            yield paths
        except (CollectorError, AdvisorError, SettingsError) as error:
            what = str(error)
            for path in paths.values():
                what = what.replace(f"{path.parent}/", "")
            raise _refused(what) from error


def _put(home: Path, sent: UploadFile) -> Path:
    home.mkdir()
    path = home / (Path(sent.filename or "").name or home.name)
    with path.open("wb") as target:
        shutil.copyfileobj(sent.file, target)
    return path


def _refused(what: str) -> RequestRefusedError:
    return RequestRefusedError(
        what, where="import", remedy="mend that and send everything again", status=422
    )
