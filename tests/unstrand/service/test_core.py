"""Stopping under load: what was acknowledged is there, what was not was said so."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

from collector.store import Store
from unstrand.errors import BackPressureError
from unstrand.service.core import Service

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def test_no_acknowledged_batch_is_lost_when_it_stops_under_load(tmp_path):
    path = tmp_path / "site.duckdb"
    service = Service.over(Store.open(path, clock=lambda: NOW), lambda: NOW)
    service.collector = None
    service.start()
    acknowledged, refused = [], []

    def send(sender: int) -> None:
        for number in range(100_000):
            key = f"{sender}-{number}"
            try:
                done = service.writer.submit(
                    lambda work, key=key: work.append("store_info", {"key": [key], "value": ["x"]}),
                    source="test",
                    timeout_s=0.5,
                )
                done.result(20)
            except BackPressureError:
                refused.append(key)
                return
            acknowledged.append(key)

    senders = [threading.Thread(target=send, args=(i,)) for i in range(8)]
    for sender in senders:
        sender.start()
    while len(acknowledged) < 200:
        time.sleep(0.01)
    service.stop()
    for sender in senders:
        sender.join(30)
    assert len(refused) == 8, "every sender was told that the service stops"
    with Store.open(path, clock=lambda: NOW, create=False) as store:
        rows = store.rows("SELECT key FROM store_info WHERE value = 'x'")
    assert sorted(row["key"] for row in rows) == sorted(acknowledged)


def test_stopping_twice_is_as_stopping_once(tmp_path):
    service = Service.over(Store.open(tmp_path / "a.duckdb", clock=lambda: NOW), lambda: NOW)
    service.collector = None
    service.start()
    service.stop()
    service.stop()
    assert service.not_ready() == ["the service is stopping"]
