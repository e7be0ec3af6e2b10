"""The agent as a process against a service, through everything that a network does."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.agent.run import Agent, AgentSettings, ExitStatus, agent_id
from collector.agent.sender import Sender, Verdict, make_client
from collector.agent.spool import Spool
from collector.agent.web import MetricsServer, PortInUseError
from collector.ingest.tokens import TokenSecretError, issue, may_speak

SECRET = b"a secret that is long enough for it"


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "spool")


@pytest.fixture
def sender(spool, service):
    made = []

    def make(token=None, url=None):
        one = Sender(
            spool, make_client(url or service.url, token), monotonic=time.monotonic,
            idle_s=0.01, longest_s=0.05, catch_up_s=0.0,
        )  # fmt: skip
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()


def test_a_batch_is_forgotten_only_when_the_service_has_it(sender, spool, service, store, a_batch):
    spool.keep(a_batch(1))
    service.answers = [503, 500]
    one = sender()
    assert [one.send_one() for _ in range(4)] == [Verdict.LATER, Verdict.LATER, Verdict.TAKEN, None]
    assert store.value("SELECT count(*) FROM sample") == 1


def test_an_answer_that_gets_lost_makes_no_second_row(sender, spool, service, store, a_batch):
    spool.keep(a_batch(1))
    service.forget_answer = 1
    one = sender()
    assert [one.send_one(), one.send_one()] == [Verdict.LATER, Verdict.TAKEN]
    assert service.requests == 2
    assert store.value("SELECT count(*) FROM sample") == 1


def test_a_batch_that_can_never_be_taken_does_not_block_the_next(
    sender, spool, service, store, a_batch
):
    bad = a_batch(1)
    bad.tables["sample"]["gpu_index"] = ["no number"]
    spool.keep(bad)
    spool.keep(a_batch(2))
    one = sender()
    assert [one.send_one(), one.send_one()] == [Verdict.REFUSED, Verdict.TAKEN]
    assert spool.figures.refused == 1


def test_while_another_agent_speaks_for_the_node_batches_wait(sender, spool, service, a_batch):
    service.answers = [409, 409]
    spool.keep(a_batch(1))
    one = sender()
    assert [one.send_one() for _ in range(3)] == [Verdict.CONFLICT, Verdict.CONFLICT, Verdict.TAKEN]


def test_a_wrong_token_keeps_the_batch_and_says_why(sender, spool, service, a_batch):
    service.secret = SECRET
    spool.keep(a_batch(1))
    one = sender(token=issue(SECRET, "another-node"))
    assert one.send_one() is Verdict.FORBIDDEN
    assert "not that of the node" in one.figures.message
    assert spool.batches == 1
    assert sender(token=issue(SECRET, "n1")).send_one() is Verdict.TAKEN


def test_a_service_that_is_not_there_is_named(sender, spool, a_batch):
    spool.keep(a_batch(1))
    one = sender(url="http://127.0.0.1:9")
    assert one.send_one() is Verdict.LATER
    assert "127.0.0.1:9 cannot be reached" in one.figures.message


def test_the_thread_empties_the_spool_after_an_outage(
    sender, spool, service, store, a_batch, until
):
    service.answers = [503] * 5
    for sequence in range(30):
        spool.keep(a_batch(sequence))
    sender().start()
    until(lambda: spool.batches == 0)
    assert store.value("SELECT count(*) FROM sample") == 30


def test_a_token_is_good_for_its_own_node_only():
    token = issue(SECRET, "n1")
    assert may_speak(SECRET, "n1", token)
    assert not may_speak(SECRET, "n2", token)
    assert not may_speak(SECRET, "n1", token[:-1])
    assert not may_speak(SECRET, "n1", "")
    assert not may_speak(SECRET, "n1", token, revoked={"n1"})
    assert not may_speak(b"another secret, also long enough!", "n1", token)


def test_a_short_secret_is_refused():
    with pytest.raises(TokenSecretError, match="at least 32"):
        issue(b"short", "n1")


def test_an_agent_keeps_its_name_over_restarts(tmp_path):
    assert agent_id(tmp_path) == agent_id(tmp_path)
    assert agent_id(tmp_path) != agent_id(tmp_path / "other")


# --- the whole agent ---------------------------------------------------------------------------


@pytest.fixture
def agent(tmp_path, service, quick, scenario):
    started = []

    def start(reader=None, **changes):
        from datetime import UTC, datetime

        values = {
            "server": service.url, "state": tmp_path / "state", "cluster": "c", "node": "n1",
            "listen": ("127.0.0.1", 0),
            "reader": reader or quick(kind="scenario", path=str(scenario.path)),
        }  # fmt: skip
        made = Agent(AgentSettings(**(values | changes)), clock=lambda: datetime.now(UTC))
        result = []
        thread = threading.Thread(target=lambda: result.append(made.run()), daemon=True)
        thread.start()
        started.append((made, thread))
        made.result, made.thread = result, thread
        return made

    yield start
    for made, thread in started:
        made.stop()
        thread.join(15.0)
        assert not thread.is_alive()


def get(agent, path, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{agent.web.port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_what_the_agent_reads_arrives_once_each(agent, service, store, until):
    made = agent()
    until(lambda: store.value("SELECT count(*) FROM sample") >= 5)
    made.stop()
    made.thread.join(15.0)
    assert made.result == [ExitStatus.STOPPED]
    twice = store.value(
        "SELECT count(*) FROM (SELECT ts FROM sample GROUP BY ts HAVING count(*) > 1)"
    )
    assert twice == 0


def test_the_agent_serves_its_metrics_by_get_and_head(agent, until):
    made = agent()
    until(lambda: made.collection.picture.ticks >= 1)
    status, body, headers = get(made, "/metrics")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "text/plain")
    names = {family.name for family in text_string_to_metric_families(body)}
    assert {"unstrand_gpu_utilization_ratio", "unstrand_agent_spool_batches"} <= names
    status, empty, headers = get(made, "/metrics", "HEAD")
    assert (status, empty) == (200, "")
    assert int(headers["Content-Length"]) > 1000
    assert get(made, "/nothing")[0] == 404


@pytest.mark.parametrize(("others", "published"), [([], True), (["dcgm-exporter"], False)])
def test_dcgms_names_stay_off_beside_an_exporter_that_has_them(
    agent, until, monkeypatch, others, published
):
    """Also where they were asked for: two exporters with the same names double every sum."""
    monkeypatch.setattr("collector.agent.run.dcgm_exporters", lambda: others)
    made = agent(dcgm_names=True)
    until(lambda: made.collection.picture.ticks >= 1)
    assert ("DCGM_FI_DEV_POWER_USAGE{" in get(made, "/metrics")[1]) == published


def test_what_the_agent_itself_costs_is_a_metric(agent, until):
    made = agent()
    until(lambda: made.collection.picture.ticks >= 1)
    families = {f.name: f for f in text_string_to_metric_families(get(made, "/metrics")[1])}
    memory = families["unstrand_agent_resident_memory_bytes"].samples[0].value
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    assert memory == pytest.approx(pages * os.sysconf("SC_PAGE_SIZE"), rel=0.2)
    spent = families["unstrand_agent_cpu_seconds"].samples[0].value
    assert 0 < spent <= sum(os.times()[:4]) + 0.1


def test_health_is_red_with_the_reason_while_the_driver_hangs(
    agent, quick, until, stub_library, scenario
):
    made = agent(quick(library=stub_library))
    until(lambda: get(made, "/healthz")[0] == 200 and made.collection.picture.ticks > 0)
    scenario.set({"gpu.hang.nvmlDeviceGetTemperature": 3600})
    until(lambda: get(made, "/healthz")[0] == 503)
    assert "nvmlDeviceGetTemperature has not returned" in get(made, "/healthz")[1]
    scenario.set({"gpu.hang.nvmlDeviceGetTemperature": None})
    until(lambda: get(made, "/healthz")[0] == 200)


def test_the_node_itself_is_still_told_of_while_the_driver_hangs(
    agent, quick, until, store, stub_library, scenario
):
    made = agent(quick(library=stub_library))
    until(lambda: made.collection.picture.ticks > 0)
    scenario.set({"gpu.hang.nvmlDeviceGetTemperature": 3600})
    until(lambda: made.collection.picture.hangs > 0)
    before = store.value("SELECT count(*) FROM host_sample")
    samples = store.value("SELECT count(*) FROM sample")
    until(lambda: store.value("SELECT count(*) FROM host_sample") > before + 2)
    assert store.value("SELECT count(*) FROM sample") <= samples + 2
    scenario.set({"gpu.hang.nvmlDeviceGetTemperature": None})


def test_a_library_that_is_gone_for_good_ends_the_agent_with_its_own_status(
    agent, quick, until, stub_library, scenario
):
    made = agent(quick(library=stub_library, longest_retry_s=0.1))
    until(lambda: made.collection.picture.ticks > 0)
    scenario.set(driver_gone=1)
    until(lambda: made.result)
    assert made.result == [ExitStatus.LIBRARY_GONE]
    scenario.set(driver_gone=None)


def test_a_port_in_use_is_refused_with_the_remedy():
    def nothing(*_):
        return b"", ""

    one = MetricsServer("127.0.0.1", 0, metrics=nothing, healthy=lambda: (True, ""))
    with pytest.raises(PortInUseError, match="choose another with --listen"):
        MetricsServer("127.0.0.1", one.port, metrics=nothing, healthy=lambda: (True, ""))
    one._server.server_close()


def test_sigterm_ends_the_process_quickly_and_keeps_what_was_not_sent(tmp_path, scenario, until):
    code = (
        "import sys\nfrom datetime import UTC, datetime\nfrom pathlib import Path\n"
        "from collector.agent.reader import ReaderSettings\n"
        "from collector.agent.run import AgentSettings, run\n"
        "from collector.agent.schedule import Intervals\n"
        "often = Intervals(.1, .1, .1, .1, 1)\n"
        "reader = ReaderSettings(kind='scenario', path=sys.argv[1], intervals=often)\n"
        "settings = AgentSettings(\n"
        "    'http://127.0.0.1:9', Path(sys.argv[2]), listen=('127.0.0.1', 0), reader=reader)\n"
        "sys.exit(run(settings, clock=lambda: datetime.now(UTC)))\n"
    )
    state = tmp_path / "state"
    process = subprocess.Popen([sys.executable, "-c", code, str(scenario.path), str(state)])
    try:
        until(lambda: len(list(state.glob("spool/*.batch"))) >= 3)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    assert Spool(state / "spool").batches >= 3


def test_no_secret_is_in_any_log(sender, spool, service, a_batch, caplog):
    service.secret = SECRET
    token = issue(SECRET, "another-node")
    spool.keep(a_batch(1))
    with caplog.at_level(logging.DEBUG):
        sender(token=token).send_one()
    assert token not in caplog.text
