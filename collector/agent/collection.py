"""The loop that turns ticks into batches and keeps the newest picture for the exporter."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from collector.agent.batch import Batch
from collector.agent.reader import ReaderProcess, ReaderSettings, ReaderState
from collector.mapping.attribution import Attribution
from collector.mapping.mapper import Mapper
from collector.telemetry.rows import inventory_rows, lost_of, micros, sample_rows
from collector.telemetry.tick import Tick

log = logging.getLogger(__name__)

# Snapshots are sent on change, and this often anyway: a service that lost its store learns anew.
_SNAPSHOT_S = 600.0


class HostSource(Protocol):
    """The node's own CPU, memory, pressure and network, see `collector.host`."""

    def read(
        self, ts: datetime, mono_s: float, attribution: Attribution, step_s: float
    ) -> dict[str, list[Any]]:
        """`host_sample` rows for that instant."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Who speaks. ``agent_id`` outlives restarts as its folder does; ``boot_id`` is one start."""

    cluster: str
    node: str
    agent_id: str
    boot_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    version: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The newest that is known of the node. ``tick`` None: nothing was read yet.

    ``xids``: (GPU, code) -> how often, and when last; an Xid never clears by itself.
    ``taken_mono_s``: when, by a clock that never jumps; what is too old must not be shown.
    """

    state: ReaderState
    message: str
    tick: Tick | None
    attribution: Attribution
    taken_mono_s: float
    starts: int = 0
    hangs: int = 0
    costs: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    ticks: int = 0
    undelivered: int = 0
    xids: Mapping[tuple[str, int], tuple[int, datetime]] = field(default_factory=dict)


class Collection:
    """Reads, maps and delivers in a thread of its own. ``deliver`` keeps or sends a batch."""

    def __init__(
        self,
        identity: Identity,
        settings: ReaderSettings,
        deliver: Callable[[Batch], None],
        *,
        clock: Callable[[], datetime],
        mapper: Mapper,
        host: HostSource | None = None,
    ) -> None:
        self.identity = identity
        self._settings = settings
        self._deliver = deliver
        self._clock = clock
        self._mapper = mapper
        self._host = host
        self._reader = ReaderProcess(settings)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="unstrand-collector", daemon=True)
        self._sequence = 0
        self._sent_inventory: list[Any] | None = None
        self._sent_at_s = 0.0
        self._host_read_s = time.monotonic()
        self._ticks = 0
        self._lost: set[str] = set()
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
        for event in tick.events:
            key = (event.gpu_uuid or "", event.code)
            self._xids[key] = (self._xids.get(key, (0, event.ts))[0] + 1, event.ts)
        attribution = self._mapper.attribute(tick)
        self._show(tick, attribution, anew=True)
        self._send(tick.ts, self._tables(tick, attribution))

    def _host_alone(self) -> None:
        """A driver that is hung or missing must not hide the node itself."""
        now_s, step_s = time.monotonic(), self._settings.intervals.load_s
        reading = self._reader.state in (ReaderState.READING, ReaderState.STARTING)
        if self._host is None or reading or now_s - self._host_read_s < step_s:
            return
        if self.picture.tick is None:
            return  # no GPU was ever seen: this is no node to speak of
        self._host_read_s, ts = now_s, self._clock()
        rows = self._host.read(ts, now_s, self.picture.attribution, step_s)
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
        tables = sample_rows(tick, attribution, step_s, self._lost)
        self._lost = lost_of(tick)
        if self._host is not None:
            now_s = self._host_read_s = time.monotonic()
            tables["host_sample"] = self._host.read(tick.ts, now_s, attribution, step_s)
        if not any(tables["event"].values()):
            del tables["event"]
        if not any(tables["process_sample"].values()):
            del tables["process_sample"]
        if attribution.age_s == 0:  # an old answer must neither close nor extend anything
            tables["holding"] = holding_rows(tick.ts, attribution)
        now = time.monotonic()
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
        )


def holding_rows(ts: datetime, attribution: Attribution) -> dict[str, list[Any]]:
    """The holders of the node now, as a snapshot."""
    names = (
        "key", "gpu_uuid", "mig_uuid", "share_num", "share_den", "user_name", "account", "name",
    )  # fmt: skip
    rows: dict[str, list[Any]] = {n: [getattr(h, n) for h in attribution.holdings] for n in names}
    rows["ts"] = [micros(ts)] * len(attribution.holdings)
    return rows


def host_size(proc: Path = Path("/proc")) -> tuple[int | None, int | None]:
    """The node's CPUs and memory in MiB, as the kernel counts them."""
    try:
        cpus = sum(
            line.startswith("processor") for line in (proc / "cpuinfo").read_text().splitlines()
        )
        total = (proc / "meminfo").read_text().split("MemTotal:")[1].split()[0]
        return cpus or None, int(total) // 1024
    except (OSError, ValueError, IndexError):
        return None, None
