"""After every sickness of a GPU the ledger still adds up to what is installed, and stays true.

Once for the parts in this process, and once through a whole service, which must stay up.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest

from analytics.ledger.build import build
from analytics.ledger.classes import LedgerClass
from analytics.window import Window
from collector.agent.batch import Batch, unpack
from collector.agent.collection import holding_rows
from collector.agent.local import LocalCollector
from collector.agent.picture import Identity
from collector.errors import DriverGoneError
from collector.ingest import take
from collector.mapping.attribution import Attribution, Holding
from collector.nvml import Nvml
from collector.telemetry.nvml_source import NvmlSource
from collector.telemetry.outages import Outages
from collector.telemetry.rows import inventory_rows, micros, sample_rows
from collector.telemetry.source import Group

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
STEP_S = 60.0
TICKS = 60
CLASSES = " + ".join(LedgerClass)
GPU0 = "GPU-00000000-0000-0000-0000-000000000000"


def slices(*gpus):
    """Seven instances on each of these GPUs."""
    return {
        f"gpu{gpu}.mig{slot}.{name}": value
        for gpu in gpus
        for slot in range(7)
        for name, value in {"uuid": f"MIG-{gpu}{slot}", "gi": slot + 1, "mem_mib": 9984}.items()
    }


SLICES = slices(0)
SICKNESSES = {
    "healthy": {},
    "lost": {20: {"gpu1.lost": 1}, 40: {"gpu1.lost": 0}},
    "lost for ever": {20: {"gpu1.lost": 1}},
    "off the bus": {20: {"count": 1}},
    "garbage": {10: {"gpu.util": 4294967295, "gpu.power_mw": 2**31 - 16}, 30: {"gpu.util": 40}},
    "counters start over": {20: {"gpu.energy_mj": 1}},
    "fatal xid": {20: {"xid": "0,79,1", "gpu0.util": 0}, 40: {"gpu.energy_mj": 1}},
    "reconfigured": {10: {"gpu0.mig": 1, **SLICES}, 30: dict.fromkeys(SLICES), 40: {"gpu0.mig": 0}},
    "driver gone": {20: {"driver_gone": 1}, 40: {"driver_gone": None}},
    "driver reloaded": {
        20: {"driver_gone": 1},
        25: {"driver_gone": None, "driver": "595.10", "gpu.energy_mj": 1, "gpu.nvlink_tx_kib": 0},
    },
    "bad name": {20: {"gpu.bad_name": 1}},
    "zero samples": {20: {"gpu.zero_samples": 1, "gpu.proc0": "7,C,1,30"}},
    "a thousand processes": {20: {"gpu.proc_base": 5000, "gpu.proc_count": 1000}},
    "sixteen GPUs": {0: {"count": 16}, 30: {"gpu9.lost": 1}},
    "seven slices on each of sixteen": {
        0: {"count": 16, "gpu.mig": 1, **slices(*range(16))},
        30: dict.fromkeys(slices(3)),
    },
}
GPUS = {"sixteen GPUs": 16, "seven slices on each of sixteen": 16}


class Site:
    """An hour of a node with two GPUs, a tick a minute, without waiting for it.

    ``deliver``: who takes the batches; by default they go into the store at once.
    """

    def __init__(self, store, library, scenario, deliver=None, cluster="c"):
        self.store, self.scenario, self.cluster = store, scenario, cluster
        self.deliver = deliver or self.take
        self.minute, self.told = 0, None
        self.source = NvmlSource(
            Nvml.open(library), clock=self.now, monotonic=lambda: self.minute * STEP_S
        )
        self.outages = Outages()

    def now(self):
        return START + timedelta(minutes=self.minute)

    def run(self, changes, attribution):
        for self.minute in range(TICKS + 1):
            if self.minute in changes:
                self.scenario.set(changes[self.minute])
            try:
                tick = self.source.read(frozenset(Group))
            except DriverGoneError:
                continue
            tables = sample_rows(tick, attribution, STEP_S)
            if tick.inventory != self.told:  # as the collection does: on change
                tables |= inventory_rows(tick.ts, tick.inventory, cpus=64, mem_mib=500_000)
                self.told = tick.inventory
            tables["event"] = self.outages.events(tick)
            tables["holding"] = holding_rows(tick.ts, attribution)
            sender = (self.cluster, "n1", f"agent of {self.cluster}", "b")
            self.deliver(Batch(*sender, self.minute, micros(tick.ts), tables))

    def take(self, batch):
        with self.store.work() as work, work.transaction():
            take(work, unpack(batch.pack()), self.now())


@pytest.fixture
def site(store, stub_library, scenario):
    scenario.set(count=2)
    return Site(store, stub_library, scenario)


def posted(store):
    return store.rows(
        f"SELECT sum({CLASSES})::BIGINT AS all_us, sum(used)::BIGINT AS used, "
        "sum(failed)::BIGINT AS failed, sum(failed_held)::BIGINT AS failed_held, "
        "sum(unknown)::BIGINT AS unknown "
        "FROM ledger_hour"
    )[0]


@pytest.mark.parametrize("sickness", SICKNESSES)
def test_the_classes_add_up_to_what_is_installed(site, store, sickness):
    held = Attribution((Holding("user:ada", GPU0, user_name="ada", account="ada"),))
    site.run(SICKNESSES[sickness], held)
    build(store, "c", Window(START, START + timedelta(hours=1)))
    installed = store.value("SELECT sum(installed_us)::BIGINT FROM ledger_build")
    found = posted(store)
    assert found["all_us"] == installed == GPUS.get(sickness, 2) * 3600 * 1_000_000
    assert all(value >= 0 for value in found.values())


def test_a_lost_gpu_is_failed_while_it_is_lost_and_no_longer(site, store):
    site.run(SICKNESSES["lost"], Attribution())
    build(store, "c", Window(START, START + timedelta(hours=1)))
    assert posted(store)["failed"] == 20 * 60 * 1_000_000


@pytest.mark.parametrize(("util", "used_s", "idle_s"), [(40, 1440, 2160), (0, 0, 3600)])
def test_what_is_held_and_what_is_used_are_two_figures(site, store, util, used_s, idle_s):
    """A GPU held for an hour is paid for an hour; used it was for the part that was measured."""
    held = Attribution((Holding("user:ada", GPU0, user_name="ada", account="ada"),))
    site.run({0: {"gpu0.util": util}}, held)
    build(store, "c", Window(START, START + timedelta(hours=1)))
    found = store.rows(
        "SELECT sum(used)::BIGINT AS used, sum(allocated_idle)::BIGINT AS idle FROM ledger_hour"
    )[0]
    allocated = store.value(
        "SELECT sum(epoch(coalesce(end_at, TIMESTAMP '2026-11-02 11:00:00') - start_at))::BIGINT "
        "FROM allocation"
    )
    assert found == {"used": used_s * 10**6, "idle": idle_s * 10**6}
    assert allocated == 3600


def test_garbage_never_counts_as_use_nor_as_idleness(site, store):
    held = Attribution((Holding("user:ada", GPU0, user_name="ada", account="ada"),))
    site.run({0: {"gpu.util": 4294967295}}, held)
    build(store, "c", Window(START, START + timedelta(hours=1)))
    measured = store.value(
        "SELECT sum(used + allocated_idle)::BIGINT FROM ledger_hour WHERE allocated_unmeasured > 0"
    )
    assert measured == 0


# --- through a whole service -------------------------------------------------------------------


class WholeService:
    """`unstrand up` in a process of its own, and what it answers."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.log = folder / "service.log"
        command = ["-m", "unstrand", "up", "--db", folder / "s.duckdb", "--port", port]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, *map(str, command)], stdout=out, stderr=out
            )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0)

    def take(self, batch):
        answer = self.client.post("/api/v1/ingest", content=batch.pack())
        assert answer.status_code == 200, answer.text

    def take_each(self, batches):
        """One after the other; how many there were."""
        for batch in batches:
            self.take(batch)
        return len(batches)

    def up(self):
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            return self.client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def total(self, cluster, since, until):
        """GPU-hours of all classes, the same rounded row by row, and GPU-seconds too many."""
        asked = {"since": since.isoformat(), "until": until.isoformat(), "cluster": cluster}
        report = self.client.get("/api/v1/report/ledger", params=asked).json()
        parts = sum(Decimal(str(row["gpu_hours"])) for row in report["rows"])
        return (
            report["total"]["gpu_hours"],
            float(parts),
            report["identity"]["gpu_seconds_difference"],
        )

    def stop(self):
        self.client.close()
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()[-2000:]


