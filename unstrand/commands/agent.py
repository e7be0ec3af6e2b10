"""`unstrand agent`: reads this node's GPUs and delivers what it reads to the service."""

from __future__ import annotations

import logging
import os
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from collector.agent.local import node_name
from collector.agent.reader import ReaderSettings
from collector.agent.run import AgentSettings, once, run
from collector.agent.schedule import Intervals
from collector.agent.sources import NodeSources
from collector.errors import CollectorError
from collector.exporter.dcgm import HostnameLabel
from collector.ingest.door import AgentDoor
from collector.ingest.tokens import issue
from collector.mapping.kubernetes import RESOURCES, Kubelet
from collector.mapping.node import NodeMapper
from unstrand.clock import utc_now


class AgentUsageError(CollectorError):
    """An option of the agent cannot be used."""


def agent(
    server: Annotated[
        str, typer.Option("--server", envvar="UNSTRAND_SERVER", metavar="URL", help="The service.")
    ],
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="This node's token, alone in a file."),
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="The cluster's name.")] = "default",
    node: Annotated[
        str | None, typer.Option("--node", help="As the scheduler calls it. Default: hostname.")
    ] = None,
    state: Annotated[
        Path, typer.Option("--state", metavar="FOLDER", help="Spool and the agent's name.")
    ] = Path("/var/lib/unstrand-agent"),
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where to serve /metrics.")
    ] = "127.0.0.1:9435",
    interval: Annotated[
        float, typer.Option("--interval", min=1.0, max=300.0, help="Seconds between readings.")
    ] = 15.0,
    dcgm_names: Annotated[
        bool, typer.Option("--dcgm-names", help="Also publish dcgm-exporter's names.")
    ] = False,
    hostname_label: Annotated[
        HostnameLabel, typer.Option("--hostname-label", help="Its spelling in those names.")
    ] = HostnameLabel.UPPER,
    nvml_library: Annotated[
        str | None,
        typer.Option("--nvml-library", metavar="FILE", help="The driver's library, if elsewhere."),
    ] = None,
    kubelet_socket: Annotated[
        Path | None,
        typer.Option(
            "--kubelet-socket", metavar="FILE", help="PodResources, if not in a usual place."
        ),
    ] = None,
    gpu_resource: Annotated[
        list[str] | None,
        typer.Option(
            "--gpu-resource", metavar="NAME", help="Also a GPU in Kubernetes; may be repeated."
        ),
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option("--ca-file", metavar="FILE", help="Trust this CA for --server.")
    ] = None,
    only_once: Annotated[
        bool, typer.Option("--once", help="Read, deliver, and exit; 0 if all was taken.")
    ] = False,
) -> None:
    """Read the GPUs of this node and send what is read to the service.

    Needs the host's process ids; CAP_SYS_PTRACE lets it name jobs by their environment. Exit code
    75 asks an orchestrator for a new container: the driver's library is gone for good in this one.

    Example: `unstrand agent --server https://gpu.example.org --token-file /etc/unstrand/token`
    """
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel("WARNING")  # not a line per batch
    host, port = _address(listen)
    slow = {"health_s": max(60.0, interval), "topology_s": max(600.0, interval)}
    settings = AgentSettings(
        server=server,
        state=state,
        cluster=cluster,
        node=node or node_name(),
        token=_token(token_file),
        verify=True if ca_file is None else str(ca_file),
        listen=(host, port),
        dcgm_names=dcgm_names,
        hostname_label=hostname_label,
        reader=ReaderSettings(
            library=nvml_library, intervals=Intervals(interval, interval, interval, **slow)
        ),
        version=version("unstrand"),
    )
    kubelet = Kubelet(kubelet_socket, (*RESOURCES, *(gpu_resource or ())))
    sources = NodeSources(mapper=NodeMapper(kubelet=kubelet))
    work = once if only_once else run
    status = work(settings, clock=utc_now, sources=sources)
    raise typer.Exit(int(status))


def agent_token(
    node: Annotated[str, typer.Argument(help="The node, as its agent will call itself.")],
    secret_file: Annotated[
        Path,
        typer.Option(
            "--secret-file",
            envvar="UNSTRAND_AGENT_SECRET",
            metavar="FILE",
            help="The secret that the service was started with.",
        ),
    ],
) -> None:
    """Print the token with which the agent of NODE speaks to the service.

    Example: `unstrand agent-token gpu-7 --secret-file /etc/unstrand/agent-secret`
    """
    secret = AgentDoor.from_file(secret_file).secret or b""
    typer.echo(issue(secret, node))


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise AgentUsageError(f"--listen {listen}: give an address and a port, as 127.0.0.1:9435")
    return host.strip("[]"), int(port)


def _token(file: Path | None) -> str | None:
    """From the file or UNSTRAND_AGENT_TOKEN; never from the command line, where ps shows it."""
    if file is None:
        return os.environ.get("UNSTRAND_AGENT_TOKEN") or None
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AgentUsageError(f"--token-file {file}: {error}") from error
