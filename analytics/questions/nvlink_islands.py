"""Which GPUs reach each other over NVLink, and how much they move there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from analytics.questions import statement
from collector.store import Store
from collector.telemetry.device import Device, Fabric, Link
from collector.telemetry.islands import direct_links, domain, islands

# Counters are read at every tick; over an hour a rate is steady and costs little to ask.
BEFORE = timedelta(hours=1)
_Traffic = Mapping[tuple[str, str, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """GPUs of one node that reach each other over NVLink.

    ``kind``: switch, direct (``links``: least and most links between two of them that have any) or
    none. ``fabric``: the domain over nodes. Rates are over the hour before; None = not measured.
    ``measured``: GPUs with a rate.
    """

    cluster: str
    node: str
    gpus: tuple[int, ...]
    gpu_uuids: tuple[str, ...]
    kind: str
    links: tuple[int, int] | None
    fabric: str | None
    tx_bytes_per_s: float | None
    rx_bytes_per_s: float | None
    measured: int


def nvlink_islands(store: Store, at: datetime, cluster: str | None = None) -> list[Island]:
    """Every island that stood at ``at``, node by node; only nodes where links are known."""
    rows = store.rows(statement("009_nvlink_at"), [at, cluster])
    asked = [at - BEFORE, at, cluster]
    traffic = {
        (row["cluster"], row["node"], row["gpu_uuid"]): row
        for row in store.rows(statement("010_nvlink_traffic"), asked)
    }
    found = []
    for key, of_node in groupby(rows, key=lambda row: (row["cluster"], row["node"])):
        devices = _devices(list(of_node))
        if any(device.links or device.fabric for device in devices):
            found += [_island(*key, devices, of, traffic) for of in islands(devices)]
    return found


def _devices(rows: Iterable[Mapping[str, Any]]) -> list[Device]:
    devices = []
    for uuid, of_gpu in groupby(rows, key=lambda row: row["gpu_uuid"]):
        links = list(of_gpu)
        first = links[0]
        fabric = None
        if first["fabric_uuid"] is not None:
            fabric = Fabric(
                first["fabric_uuid"], first["clique_id"], first["fabric_state"],
                first["health_mask"],
            )  # fmt: skip
        devices.append(
            Device(
                uuid,
                -1 if first["gpu_index"] is None else first["gpu_index"],
                pci_bus_id=first["pci_bus_id"],
                links=tuple(
                    Link(row["link"], row["remote_type"] or "unknown", row["remote_pci_bus_id"])
                    for row in links
                    if row["link"] is not None
                ),
                fabric=fabric,
            )
        )
    return devices


def _island(
    cluster: str, node: str, devices: list[Device], uuids: list[str], traffic: _Traffic
) -> Island:
    members = [device for device in devices if device.gpu_uuid in uuids]
    switched = any(n.remote_type == "switch" for device in members for n in device.links)
    pairs = direct_links(members)
    over = next((found for device in members if (found := domain(device)) is not None), None)
    known = [row for u in uuids if (row := traffic.get((cluster, node, u))) is not None]
    sent = [row["tx_bytes"] / row["seconds"] for row in known if row["tx_bytes"] is not None]
    received = [row["rx_bytes"] / row["seconds"] for row in known if row["rx_bytes"] is not None]
    return Island(
        cluster=cluster,
        node=node,
        gpus=tuple(device.gpu_index for device in members),
        gpu_uuids=tuple(device.gpu_uuid for device in members),
        kind="switch" if switched else "direct" if pairs else "none",
        links=(min(pairs.values()), max(pairs.values())) if pairs and not switched else None,
        fabric=None if over is None else f"{over[0][:8]}/{over[1]}",
        tx_bytes_per_s=sum(sent) if sent else None,
        rx_bytes_per_s=sum(received) if received else None,
        measured=len(sent),
    )
