"""Kill agent and service at random moments, fill the disk, tear the spool, deliver twice."""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from analytics.health.span import facts_span
from analytics.ledger import LedgerClass, ensure_built
from analytics.window import Window
from collector.agent.sender import Sender, make_client
from collector.agent.spool import Spool, unframe
from collector.store import Store

CLASSES = " + ".join(LedgerClass)
SURELY_FULL = 20  # rounds


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_nothing_that_was_kept_is_lost_and_nothing_is_counted_twice(site, proof_size, record_proof):
    rounds = proof_size(100)
    kills = sum(one_round(site, number, random.Random(number)) for number in range(rounds))
    site.start()
    before = len(site.kept())
    site.wait(lambda: len(site.kept()) > before)
    os.kill(site.agent.pid, signal.SIGTERM)
    assert site.agent.wait(20) == 0
    drain(site)
    os.kill(site.service.pid, signal.SIGTERM)
    assert site.service.wait(60) == 0
    with Store.open(site.db, clock=lambda: datetime.now(UTC)) as store:
        ranges = store.rows("SELECT boot_id, first, last, row_count FROM ingest_range")
        samples = store.value("SELECT count(*) FROM sample")
        different = store.value("SELECT count(*) FROM (SELECT DISTINCT gpu_uuid, ts FROM sample)")
        posted, installed = conserved(store)
    taken = [(r["boot_id"], number) for r in ranges for number in range(r["first"], r["last"] + 1)]
    assert len(taken) == len(set(taken)), "a batch was taken twice"
    assert lost_of(site, set(taken)) == []
    assert samples == different == 2 * len(taken)
    assert posted == installed > 0
    full, twice = len(site.lines("full")), len(site.lines("twice"))
    assert twice > 0
    # A few rounds may all end before the small disk is full, on a busy machine.
    assert full > 0 or site.disk.kind != "tmpfs" or rounds < SURELY_FULL
    record_proof(
        "kill_rounds_service", rounds=rounds, kills=kills, batches=len(taken), samples=samples,
        torn_spool_files=len(site.torn), full_disk=site.disk.kind, writes_refused=full,
        delivered_twice=twice, lost=0, twice=0, ledger_us=posted, installed_us=installed,
    )  # fmt: skip


def one_round(site, number, random_):
    """Let it run a little, spoil something, and kill one or both; returns the kills."""
    site.start(cold=number % 10 == 9)
    before = len(site.kept())
    site.wait(lambda: len(site.kept()) >= before + 3 and site.answers())
    time.sleep(random_.uniform(0.0, 0.5))
    full = number % 4 == 1
    if full:
        site.disk.fill(site.alive)
        time.sleep(0.5)
    victims = random_.choice([(site.agent,), (site.service,), (site.agent, site.service)])
    for victim in victims:
        site.kill(victim)
    if full:
        site.disk.empty(site.alive)
    if site.agent in victims and number % 5 == 2:
        site.tear(random_)
    return len(victims)


def lost_of(site, taken):
    """Batches that were on the agent's disk, and neither spoiled there nor in the store."""
    return [
        key for key in site.kept() if key not in taken and (key[0][:12], key[1]) not in site.torn
    ]


def drain(site):
    """Send what the agent left in its spool, by an agent that makes nothing new."""
    spool = Spool(site.state / "spool")
    client = make_client(f"http://127.0.0.1:{site.port}", None)
    sender = Sender(spool, client, monotonic=time.monotonic)
    site.wait(lambda: sender.send_one() is None, 1500.0)  # the machine may be busy
    sender.stop()
    assert spool.figures.refused == 0
    assert all(unframe(file.read_bytes()) for file in (site.state / "spool").glob("*.batch"))


def conserved(store):
    """All classes together and what is installed, in micro-GPU-seconds, over all that is known."""
    span = facts_span(store, "c")
    hour = timedelta(hours=1)
    first = span.since.replace(minute=0, second=0, microsecond=0)
    window = Window(first, span.until.replace(minute=0, second=0, microsecond=0) + hour)
    ensure_built(store, window, cluster="c")
    posted = store.value(f"SELECT sum({CLASSES})::BIGINT FROM ledger_hour")
    return posted, store.value("SELECT sum(installed_us)::BIGINT FROM ledger_build")
