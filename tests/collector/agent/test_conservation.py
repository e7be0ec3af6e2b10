"""After every sickness of a GPU the ledger still adds up to what is installed, and stays true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.ledger.build import build
from analytics.ledger.classes import LedgerClass
from analytics.window import Window
from collector.agent.batch import Batch, unpack
from collector.agent.collection import holding_rows
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
SLICES = {
    f"gpu0.mig{slot}.{name}": value
    for slot in range(7)
    for name, value in {"uuid": f"MIG-{slot}", "gi": slot + 1, "mem_mib": 9984}.items()
}
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
    "bad name": {20: {"gpu.bad_name": 1}},
    "zero samples": {20: {"gpu.zero_samples": 1, "gpu.proc0": "7,C,1,30"}},
    "a thousand processes": {20: {"gpu.proc_base": 5000, "gpu.proc_count": 1000}},
}


class Site:
    """An hour of a node with two GPUs, a tick a minute, without waiting for it."""

    def __init__(self, store, library, scenario):
        self.store, self.scenario = store, scenario
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
            batch = Batch("c", "n1", "a", "b", self.minute, micros(tick.ts), tables)
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
    assert found["all_us"] == installed == 2 * 3600 * 1_000_000
    assert all(value >= 0 for value in found.values())


def test_a_lost_gpu_is_failed_while_it_is_lost_and_no_longer(site, store):
    site.run(SICKNESSES["lost"], Attribution())
    build(store, "c", Window(START, START + timedelta(hours=1)))
    assert posted(store)["failed"] == 20 * 60 * 1_000_000


def test_garbage_never_counts_as_use_nor_as_idleness(site, store):
    held = Attribution((Holding("user:ada", GPU0, user_name="ada", account="ada"),))
    site.run({0: {"gpu.util": 4294967295}}, held)
    build(store, "c", Window(START, START + timedelta(hours=1)))
    measured = store.value(
        "SELECT sum(used + allocated_idle)::BIGINT FROM ledger_hour WHERE allocated_unmeasured > 0"
    )
    assert measured == 0
