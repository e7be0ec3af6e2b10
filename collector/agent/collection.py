"""The loop that turns ticks into batches and keeps the newest picture for the exporter."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from collector.agent.batch import Batch
from collector.agent.carry import Carry
from collector.agent.picture import Identity, Picture
from collector.agent.reader import ReaderProcess, ReaderSettings, ReaderState
from collector.agent.sources import NodeSources, host_size, unreported
from collector.mapping.attribution import Attribution, Holding
from collector.telemetry.energy_check import EnergyCheck
from collector.telemetry.outages import Outages
from collector.telemetry.rows import inventory_rows, micros, sample_rows
from collector.telemetry.tick import Tick

log = logging.getLogger(__name__)

# Snapshots are sent on change, and this often anyway: a service that lost its store learns anew.
_SNAPSHOT_S = 600.0
# Holders are sent on change, and this often anyway.
HOLDING_S = 60.0


class Collection:
    """Reads, maps and delivers in a thread of its own. ``deliver`` keeps or sends a batch."""

    def __init__(
        self,
        identity: Identity,
        settings: ReaderSettings,
        deliver: Callable[[Batch], None],
        *,
        clock: Callable[[], datetime],
        sources: NodeSources | None = None,
    ) -> None:
        self.identity = identity
        self._settings = settings
        self._deliver = deliver
        self._clock = clock
        self._sources = sources or NodeSources()
        self._reader = ReaderProcess(settings)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="unstrand-collector", daemon=True)
        self._sequence = 0
        self._sent_inventory: list[Any] | None = None
        self._sent_at_s = 0.0
        self._sent_holdings: tuple[Holding, ...] | None = None
        self._held_at_s = 0.0
        self._host_read_s = time.monotonic()
        self._ticks = 0
        self._outages = Outages()
        self._energy = EnergyCheck()
        self._carry = Carry(settings.intervals)
        self._xids: dict[tuple[str, int], tuple[int, datetime]] = {}
        self.undelivered = 0
        self.picture = Picture(ReaderState.STARTING, "", None, Attribution(), time.monotonic())

    def start(self) -> None:
        """Begin to collect."""
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> bool:
        """End the reader and the thread; whether both ended in time."""
        self._stop.set()
        if self._thread.ident is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    @property
    def gone_in_a_row(self) -> int:
        """How often in a row the driver library was gone; many: only a new container helps."""
        return self._reader.gone_in_a_row

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                tick = self._reader.wait(0.5)
                if tick is None:
                    self._show(self.picture.tick, self.picture.attribution, anew=False)
                    self._host_alone()
                else:
                    self._take(tick)
        finally:
            self._reader.stop()
            self._show(self.picture.tick, self.picture.attribution, anew=False)

    def _take(self, tick: Tick) -> None:
        self._ticks += 1
        self._energy.add(tick)
        if self._sources.kernel_log is not None:
            tick.events += unreported(tick, self._sources.kernel_log.read())
        for event in tick.events:
            key = (event.gpu_uuid or "", event.code)
            self._xids[key] = (self._xids.get(key, (0, event.ts))[0] + 1, event.ts)
        attribution = self._sources.mapper.attribute(tick)
        self._show(self._carry.over(tick), attribution, anew=True)
        self._send(tick.ts, self._tables(tick, attribution))

    def _host_alone(self) -> None:
        """A driver that is hung or missing must not hide the node itself."""
        now_s, step_s = time.monotonic(), self._settings.intervals.load_s
        reading = self._reader.state in (ReaderState.READING, ReaderState.STARTING)
        if self._sources.host is None or reading or now_s - self._host_read_s < step_s:
            return
        if self.picture.tick is None:
            return  # no GPU was ever seen: this is no node to speak of
        self._host_read_s, ts = now_s, self._clock()
        rows = self._sources.host.read(ts, now_s, self.picture.attribution, step_s)
        self._send(ts, {"host_sample": rows})

    def _send(self, ts: datetime, tables: dict[str, Any]) -> None:
        self._sequence += 1
        batch = Batch(
            cluster=self.identity.cluster,
            node=self.identity.node,
            agent_id=self.identity.agent_id,
            boot_id=self.identity.boot_id,
            sequence=self._sequence,
            ts_us=micros(ts),
            tables=tables,
            agent_version=self.identity.version,
        )
        try:
            self._deliver(batch)
        except Exception as error:  # noqa: BLE001 - one batch that cannot be kept must not end the collection
            self.undelivered += 1
            log.warning("batch %d was not delivered: %s", batch.sequence, error)

    def _tables(self, tick: Tick, attribution: Attribution) -> dict[str, Any]:
        step_s = self._settings.intervals.load_s
        tables = sample_rows(tick, attribution, step_s)
        tables["event"] = self._outages.events(tick)
        if self._sources.host is not None:
            now_s = self._host_read_s = time.monotonic()
            tables["host_sample"] = self._sources.host.read(tick.ts, now_s, attribution, step_s)
        if not any(tables["event"].values()):
            del tables["event"]
        if not any(tables["process_sample"].values()):
            del tables["process_sample"]
        now = time.monotonic()
        anew = attribution.holdings != self._sent_holdings or now - self._held_at_s > HOLDING_S
        # An old answer must neither close nor extend anything.
        if attribution.age_s == 0 and anew:
            tables["holding"] = holding_rows(tick.ts, attribution)
            self._sent_holdings, self._held_at_s = attribution.holdings, now
        if tick.inventory != self._sent_inventory or now - self._sent_at_s > _SNAPSHOT_S:
            cpus, mem_mib = host_size()
            tables |= inventory_rows(tick.ts, tick.inventory, cpus=cpus, mem_mib=mem_mib)
            self._sent_inventory, self._sent_at_s = tick.inventory, now
        return tables

    def _show(self, tick: Tick | None, attribution: Attribution, *, anew: bool) -> None:
        reader = self._reader
        self.picture = Picture(
            state=reader.state,
            message=reader.message,
            tick=tick,
            attribution=attribution,
            taken_mono_s=time.monotonic() if anew else self.picture.taken_mono_s,
            starts=reader.starts,
            hangs=reader.hangs,
            costs=reader.costs,
            ticks=self._ticks,
            undelivered=self.undelivered,
            xids=dict(self._xids),
            energy_disagreement=dict(self._energy.disagreement),
        )


def holding_rows(ts: datetime, attribution: Attribution) -> dict[str, list[Any]]:
    """The holders of the node now, as a snapshot."""
    names = (
        "key", "gpu_uuid", "mig_uuid", "share_num", "share_den", "user_name", "account", "name",
    )  # fmt: skip
    rows: dict[str, list[Any]] = {n: [getattr(h, n) for h in attribution.holdings] for n in names}
    rows["ts"] = [micros(ts)] * len(attribution.holdings)
    return rows
