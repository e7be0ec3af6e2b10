"""The parts of a running service and the order in which they start and stop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from analytics.health.span import store_kind
from collector.agent.batch import Batch
from collector.agent.local import LocalCollector
from collector.errors import CollectorError
from collector.ingest.door import AgentDoor
from collector.ingest.take import prune, take_all
from collector.slurm.importer import import_live
from collector.store import Store, Work
from scheduler_advisor.running.journal import declare_lost
from scheduler_advisor.running.runs import close_runs
from unstrand.delivering import LOOK_EVERY as DELIVER_EVERY
from unstrand.delivering import Deliveries
from unstrand.schedule import LOOK_EVERY, WeeklyReports
from unstrand.service.keeper import ALL_EVERY, RECENT_EVERY, LedgerKeeper
from unstrand.service.ledger_metrics import LedgerCollector
from unstrand.service.local import LOCAL, local_collector
from unstrand.service.schedule import Schedule
from unstrand.service.writer import Writer

log = logging.getLogger(__name__)

# Longer than the longest time a node's spool can keep a batch (256 MiB at 4 KiB a tick, 15 s apart:
# eleven days), so that a late repeat is still known.
BATCHES_KEPT = timedelta(days=14)


@dataclass(slots=True)
class Service:
    """An open store with its writer and background work.

    Stopping: intake first, then background work, then the writer writes what it took, then the
    file is checkpointed and closed.
    """

    store: Store
    writer: Writer
    schedule: Schedule
    keeper: LedgerKeeper
    ledger_metrics: LedgerCollector
    clock: Callable[[], datetime]
    started_at: datetime
    collector: LocalCollector | None = None
    agents: AgentDoor = field(default_factory=AgentDoor)
    stopping: bool = False
    closed: bool = False
    left_running: bool = False

    @classmethod
    def over(
        cls,
        store: Store,
        clock: Callable[[], datetime],
        *,
        goals_file: Path | None = None,
        delivery_file: Path | None = None,
        local_cluster: str | None = None,
    ) -> Service:
        """The service over an open store, not started yet; it records this machine's GPUs.

        Not into a demo: made-up and measured facts never share a file. The weekly report follows
        ``goals_file`` and goes to the receivers of ``delivery_file``.
        """
        keeper, metrics = LedgerKeeper(store, clock), LedgerCollector(store)
        service = cls(store, Writer(store), Schedule(clock), keeper, metrics, clock, clock())
        service.schedule.every(ALL_EVERY, "ledger", keeper.everything)
        service.schedule.every(RECENT_EVERY, "ledger_recent", service.refresh_ledger)
        weekly = WeeklyReports(
            store, clock, goals_file, delivery_file, account=lambda _: keeper.everything()
        )
        service.schedule.every(LOOK_EVERY, "weekly_report", weekly.run_if_due)
        deliveries = Deliveries(store, clock, goals_file, delivery_file)
        service.schedule.every(DELIVER_EVERY, "deliveries", deliveries.look)
        service.schedule.every(timedelta(days=1), "forget_batches", service.forget_batches)
        if store_kind(store) != "demo":
            service.collector = local_collector(
                service.writer, clock, cluster=local_cluster or LOCAL, take=service.take_batches
            )
        return service

    def follow_slurm(self, cluster: str, every: timedelta) -> None:
        """Take in what this host's Slurm says, now and then every ``every``."""
        self.schedule.every(
            every, "slurm", lambda: import_live(self.store, cluster, None, None, self.clock())
        )

    def take_batches(self, work: Work, batches: Sequence[Batch]) -> list[int | CollectorError]:
        """What agents sent, into the store; for the writer, which calls it with all that wait."""
        return take_all(work, batches, self.clock())

    def forget_batches(self) -> None:
        """Batches so old that no spool can send them again need not be remembered."""
        with self.store.work() as work:
            prune(work, self.clock() - BATCHES_KEPT)

    def refresh_ledger(self) -> None:
        """Account for new facts, then work out the figures that Prometheus reads."""
        self.keeper.recent()
        self.ledger_metrics.refresh()

    def start(self) -> None:
        """Begin to take batches and to run background work."""
        self.say_what_was_lost()
        self.writer.start()
        self.schedule.start()
        if self.collector is not None:
            self.collector.start()

    def say_what_was_lost(self) -> None:
        """Long work that the last service did not end is called lost, here and where it is read."""
        with self.store.work() as work, work.transaction():
            for run in declare_lost(work, self.clock()):
                log.warning(
                    "a run of kind %s, begun %s, was lost when the service ended: start it again",
                    run["kind"], f"{run['started_at']:%Y-%m-%d %H:%M} UTC",
                )  # fmt: skip

    def stop(self) -> None:
        """Stop in order; safe to call twice."""
        if self.closed:
            return
        self.closed = self.stopping = True
        try:
            if self.collector is not None and not self.collector.stop():
                log.warning("the reader of this machine's GPUs did not end in time; it is left")
            self.keeper.stop()
            close_runs(self.store)
            self.left_running = not self.schedule.stop()
            if self.left_running:
                log.warning("background work did not end in time; its transaction is undone")
            self.writer.stop()
            self.store.checkpoint()
        finally:
            self.store.close()

    def refuse_intake(self) -> None:
        """Take nothing new from now on; safe in a signal handler."""
        self.stopping = True

    def not_ready(self) -> list[str]:
        """Why no work can be taken now; empty = ready."""
        if self.stopping:
            return ["the service is stopping"]
        reasons = []
        if not self.writer.alive:
            reasons.append("the writer has ended: restart the service")
        if self.store.value("SELECT 1") != 1:
            reasons.append("the store does not answer")
        return reasons
