"""Start the service over a store and keep it up until a signal."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

from collector.errors import StoreBusyError
from collector.ingest.door import AgentDoor
from collector.store import Store
from unstrand.clock import utc_now
from unstrand.errors import ServiceError
from unstrand.service.address import announced, find_server, read_address
from unstrand.service.app import service_app
from unstrand.service.bind import listen, url_of
from unstrand.service.core import Service
from unstrand.service.server import run_server

log = logging.getLogger(__name__)


def serve(  # noqa: PLR0913 - what an installation may set
    db_path: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8501,
    create: bool = True,
    goals_file: Path | None = None,
    delivery_file: Path | None = None,
    agent_secret_file: Path | None = None,
    local_cluster: str | None = None,
    slurm_cluster: str | None = None,
    slurm_every: timedelta = timedelta(minutes=5),
    clock: Callable[[], datetime] = utc_now,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve the store at ``db_path`` until SIGTERM or SIGINT, then stop cleanly and return.

    ``port`` 0 takes a free one. ``on_ready`` gets the address once it answers. Raises ServiceError
    or StoreError, saying what to do, when it cannot start.
    """
    path = Path(db_path).expanduser()
    agents = AgentDoor.from_file(agent_secret_file)
    with ExitStack() as stack:
        listener = stack.enter_context(listen(host, port))
        url = url_of(listener)
        service = Service.over(
            _open(path, create=create, clock=clock),
            clock,
            goals_file=goals_file,
            delivery_file=delivery_file,
            local_cluster=local_cluster,
        )
        service.agents = agents
        if slurm_cluster is not None:
            service.follow_slurm(slurm_cluster, slurm_every)
        stack.callback(service.stop)
        stack.enter_context(announced(path, url))
        run_server(
            service_app(service),
            listener,
            on_ready=lambda: on_ready(url),
            on_stop=service.refuse_intake,
        )
    if service.left_running:
        # Python would wait for the threads of unfinished background work, which may be compiling
        # for half a minute; everything that was taken is written and the file is closed.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def _open(path: Path, *, create: bool, clock: Callable[[], datetime]) -> Store:
    left_over = read_address(path)
    try:
        store = Store.open(path, clock=clock, create=create)
    except StoreBusyError as error:
        raise _held(path) from error
    if left_over is not None:
        log.warning(
            "the service before (pid %d) had no clean stop; what it acknowledged is here",
            left_over.pid,
        )
    return store


def _held(path: Path) -> ServiceError:
    server = find_server(path)
    if server is not None:
        return ServiceError(
            f"{path} is served already at {server.url} by process {server.pid}: open that address, "
            f"or stop it first (kill {server.pid})"
        )
    return ServiceError(
        f"{path} is held by another process that is no unstrand service: end it "
        f"(fuser {path} names it), or choose another file with --db"
    )
