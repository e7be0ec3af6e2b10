"""`unstrand demo` builds once, serves, stops cleanly, and leaves real facts alone."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from collector.model import Node
from collector.store import Store
from unstrand.clock import utc_now

UNSTRAND = Path(sys.executable).with_name("unstrand")


def test_the_window_is_printed(cli, demo_db):
    answer = cli("demo", "--once", "--db", demo_db)
    assert answer.code == 0
    assert "2026-10-05 to 2026-11-02 UTC" in answer.out


def test_a_second_time_builds_nothing_again(cli, demo_db):
    before = demo_db.read_bytes()
    assert cli("demo", "--once", "--db", demo_db).code == 0
    assert demo_db.read_bytes() == before


def test_a_file_with_real_facts_is_refused_and_unchanged(cli, tmp_path):
    path = tmp_path / "site.duckdb"
    since = datetime(2026, 10, 1, tzinfo=UTC)
    node = Node(cluster="c", node="n", gpu_model="H100", gpus=8, valid_from=since, source="t")
    with Store.open(path, clock=utc_now) as store, store.work() as work:
        work.append_facts([node])
    before = path.read_bytes()
    answer = cli("demo", "--once", "--db", path)
    assert answer.code == 1
    assert "holds facts already" in answer.err
    assert path.read_bytes() == before


@pytest.mark.slow
def test_without_a_file_it_takes_one_of_its_own_in_the_current_folder(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("demo", "--once").code == 0
    assert (tmp_path / "demo.duckdb").exists()


@contextmanager
def serving(db):
    """The demo's service in a process of its own; gives (process, address)."""
    process = subprocess.Popen(
        [UNSTRAND, "demo", "--port", "0", "--db", db],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        for line in process.stdout:
            if found := re.search(r"serving .* at (http://\S+)", line):
                yield process, found[1]
                return
        pytest.fail("the service did not say that it is up")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.fixture
def service(demo_db):
    with serving(demo_db) as running:
        yield running


def test_the_service_says_where_it_is_and_answers_there(service, cli, demo_db):
    process, url = service
    status = httpx.get(f"{url}/api/v1/status", trust_env=False).json()
    assert status["kind"] == "demo"
    refused = cli("migrate", "--db", demo_db)
    assert refused.code == 1
    assert url in refused.err
    assert f"kill {process.pid}" in refused.err
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


@pytest.mark.slow
def test_a_report_is_the_same_through_the_service_as_from_the_file(service, cli, demo_db):
    process, url = service
    question = ["--since", "2026-10-05", "--until", "2026-10-12", "--json", "--db", demo_db]
    served = cli("report", "cost", "--by", "team,day", *question)
    assert served.code == 0, served.err
    refused = cli("report", "cost", "--by", "tem", *question, "--server", url)
    assert refused.code == 1
    assert "cannot group by 'tem'" in refused.err
    assert cli("org", "check", "--db", demo_db).code == 1
    assert cli("price", "check", "--db", demo_db).code == 0
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    assert served.json == cli("report", "cost", "--by", "team,day", *question).json


@pytest.mark.slow
def test_prices_and_owners_go_through_the_service_that_holds_the_file(cli, demo_db, tmp_path):
    path = shutil.copy(demo_db, tmp_path / "copy.duckdb")
    prices, owners = tmp_path / "prices.csv", tmp_path / "org.csv"
    prices.write_text("gpu_model,amount,currency\nA100-40,3.5,USD\n")
    owners.write_text("key_kind,key_value,team\naccount,guest,visitors\n")
    window = ["--since", "2026-10-05", "--until", "2026-10-06", "--db", path]
    with serving(path):
        assert "1 of them new" in cli("price", "load", prices, "--db", path).out
        assert cli("org", "load", owners, "--db", path).code == 0
        owners.write_text("key_kind,key_value,team,ratio\naccount,x,a,0.4\n")
        refused = cli("org", "load", owners, "--db", path)
        assert refused.code == 1
        assert "add to 0.4" in refused.err
        listed = cli("price", "list", "--db", path, "--json").json["rows"]
        assert "3.500000" in {row["amount"] for row in listed}
        assert "visitors" in {
            r["team"] for r in cli("org", "list", "--db", path, "--json").json["rows"]
        }
    report = cli("report", "cost", *window, "--json").json
    assert Decimal(report["total"]["cost"]) == 24 * (64 * Decimal("3.5") + 32 * Decimal("0.526"))
    assert "visitors" in {row["team"] for row in report["rows"]}
