"""What only a live cluster shows, into the store: the queue, reservations and the watermark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from collector.model import NodeState, Reservation
from collector.slurm.inventory import SHOWN, SOURCE
from collector.slurm.reservation import SlurmReservation
from collector.slurm.squeue import Queue
from collector.slurm.stored import put_in_place, stored
from collector.store import Work


def watermark(work: Work, cluster: str) -> datetime | None:
    """Until when the cluster's accounting has been taken in; None = never."""
    found: datetime | None = work.value(
        "SELECT max(done_until) FROM watermark WHERE task = ?", [_task(cluster)]
    )
    return found


def write_watermark(work: Work, cluster: str, until: datetime, now: datetime) -> None:
    """Accounting has been taken in up to ``until``."""
    work.execute("DELETE FROM watermark WHERE task = ?", [_task(cluster)])
    work.append("watermark", {"task": [_task(cluster)], "done_until": [until], "ts": [now]})


def write_queue(work: Work, cluster: str, queue: Queue, ts: datetime) -> int:
    """The pending jobs at ``ts``, in place of what was there for that instant."""
    work.execute(
        "DELETE FROM queue_snapshot WHERE cluster = ? AND ts = ? AND source = ?",
        [cluster, ts, SOURCE],
    )
    rows = queue.waiting
    moments = [None if r.submit is None else datetime.fromtimestamp(r.submit, UTC) for r in rows]
    return work.append(
        "queue_snapshot",
        {
            "cluster": [cluster] * len(rows),
            "ts": [ts] * len(rows),
            "job_id": [r.job_id for r in rows],
            "partition": [r.partition for r in rows],
            "account": [r.account for r in rows],
            "user_name": [r.user for r in rows],
            "qos": [r.qos for r in rows],
            "priority": [r.priority for r in rows],
            "reason": [r.reason for r in rows],
            "submit_at": moments,
            "nodes": [r.nodes for r in rows],
            "gpus": [r.gpus for r in rows],
            "gpus_per_node": [r.gpus_per_node for r in rows],
            "gpu_model": [r.gpu_model for r in rows],
            "cpus": [r.cpus for r in rows],
            "mem_mib": [r.mem_mib for r in rows],
            "limit_s": [r.limit_s for r in rows],
            "source": [SOURCE] * len(rows),
        },
    )


def write_reservations(
    work: Work, cluster: str, shown: Iterable[SlurmReservation], now: datetime
) -> int:
    """Reservations as they stand; one that is no longer shown ends now, or never was if it had not
    begun."""
    before = stored(work, cluster, Reservation)
    incoming = reservations(cluster, shown)
    keys = {(row.name, row.node, row.since) for row in incoming}
    kept = [
        ended
        for row in before
        if (row.name, row.node, row.since) not in keys and (ended := _ended(row, now)) is not None
    ]
    put_in_place(work, cluster, before, [*kept, *incoming])
    return len(incoming)


def reservations(cluster: str, shown: Iterable[SlurmReservation]) -> list[Reservation]:
    """One row per reservation and node; GPUs of a partial one are spread evenly."""
    rows = []
    for each in shown:
        if each.maintenance:
            continue
        for index, name in enumerate(each.nodes):
            gpus = None
            if each.gpus is not None:
                whole, rest = divmod(each.gpus, len(each.nodes))
                gpus = whole + (index < rest)
            rows.append(
                Reservation(
                    cluster=cluster,
                    name=each.name,
                    node=name,
                    gpus=gpus,
                    accounts=each.accounts or None,
                    since=datetime.fromtimestamp(each.since, UTC),
                    until=None if each.until is None else datetime.fromtimestamp(each.until, UTC),
                    source=SOURCE,
                )
            )
    return rows


def maintenance(cluster: str, shown: Iterable[SlurmReservation], now: datetime) -> list[NodeState]:
    """Maintenance reservations that have begun, as states of their nodes; open until they end."""
    return [
        NodeState(
            cluster=cluster,
            node=name,
            since=datetime.fromtimestamp(each.since, UTC),
            until=_past(each.until, now),
            state="maintenance",
            reason=each.name,
            source=SHOWN,
        )
        for each in shown
        if each.maintenance and each.since < now.timestamp()
        for name in each.nodes
    ]


def _past(epoch: int | None, now: datetime) -> datetime | None:
    if epoch is None or epoch > now.timestamp():
        return None
    return datetime.fromtimestamp(epoch, UTC)


def _ended(row: Reservation, now: datetime) -> Reservation | None:
    if row.until is not None and row.until <= now:
        return row
    if row.since >= now:
        return None
    return replace(row, until=now)


def _task(cluster: str) -> str:
    return f"slurm:{cluster}"
