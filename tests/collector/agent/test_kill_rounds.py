"""Kill agent and service at random moments, fill the disk, tear the spool, deliver twice."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collector.agent.spool import unframe
from collector.store import Store

HERE = Path(__file__).parent / "kill"


class Site:
    """The two processes, and what the agent wrote down of batches that were on its disk."""

    def __init__(self, folder, scenario, whole_service):
        self.whole_service = whole_service
        self.db, self.state = folder / "s.duckdb", folder / "state"
        self.book, self.scenario = folder / "book", scenario.path
        self.book.touch()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.agent = self.service = None
        self.torn = set()

    def start(self):
        if self.service is None or self.service.poll() is not None:
            command = [sys.executable, HERE / "serve.py", self.db, self.port]
            if self.whole_service:
                command = [sys.executable, "-m", "unstrand", "up", "--db", self.db]
                command += ["--port", self.port]
            self.service = subprocess.Popen([str(part) for part in command])
        if self.agent is None or self.agent.poll() is not None:
            url = f"http://127.0.0.1:{self.port}"
            command = [sys.executable, HERE / "speak.py", url, self.state, self.scenario, self.book]
            self.agent = subprocess.Popen([str(part) for part in command])

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self, process):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def tear(self, random_):
        """Cut a spool file short, as a disk that lies about its cache does at a power cut."""
        files = sorted(self.state.glob("spool/*.batch"))
        if not files:
            return
        file = random_.choice(files)
        raw = file.read_bytes()
        file.write_bytes(raw[: random_.randrange(len(raw))])
        _, boot, sequence = file.name.removesuffix(".batch").split("-")
        self.torn.add((boot, int(sequence)))

    def noted(self):
        lines = self.book.read_text().splitlines()
        rows = [line.split() for line in lines if line.count(" ") == 2]
        return {(boot, int(sequence)): int(count) for boot, sequence, count in rows}

    def wait(self, true, seconds=60.0):
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "it never came to rest"
            time.sleep(0.05)

    def stop(self):
        for process in (self.agent, self.service):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def site_with(tmp_path, scenario):
    scenario.set(count=2)
    made = []

    def make(*, whole_service):
        made.append(Site(tmp_path, scenario, whole_service))
        return made[0]

    yield make
    for one in made:
        one.stop()


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("whole_service", [False, True], ids=["endpoint alone", "unstrand up"])
def test_nothing_that_was_kept_is_lost_and_nothing_is_counted_twice(
    site_with, proof_size, record_proof, whole_service
):
    site = site_with(whole_service=whole_service)
    rounds = proof_size(40 if whole_service else 100)
    kills = sum(one_round(site, number, random.Random(number)) for number in range(rounds))
    site.start()
    before = len(site.noted())
    site.wait(lambda: len(site.noted()) > before)
    site.agent.terminate()
    assert site.agent.wait(20) == 0
    drain(site)
    site.kill(site.service)
    with Store.open(site.db, clock=lambda: None) as store:
        batches = store.rows("SELECT boot_id, sequence, row_count FROM ingest_batch")
        samples = store.value("SELECT count(*) FROM sample")
        different = store.value("SELECT count(*) FROM (SELECT DISTINCT gpu_uuid, ts FROM sample)")
    taken = {(row["boot_id"], row["sequence"]): row["row_count"] for row in batches}
    assert len(batches) == len(taken), "a batch was taken twice"
    assert lost_of(site, taken) == {}
    assert samples == different == 2 * len(taken)
    record_proof(
        "kill_rounds_service" if whole_service else "kill_rounds",
        rounds=rounds, kills=kills, batches=len(taken), samples=samples,
        torn_spool_files=len(site.torn), lost=0, twice=0,
    )  # fmt: skip


def one_round(site, number, random_):
    """Let it run a little, spoil something, and kill one or both; returns the kills."""
    site.start()
    before = len(site.noted())
    site.wait(lambda: len(site.noted()) >= before + 3 and site.answers())
    time.sleep(random_.uniform(0.0, 0.5))
    if number % 4 == 1:  # a full disk for a while
        site.agent.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        site.agent.send_signal(signal.SIGUSR2)
    victims = random_.choice([(site.agent,), (site.service,), (site.agent, site.service)])
    for victim in victims:
        site.kill(victim)
    if site.agent in victims and number % 5 == 2:
        site.tear(random_)
    return len(victims)


def lost_of(site, taken):
    """Batches that were on the agent's disk and are not in the store as they were."""
    return {
        key: rows
        for key, rows in site.noted().items()
        if taken.get(key) != rows and (key[0][:12], key[1]) not in site.torn
    }


def drain(site):
    """Send what the agent left in its spool, by an agent that makes nothing new."""
    from collector.agent.sender import Sender, make_client
    from collector.agent.spool import Spool

    spool = Spool(site.state / "spool")
    client = make_client(f"http://127.0.0.1:{site.port}", None)
    sender = Sender(spool, client, monotonic=time.monotonic)
    site.wait(lambda: sender.send_one() is None, 900.0)  # ticks come faster than they are sent
    sender.stop()
    assert spool.figures.refused == 0
    assert all(unframe(file.read_bytes()) for file in (site.state / "spool").glob("*.batch"))
