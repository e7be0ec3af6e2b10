"""What Prometheus reads, checked by Prometheus' own programs."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[2] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)


@pytest.fixture
def service(start_service, tmp_path):
    return start_service(tmp_path / "site.duckdb")


@pytest.fixture
def site_service(start_service, tmp_path):
    """A service over the small site, once its last day is worked out."""
    service = start_service(small_site.create(tmp_path / "small.duckdb"))
    end = time.monotonic() + 120
    while "unstrand_ledger_last_day_cost{" not in service.get("/metrics").text:
        assert time.monotonic() < end, "the last day was never worked out"
        time.sleep(0.5)
    return service


def families(service):
    text = service.get("/metrics").text
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_it_tells_about_itself(service):
    service.get("/api/v1/status")
    found = families(service)
    assert found["unstrand_writer_batches"].type == "counter"
    assert {s.labels["result"] for s in found["unstrand_writer_batches"].samples} == {
        "written",
        "failed",
        "refused",
    }
    assert found["unstrand_store_size_bytes"].samples[0].value > 0
    requests = {
        (s.labels["area"], s.labels["code"]): s.value
        for s in found["unstrand_http_requests"].samples
        if s.name.endswith("_total")
    }
    assert requests["api", "200"] == 1


def test_paths_from_outside_make_no_new_series(service):
    for path in ("/a", "/b/c", "/api/v1/nothing"):
        service.get(path)
    areas = {s.labels["area"] for s in families(service)["unstrand_http_requests"].samples}
    assert areas <= {"api", "health", "metrics", "pages"}


@pytest.mark.real
def test_promtool_finds_nothing_to_complain_about(site_service, system):
    system.require("prometheus", binaries=("promtool",))
    text = site_service.get("/metrics").text
    answer = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stderr == ""


@pytest.mark.real
def test_a_real_prometheus_scrapes_it(site_service, system, tmp_path):
    system.require("prometheus", binaries=("prometheus",))
    target = site_service.url.removeprefix("http://")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        "- job_name: unstrand\n"
        f"  static_configs: [{{targets: ['{target}']}}]\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            shutil.which("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert query(port, 'up{job="unstrand"}') == "1"
        assert query(port, "unstrand_build_info") == "1"
        # A day of two A100-80 at the shipped list price.
        cost = float(query(port, 'unstrand_ledger_last_day_cost{team="language"}'))
        assert round(cost, 2) == round(48 * 3.430881, 2)
    finally:
        process.terminate()
        process.wait(20)


def query(port, expression, timeout_s=40.0):
    """The value of an instant query, once there is one."""
    address = f"http://127.0.0.1:{port}/api/v1/query?query="
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            quoted = urllib.request.quote(expression)
            with urllib.request.urlopen(address + quoted, timeout=5) as answer:
                found = json.load(answer)["data"]["result"]
            if found:
                return found[0]["value"][1]
        except OSError:
            pass
        time.sleep(0.3)
    pytest.fail(f"Prometheus never had {expression}")
    return None
