"""`unstrand advise snippet` from files and from the store."""

from __future__ import annotations

import json

import pytest

CONF = "SchedulerType=sched/builtin\nPartitionName=low Nodes=gpu[1-4] MaxTime=7-0\n"


@pytest.fixture
def conf(tmp_path):
    file = tmp_path / "slurm.conf"
    file.write_text(CONF)
    return file


def test_a_change_is_printed_with_how_to_try_see_and_undo_it_and_what_is_not_expressed(cli, conf):
    result = cli("advise", "snippet", "--scheduler", "slurm", "--from", "fifo", "--to", "easy",
                 "--set", "backfill.max_limit_s=60", "--config", str(conf))  # fmt: skip
    assert result.code == 0, result.err
    assert "+SchedulerType=sched/backfill" in result.out
    for title in ("Try it without effect", "Then run", "See that it took", "Roll back",
                  "slurm cannot express"):  # fmt: skip
        assert f"{title}:" in result.out
    assert "systemctl restart slurmctld    # on the controller" in result.out
    assert conf.read_text() == CONF


def test_json_holds_every_step_and_the_files_go_where_asked(cli, conf, tmp_path):
    out = tmp_path / "out"
    result = cli("advise", "snippet", "--scheduler", "slurm", "--from", "fifo",
                 "--mem-per-gpu", "60000", "--config", str(conf), "--json")  # fmt: skip
    document = json.loads(result.out)
    assert document["complete"] is True
    edit, reload = document["apply"]
    assert edit["known"] == "file"
    assert reload["run"] == "scontrol reconfigure"
    assert document["rollback"][0]["after"] == CONF
    written = cli("advise", "snippet", "--scheduler", "slurm", "--from", "fifo",
                  "--mem-per-gpu", "60000", "--config", str(conf), "--out", str(out))  # fmt: skip
    assert written.code == 0
    assert (out / "before" / "slurm.conf").read_text() == CONF
    assert "DefMemPerGPU=60000" in (out / "after" / "slurm.conf").read_text()
    assert (out / "change.diff").read_text() == edit["diff"]


def test_what_makes_no_sense_is_refused_with_what_to_do(cli, tmp_path):
    for words, said in (
        (("--scheduler", "pbs", "--from", "fifo"), "known: slurm, kueue, volcano, kai, yarn"),
        (("--scheduler", "kueue", "--from", "fifo", "--to", "greedy"), "give kueue.yaml"),
        (("--scheduler", "slurm", "--from", "nowhere"), "no preset nowhere"),
        (("--scheduler", "slurm", "--from", "fifo", "--config", str(tmp_path / "none")),
         "cannot read"),
    ):  # fmt: skip
        result = cli("advise", "snippet", *words)
        assert result.code == 1
        assert said in result.err


def test_with_a_cluster_its_nodes_and_settings_come_from_the_store(cli, demo_db):
    answer = cli("advise", "snippet", "--scheduler", "slurm", "--from", "fifo", "--set",
                 "placement=topology", "--cluster", "demo", "--db", demo_db, "--json")  # fmt: skip
    assert answer.code == 0, answer.err
    files = {step["file"]: step for step in answer.json["apply"] if "file" in step}
    assert "SwitchName=" in files["topology.conf"]["after"]
