"""``scontrol show node -d -o``: what a node has, and why it takes no work."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from collector.slurm import hostlist, key_values, stamp, tres
from collector.slurm.gres import gpus_by_type
from collector.slurm.node_flags import state_of
from collector.slurm.refusal import MalformedError, refusal

REMEDY = "Write the file with `SLURM_TIME_FORMAT=%s scontrol show node -d -o`"
_STAMP = re.compile(r"\s*\[(?P<user>[^\[\]@]*)@(?P<time>[^\[\]]+)\]\s*\Z")
_KEYS = frozenset(
    [
        *("NodeName", "Arch", "CoresPerSocket", "CPUAlloc", "CPUErr", "CPUEfctv", "CPUTot"),
        *("CPULoad", "AvailableFeatures", "ActiveFeatures", "Gres", "GresDrain", "GresUsed"),
        *("NodeAddr", "NodeHostName", "Port", "Version", "OS", "RealMemory", "AllocMem"),
        *("FreeMem", "Sockets", "Boards", "State", "ThreadsPerCore", "TmpDisk", "Weight", "Owner"),
        *("MCS_label", "Partitions", "BootTime", "SlurmdStartTime", "LastBusyTime"),
        *("ResumeAfterTime", "CfgTRES", "AllocTRES", "CapWatts", "CurrentWatts", "LowestJoules"),
        *("ConsumedJoules", "AveWatts", "ExtSensorsJoules", "ExtSensorsWatts", "ExtSensorsTemp"),
        *("ReservationName", "Reason", "Comment", "Extra", "Topology", "InstanceId"),
        *("InstanceType", "CoreSpecCount", "CPUSpecList", "MemSpecLimit", "NextState"),
    ]
)


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """One node as the controller shows it; ``gpus`` by raw type, lower case, None = untyped."""

    name: str
    gpus: dict[str | None, int]
    gpus_used: dict[str | None, int] | None
    cpus: int | None
    mem_mib: int | None
    cpus_held: int | None
    tracks_gpus: bool | None
    """Whether Slurm accounts for GPUs (CfgTRES names them); None = the line does not tell."""
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    state: str | None = None
    state_raw: str = ""
    reason: str | None = None
    reason_user: str | None = None
    reason_at: int | None = None
    reservation: str | None = None
    topology: tuple[str, ...] = field(default=())


def parse(source: str, text: str, zone: tzinfo = UTC) -> list[SlurmNode]:
    """Every node of the file, in its order. Raises ImportRefusedError."""
    nodes: dict[str, SlurmNode] = {}
    for line, record in key_values.records(source, text, "NodeName", REMEDY):
        try:
            found = list(_nodes(record, zone))
        except MalformedError as error:
            raise refusal(source, line, str(error), REMEDY) from error
        for node in found:
            if node.name in nodes:
                what = f"node {node.name} is listed twice"
                raise refusal(source, line, what, REMEDY)
            nodes[node.name] = node
    if not nodes:
        raise refusal(source, None, "no node in it", REMEDY)
    return list(nodes.values())


def _nodes(record: str, zone: tzinfo) -> Iterable[SlurmNode]:
    values = key_values.fields(record, _KEYS)
    if "State" not in values:
        raise MalformedError("the node has no State")
    gpus = gpus_by_type(values.get("Gres", ""))
    used = gpus_by_type(values["GresUsed"]) if "GresUsed" in values else None
    configured = tres.parse(values["CfgTRES"]) if values.get("CfgTRES") else None
    tracks = None if configured is None else configured.gpus > 0 or not gpus
    reason, user, at = _reason(values.get("Reason"), zone)
    for name in hostlist.expand(values["NodeName"]):
        yield SlurmNode(
            name=name,
            gpus=gpus or _from_tres(configured),
            gpus_used=used,
            cpus=_number(values, "CPUEfctv") or _number(values, "CPUTot"),
            mem_mib=_number(values, "RealMemory"),
            cpus_held=_number(values, "CPUAlloc"),
            tracks_gpus=tracks,
            partitions=_names(values.get("Partitions")),
            features=_names(values.get("ActiveFeatures", values.get("AvailableFeatures"))),
            state=state_of(values["State"]),
            state_raw=values["State"],
            reason=reason,
            reason_user=user,
            reason_at=at,
            reservation=values.get("ReservationName") or None,
            topology=_names(values.get("Topology")),
        )


def _from_tres(configured: tres.Tres | None) -> dict[str | None, int]:
    """GPUs from CfgTRES for a line without Gres."""
    if configured is None or not configured.gpus:
        return {}
    typed: dict[str | None, int] = {}
    typed.update(configured.gpus_by_type)
    rest = configured.gpus - sum(typed.values())
    return typed | ({None: rest} if rest > 0 else {})


def _reason(text: str | None, zone: tzinfo) -> tuple[str | None, str | None, int | None]:
    if not text:
        return None, None, None
    match = _STAMP.search(text)
    if match is None:
        return text, None, None
    at = stamp.epoch(match.group("time"), zone)
    return text[: match.start()].strip() or None, match.group("user") or None, at


def _number(values: dict[str, str], key: str) -> int | None:
    text = values.get(key)
    if text in (None, "", "N/A"):
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 15:
        raise MalformedError(f"{key}={text[:40]} is no whole number")
    return int(text)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for name in (text or "").split(",") if name and name != "(null)")
