"""``unstrand import slurm --live``: the controller, then accounting, then one transaction."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from collector.slurm import commands, facts, live, live_writer, runaway
from collector.slurm.commands import Ask
from collector.slurm.facts import SlurmFacts
from collector.slurm.refusal import refusal
from collector.slurm.run_rules import Window
from collector.slurm.settings import write_settings
from collector.slurm.summary import ImportSummary
from collector.store import Store

FIRST_WINDOW = timedelta(days=28)
"""How far back the first import looks where it is not told."""

OVERLAP = timedelta(hours=1)
"""How far before the last import the next one asks again: accounting may come late."""


def import_live(
    store: Store,
    cluster: str,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    *,
    ask: Ask = commands.ask,
) -> ImportSummary:
    """Take in what Slurm's commands show, and say what was kept and left out.

    ``since``: default where the last import ended, less `OVERLAP`; the first one looks
    `FIRST_WINDOW` back. ``until``: default ``now``. The queue, the reservations and the nodes are
    those of ``now``. Raises ImportRefusedError with the store untouched.
    """
    now = now.astimezone(UTC).replace(microsecond=0)
    until = now if until is None else min(until, now)
    with store.work() as work:
        before = live_writer.watermark(work, cluster)
    if since is None:
        since = until - FIRST_WINDOW if before is None else before - OVERLAP
    if since >= until:
        what = f"the window {since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC is empty"
        raise refusal("window", None, what, "Give --since before --until")
    shown = live.controller(ask)
    booked = live.accounting(ask, shown.cluster, since, until)
    found = _facts(cluster, shown, booked, before or now, now)
    window = Window(int(since.timestamp()), int(until.timestamp()))
    with store.work() as work, work.transaction():
        summary = facts.write(work, found, window, now)
        queued = live_writer.write_queue(work, cluster, shown.queue, now)
        kept = live_writer.write_reservations(work, cluster, shown.reservations, now)
        write_settings(work, cluster, shown.settings, now)
        if before is None or until > before:
            live_writer.write_watermark(work, cluster, until, now)
    return summary.with_kept({"queue_snapshot": queued, "reservation": kept})


def _facts(
    cluster: str,
    shown: live.Controller,
    booked: live.Accounting,
    seen_since: datetime,
    now: datetime,
) -> SlurmFacts:
    runs, remarks = runaway.marked(booked.runs, shown.queue.active, now)
    if shown.queue.left_out:
        remarks.append(
            f"{shown.queue.left_out} pending array tasks beyond the first of each array are not in "
            "the queue snapshot"
        )
    return SlurmFacts(
        cluster=cluster,
        source="slurm live",
        digest=hashlib.sha256(f"{cluster}{now.isoformat()}".encode()).hexdigest()[:32],
        runs=runs,
        nodes=shown.nodes,
        events=booked.events,
        places=shown.places,
        partitions=shown.partitions,
        exact=shown.exact,
        seen_since=seen_since,
        states=tuple(live_writer.maintenance(cluster, shown.reservations, now)),
        remarks=tuple(remarks),
    )
