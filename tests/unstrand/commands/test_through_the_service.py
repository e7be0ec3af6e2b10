"""Imports and backups while a service holds the file."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from collector.store import Store
from unstrand.clock import utc_now

UNSTRAND = Path(sys.executable).with_name("unstrand")
SACCT = """\
jobid|account|user|partition|submit|eligible|start|end|state|alloctres|nnodes|nodelist
1|nlp|amara|a100|1793491200|1793491200|1793491260|1793494860|COMPLETED|cpu=16,gres/gpu=2,mem=65536M,node=1|1|gn01
"""
NODES = (
    "NodeName=gn01 CPUTot=128 CPUEfctv=128 Gres=gpu:a100:8 RealMemory=1048576 State=IDLE "
    "Partitions=a100 CfgTRES=cpu=128,mem=1048576M,gres/gpu=8\n"
)


@pytest.fixture
def db(tmp_path):
    """A file that a service of its own holds."""
    path = tmp_path / "site.duckdb"
    process = subprocess.Popen(
        [UNSTRAND, "up", "--port", "0", "--db", path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        if not any(re.search(r"serving .* at http", line) for line in process.stdout):
            pytest.fail("the service did not say that it is up")
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.mark.slow
def test_imports_and_a_backup_go_through_the_service_that_holds_the_file(cli, db, tmp_path):
    sacct, nodes, trace = (tmp_path / name for name in ("sacct.txt", "nodes.txt", "trace.csv"))
    sacct.write_text(SACCT)
    nodes.write_text(NODES)
    trace.write_text("job_id,submit,run,gpus,start\n1,0,3600,2,60\n")
    slurm = ["import", "slurm", "--cluster", "c", "--sacct", sacct, "--nodes", nodes, "--db", db]
    taken = cli(*slurm, "--json")
    assert taken.code == 0, taken.err
    assert taken.json["gpu_seconds"] == 2 * 3600
    assert "lines" not in taken.json
    told = cli(*slurm)
    assert "facts known from 2026-11-01 00:00:00 to 2026-11-01 01:01:00 UTC" in told.out

    past = ["import", "trace", trace, "--format", "jobs", "--cluster", "t", "--shape", "1x8"]
    assert "held 2.00 GPU-hours" in cli(*past, "--db", db).out
    again = cli(*past, "--db", db)
    assert (again.code, "taken in" in again.err) == (1, True)

    sacct.write_text(SACCT.replace("1793494860", "yesterday"))
    broken = cli(*slurm)
    assert broken.code == 1
    assert "sacct.txt, line 2" in broken.err
    missing = cli(
        "import", "slurm", "--cluster", "c", "--sacct", "no", "--nodes", nodes, "--db", db
    )
    assert (missing.code, "cannot read no" in missing.err) == (1, True)

    saved = tmp_path / "saved.duckdb"
    assert cli("backup", saved, "--db", db).code == 0
    assert cli("backup", saved, "--db", db).code == 1
    with Store.open(saved, clock=utc_now) as store:
        assert store.value("SELECT count(*) FROM job_run") == 2
