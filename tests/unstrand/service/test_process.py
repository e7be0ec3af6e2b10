"""The service as a process: it starts, answers, refuses and stops."""

from __future__ import annotations

import json
import os
import signal
import socket
from datetime import UTC, datetime

import duckdb
import pytest

from collector.store import Store
from unstrand.service.address import address_file, find_server

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def db(tmp_path):
    return tmp_path / "site.duckdb"


def test_it_is_alive_and_ready_and_says_where_it_is(start_service, db):
    service = start_service(db)
    assert service.get("/healthz").json() == {"status": "alive"}
    assert service.get("/readyz").json() == {"status": "ready", "reasons": []}
    written = json.loads(address_file(db).read_text())
    assert written == {"url": service.url, "pid": service.process.pid}
    assert find_server(db).url == service.url


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_with_exit_code_0_and_leaves_a_clean_file(start_service, db, number):
    service = start_service(db)
    assert service.stop(number) == 0
    assert not address_file(db).exists()
    assert not db.with_name(db.name + ".wal").exists(), "the log is folded into the file"
    with Store.open(db, clock=lambda: NOW, create=False) as store:
        assert store.value("SELECT 1") == 1


def test_a_second_service_on_the_same_file_is_told_where_the_first_one_is(start_service, db):
    first = start_service(db)
    second = start_service(db, ready=False)
    errors = second.errors()
    assert second.process.returncode == 1
    assert f"served already at {first.url} by process {first.process.pid}" in errors
    assert f"kill {first.process.pid}" in errors
    assert first.get("/healthz").status_code == 200, "the first one is not disturbed"
    assert address_file(db).exists(), "the second one leaves the first one's address alone"


def test_a_file_held_by_another_program_is_refused(start_service, db):
    with Store.open(db, clock=lambda: NOW):
        service = start_service(db, ready=False)
        errors = service.errors()
    assert service.process.returncode == 1
    assert "held by another process that is no unstrand service" in errors


def test_a_port_in_use_is_refused(start_service, db):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        service = start_service(db, port=port, ready=False)
        errors = service.errors()
    assert service.process.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use" in errors
    assert "--port" in errors


def test_a_missing_store_is_refused_where_none_may_be_made(start_service, db):
    service = start_service(db, create=False, ready=False)
    errors = service.errors()
    assert service.process.returncode == 1
    assert "no store at" in errors
    assert "unstrand demo" in errors
    assert not db.exists()


def test_a_file_of_a_newer_version_is_refused(start_service, db):
    with Store.open(db, clock=lambda: NOW):
        pass
    with duckdb.connect(str(db)) as connection:
        connection.execute("UPDATE schema_version SET version = 9999")
    service = start_service(db, ready=False)
    errors = service.errors()
    assert service.process.returncode == 1
    assert "9999" in errors
    assert "newer" in errors


def test_an_address_left_by_a_killed_service_is_replaced(start_service, db):
    first = start_service(db)
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    assert address_file(db).exists()
    assert find_server(db) is None, "a dead service is not found"
    second = start_service(db)
    assert find_server(db).pid == second.process.pid


def test_an_address_whose_process_is_another_program_is_not_believed(db):
    address_file(db).write_text(json.dumps({"url": "http://127.0.0.1:9", "pid": os.getpid()}))
    assert find_server(db) is None


def test_a_torn_address_file_is_no_address(db):
    address_file(db).write_text('{"url": "http://127')
    assert find_server(db) is None


def test_an_address_of_another_host_is_refused_with_the_reason(start_service, db):
    service = start_service(db, host="0.0.0.0", ready=False)
    errors = service.errors()
    assert service.process.returncode == 1
    assert "no sign-in yet" in errors
    assert not db.exists(), "it is refused before anything is touched"


def test_a_request_that_names_another_host_is_refused(start_service, db):
    service = start_service(db)
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
        answer = service.get("/api/v1/status", headers=headers)
        assert answer.status_code == 403
        assert answer.json()["error"]["where"] == "headers Host and Origin"
