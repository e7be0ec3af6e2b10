"""`unstrand up` on a machine with a GPU records it; on a demo it never does."""

from __future__ import annotations

import importlib.util
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.store import Store
from unstrand.commands import up
from unstrand.service import run
from unstrand.service.core import Service
from unstrand.settings import Settings

STUB = Path(__file__).parents[2] / "nvml_stub"
SCENARIO = """
count = 2
gpu.name = NVIDIA H100 80GB HBM3
gpu.util = 40
gpu.mem_mib = 81559
gpu.used_mib = 10240
gpu.power_mw = 350000
gpu.energy_mj = 123456789
gpu.temperature = 55
"""


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """The stub driver where the loader finds it first, with two GPUs at 40%."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here: the stub driver library cannot be compiled")
    spec = importlib.util.spec_from_file_location("nvml_stub_build", STUB / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    library = Path(module.build(tmp_path / "nvml"))
    (tmp_path / "scenario.txt").write_text(SCENARIO)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    monkeypatch.setenv("UNSTRAND_NVML_SCENARIO", str(tmp_path / "scenario.txt"))


def wait_for(true, what, timeout_s=30.0):
    end = time.monotonic() + timeout_s
    while not (value := true()):
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.1)
    return value


def test_the_gpus_of_its_own_machine_come_into_the_store(start_service, tmp_path, two_gpus):
    db = tmp_path / "site.duckdb"
    service = start_service(db)
    status = wait_for(
        lambda: (s := service.get("/api/v1/status").json())["writer"]["rows"] > 0 and s,
        "rows of the stub's GPUs",
    )
    assert status["collector"]["state"] == "reading"
    assert status["collector"]["words"].startswith("reading 2 GPUs of ")
    assert service.stop() == 0
    with Store.open(db, clock=lambda: datetime.now(UTC), create=False) as store:
        assert store.value("SELECT count(DISTINCT gpu_uuid) FROM sample") == 2
        assert store.value("SELECT min(util_ratio) FROM sample") == 0.4
        assert store.value("SELECT sum(gpus)::INTEGER FROM node WHERE valid_to IS NULL") == 2


def test_a_demo_is_never_mixed_with_measured_facts(start_service, tmp_path, two_gpus):
    db = tmp_path / "demo.duckdb"
    with Store.open(db, clock=lambda: datetime.now(UTC)) as store, store.work() as work:
        work.append("store_info", {"key": ["kind"], "value": ["demo"]})
    service = start_service(db)
    status = service.get("/api/v1/status").json()
    assert status["kind"] == "demo"
    assert status["collector"] is None


@pytest.mark.parametrize(
    ("settings", "cluster"),
    [
        ({}, None),
        ({"slurm_cluster": "big"}, "big"),
        ({"slurm_cluster": "big", "local_cluster": "lab"}, "lab"),
    ],
)
def test_a_setting_names_the_cluster_of_its_own_machine(monkeypatch, settings, cluster):
    asked = {}
    monkeypatch.setattr(run, "serve", lambda db, **given: asked.update(given))
    up.serve_until_signal(Settings(**settings))
    assert asked["local_cluster"] == cluster


@pytest.mark.parametrize(("given", "cluster"), [("lab", "lab"), (None, "local")])
def test_its_own_machine_speaks_for_that_cluster(store, given, cluster):
    service = Service.over(store, lambda: datetime.now(UTC), local_cluster=given)
    assert service.collector.identity.cluster == cluster
