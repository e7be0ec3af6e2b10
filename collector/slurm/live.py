"""A running cluster, asked once per import: controller first, accounting after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from collector.slurm import (
    associations,
    delimited,
    job_detail,
    node,
    node_event,
    partition,
    reservation,
    sacct,
    settings,
    squeue,
    topology,
)
from collector.slurm.commands import Ask
from collector.slurm.reservation import SlurmReservation
from collector.slurm.split import Share
from collector.slurm.squeue import Queue

_OPTIONAL = {"planned": "reserved"}
"""Fields that other versions call differently; a field that none knows is left out."""


@dataclass(frozen=True, slots=True)
class Controller:
    """What slurmctld shows at one instant."""

    cluster: str
    nodes: tuple[node.SlurmNode, ...]
    partitions: tuple[partition.SlurmPartition, ...]
    places: dict[str, topology.Place]
    reservations: tuple[SlurmReservation, ...]
    exact: dict[str, list[Share]]
    queue: Queue
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Accounting:
    """What slurmdbd shows for one window."""

    runs: sacct.RunBatch
    events: tuple[node_event.NodeEvent, ...]


def controller(ask: Ask) -> Controller:
    """Ask slurmctld for everything. Raises ImportRefusedError."""
    config = settings.config_of(ask(("scontrol", "show", "config")))
    detail = ask(("scontrol", "show", "job", "-d", "-o"))
    listed = ask(("scontrol", "show", "partition", "-o"))
    return Controller(
        cluster=config.get("ClusterName", ""),
        nodes=tuple(
            node.parse("scontrol show node", ask(("scontrol", "show", "node", "-d", "-o")))
        ),
        partitions=tuple(partition.parse("scontrol show partition", listed)),
        places=_places(ask, config),
        reservations=tuple(
            reservation.parse(
                "scontrol show reservation", ask(("scontrol", "show", "reservation", "-o"))
            )
        ),
        exact=job_detail.parse("scontrol show job", detail),
        queue=squeue.parse("squeue", ask(squeue.COMMAND)),
        settings=settings.settings(
            config,
            listed,
            ask(settings.QOS_COMMAND),
            ask(associations.COMMAND),
            config.get("ClusterName", ""),
        ),
    )


def accounting(ask: Ask, cluster: str, since: datetime, until: datetime) -> Accounting:
    """Ask slurmdbd for the runs and node events of the window: one query each.

    ``cluster``: Slurm's own name. Raises ImportRefusedError.
    """
    fields = _known_fields(ask(("sacct", "--helpformat")))
    window = ("-S", _time(since), "-E", _time(until))
    separator = delimited.UNIT_SEPARATOR
    options = ("-a", "-X", "-D", "-P", "--noconvert", f"--delimiter={separator}")
    text = ask(("sacct", *options, *window, f"--format={','.join(fields)}"))
    runs = sacct.parse("sacct", text.encode(), cluster=cluster)
    about = (f"start={_time(since)}", f"end={_time(until)}", f"cluster={cluster}")
    listed = ask(("sacctmgr", "-P", "show", "event", *about, f"format={node_event.FIELDS}"))
    events = node_event.parse("sacctmgr show event", listed.encode(), cluster=cluster)
    return Accounting(runs, tuple(events))


def _known_fields(helpformat: str) -> list[str]:
    """Our fields as this version of sacct spells them; an unknown one fails the whole call."""
    known = {name.lower() for name in helpformat.split()}
    # The job name may hold a line break: a field behind it shows where the row goes on.
    last = ("jobname", "exitcode")
    wanted = [name for name in sacct.FIELDS.split(",") if name not in last]
    wanted += ["priority", *last]
    return [
        name if name in known else _OPTIONAL[name]
        for name in wanted
        if name in known or _OPTIONAL.get(name) in known
    ]


def _places(ask: Ask, config: dict[str, str]) -> dict[str, topology.Place]:
    if config.get("TopologyPlugin", "").removeprefix("topology/") in (
        "",
        "none",
        "flat",
        "default",
    ):
        return {}
    text = ask(("scontrol", "show", "topology"))
    return topology.parse("scontrol show topology", text) if text.strip() else {}


def _time(moment: datetime) -> str:
    """Commands run in UTC; they take ISO times, older ones no epoch."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