@pytest.fixture
def whole_service(tmp_path, until):
    made = WholeService(tmp_path)
    deadline = time.monotonic() + 90.0
    while not made.up():
        assert time.monotonic() < deadline, made.log.read_text()[-2000:]
        time.sleep(0.1)
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_service_stays_up_through_every_sickness_and_its_ledger_adds_up(
    whole_service, stub_library, scenario, quick, until
):
    """All of the sick nodes at once, each in its own order, as their agents would send."""
    healthy = dict(scenario.values) | {"count": 2}
    held = Attribution((Holding("user:ada", GPU0, user_name="ada", account="ada"),))
    sent: dict[str, list[Batch]] = {sickness: [] for sickness in SICKNESSES}
    for sickness, changes in SICKNESSES.items():
        scenario.only(healthy)
        node = Site(None, stub_library, scenario, sent[sickness].append, cluster=sickness)
        node.run(changes, held)
        node.source.close()
    with ThreadPoolExecutor(len(sent)) as agents:
        working = [agents.submit(whole_service.take_each, batches) for batches in sent.values()]
        while not all(each.done() for each in working):
            assert whole_service.up()
            time.sleep(0.5)
    assert [each.result() for each in working] == [len(batches) for batches in sent.values()]
    for sickness in SICKNESSES:
        whole, parts, apart = whole_service.total(sickness, START, START + timedelta(hours=1))
        assert (whole, apart) == (GPUS.get(sickness, 2), 0), sickness
        assert parts == pytest.approx(whole, abs=1e-7)
    assert whole_service.up()
    scenario.only(healthy)
    hang(whole_service, stub_library, scenario, quick, until)


def hang(service, library, scenario, quick, until):
    """A driver call that never returns, with a real reader process, and what follows it."""
    begun = datetime.now(UTC)
    made = LocalCollector(
        service.take, clock=lambda: datetime.now(UTC), settings=quick(library=library),
        identity=Identity("hung", "n1", "local"),
    )  # fmt: skip
    made.start()
    until(lambda: made.picture.ticks >= 3)
    scenario.set({"gpu.hang.nvmlDeviceGetPowerUsage": 3600})
    until(lambda: made.picture.hangs >= 1, "the hang is noticed")
    scenario.set({"gpu.hang.nvmlDeviceGetPowerUsage": None})
    before = made.picture.ticks
    until(lambda: made.picture.ticks >= before + 3, "ticks after the hang")
    assert made.stop(10.0)
    since = begun.replace(minute=0, second=0, microsecond=0)
    whole, _, apart = service.total("hung", since, since + timedelta(hours=2))
    assert whole > 0
    assert apart == 0
    assert service.up()
