"""The endpoint that node agents send to."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx
import pytest

from collector.agent.batch import Batch
from collector.ingest.door import AgentDoor
from collector.ingest.tokens import TokenSecretError, issue
from collector.store import Store
from collector.telemetry.rows import micros
from unstrand.api.app import api_app
from unstrand.service.core import Service

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
SECRET = b"a secret that is long enough for it"


@pytest.fixture
def service(tmp_path):
    with Store.open(tmp_path / "s.duckdb", clock=lambda: NOW) as store:
        made = Service.over(store, lambda: NOW)
        made.writer.start()
        yield made
        made.writer.stop()


@pytest.fixture
def post(service):
    async def ask(raw, headers):
        transport = httpx.ASGITransport(api_app(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
            return await one.post("/ingest", content=raw, headers=headers)

    def send(raw, token=None):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return asyncio.run(ask(raw, headers))

    return send


def a_batch(sequence=1, **changes):
    sample = {"gpu_uuid": ["GPU-a"], "ts": [micros(NOW)], "step_s": [15.0], "util_ratio": [0.5]}
    values = {
        "cluster": "c", "node": "n1", "agent_id": "a", "boot_id": "b", "sequence": sequence,
        "ts_us": micros(NOW), "tables": {"sample": sample},
    }  # fmt: skip
    return Batch(**(values | changes)).pack()


def test_a_batch_is_acknowledged_when_it_is_in_the_store_and_once(post, service):
    assert (post(a_batch()).status_code, post(a_batch()).json()) == (200, {"rows": 0})
    assert service.store.value("SELECT count(*) FROM sample") == 1


def test_bytes_that_are_no_batch_are_refused_for_good(post):
    answer = post(b"junk")
    assert answer.status_code == 422
    assert "cannot be read" in answer.json()["error"]["what"]


def test_a_body_that_is_too_large_is_refused(post):
    assert post(b"x" * (5 * 2**20)).status_code == 413


def test_another_agent_for_the_node_is_told_to_wait(post):
    post(a_batch())
    answer = post(a_batch(agent_id="other"))
    assert answer.status_code == 409
    assert "spoke for n1" in answer.json()["error"]["what"]


def test_with_a_secret_only_the_nodes_own_token_opens(post, service):
    service.agents = AgentDoor(SECRET, frozenset({"shut-out"}))
    assert post(a_batch()).status_code == 401
    assert post(a_batch(), issue(SECRET, "n2")).status_code == 401
    assert post(a_batch(node="shut-out"), issue(SECRET, "shut-out")).status_code == 401
    assert post(a_batch(), issue(SECRET, "n1")).status_code == 200


def test_a_secret_that_is_missing_or_short_is_refused_at_the_start(tmp_path):
    with pytest.raises(TokenSecretError, match="name a file"):
        AgentDoor.from_file(tmp_path / "none")
    (tmp_path / "short").write_text("short\n")
    with pytest.raises(TokenSecretError, match="at least 32"):
        AgentDoor.from_file(tmp_path / "short")
