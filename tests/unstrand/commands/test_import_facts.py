"""`unstrand import slurm` takes files in, says what it did, and refuses with line and remedy."""

from __future__ import annotations

import pytest

from collector.store import Store
from unstrand.clock import utc_now

SACCT = """\
jobid|account|user|partition|submit|eligible|start|end|state|alloctres|nnodes|nodelist
1|nlp|amara|a100|1793491200|1793491200|1793491260|1793494860|COMPLETED|cpu=16,gres/gpu=2,mem=65536M,node=1|1|gn01
"""
NODES = (
    "NodeName=gn01 CPUTot=128 CPUEfctv=128 Gres=gpu:a100:8 RealMemory=1048576 State=IDLE "
    "Partitions=a100 CfgTRES=cpu=128,mem=1048576M,gres/gpu=8\n"
)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "nodes.txt").write_text(NODES)
    return tmp_path


def options(files, **changes):
    given = {"cluster": "c", "sacct": files / "sacct.txt", "nodes": files / "nodes.txt"}
    given |= {"db": files / "s.duckdb"} | changes
    return [part for name, value in given.items() for part in (f"--{name}", value)]


def test_files_are_taken_in_and_the_summary_says_what(cli, files):
    answer = cli("import", "slurm", *options(files), "--json")
    assert answer.code == 0, answer.err
    assert answer.json["gpu_seconds"] == 2 * 3600
    assert {row["table"]: row["kept"] for row in answer.json["rows"]}["job_run"] == 1
    assert answer.json["since"] == "2026-11-01T00:00:00Z"
    with Store.open(files / "s.duckdb", clock=utc_now, create=False) as store:
        assert store.value("SELECT sum(gpus)::INTEGER FROM allocation") == 2


def test_the_summary_for_people_has_the_known_window(cli, files):
    answer = cli("import", "slurm", *options(files))
    assert "facts known from 2026-11-01 00:00:00 to 2026-11-01 01:01:00 UTC" in answer.out


def test_the_window_can_be_given(cli, files):
    window = ["--since", "2026-11-01", "--until", "2026-11-02T01:00:00+01:00"]
    answer = cli("import", "slurm", *options(files), *window, "--json")
    assert answer.json["until"] == "2026-11-02T00:00:00Z"


def test_a_broken_file_is_refused_with_line_and_remedy_and_nothing_is_kept(cli, files):
    (files / "sacct.txt").write_text(SACCT.replace("1793494860", "yesterday"))
    answer = cli("import", "slurm", *options(files))
    assert answer.code == 1
    assert "sacct.txt" in answer.err
    assert "line 2" in answer.err
    with Store.open(files / "s.duckdb", clock=utc_now) as store:
        assert store.value("SELECT count(*) FROM job_run") == 0


def test_a_time_that_is_none_is_wrong_usage(cli, files):
    answer = cli("import", "slurm", *options(files), "--since", "last week")
    assert answer.code == 2
    assert "2026-10-05T13:00:00Z" in answer.err


def test_real_facts_do_not_go_into_the_demo(cli, files, demo_db):
    answer = cli("import", "slurm", *options(files, db=demo_db))
    assert answer.code == 1
    assert "another file with --db" in answer.err


@pytest.mark.parametrize("given", [[], ["--sacct", "s.txt"], ["--live", "--sacct", "s.txt"]])
def test_files_and_the_live_cluster_exclude_each_other(cli, tmp_path, given):
    answer = cli("import", "slurm", "--cluster", "c", "--db", tmp_path / "s.duckdb", *given)
    assert answer.code == 2
    assert "--live" in answer.err
    assert not (tmp_path / "s.duckdb").exists()


def test_a_host_without_slurm_is_told_to_bring_files(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = cli("import", "slurm", "--cluster", "c", "--live", "--db", tmp_path / "s.duckdb")
    assert answer.code == 1
    assert "Traceback" not in answer.err
    assert "sacct" in answer.err or "scontrol" in answer.err
