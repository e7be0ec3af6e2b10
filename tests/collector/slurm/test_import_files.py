from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.errors import ImportRefusedError

SAMPLE = """\
clusterA|4001|4001|nlp|amara|5001|high|h100|1793491200|1793491200|1793491260|1793505660|14400|00:00:00|COMPLETED|billing=64,cpu=64,gres/gpu=8,mem=524288M,node=1|billing=64,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=524288M,node=1|1|gn01|0|00:01:00|1440|0:0|None||pretrain|v2
clusterA|4002_[7-1000%8]|4002|vision|josé|5002|normal|a100|1793491300|1793491300|Unknown|Unknown|0|00:00:00|PENDING|billing=8,cpu=8,gres/gpu=1,mem=65536M,node=1||1|None assigned|0|02:10:00|60|0:0|Priority||sweep
clusterA|4003|4003|vision|li|5003|scav|a100|1793480000|1793480000|1793481000|1793484600|3600|00:00:00|PREEMPTED|billing=8,cpu=8,gres/gpu=2,mem=131072M,node=1|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=131072M,node=1|1|gn02|0|00:16:40|240|0:0|None||ft
clusterA|4003|4003|vision|li|5003|scav|a100|1793484700|1793484700|1793486000|1793489600|3000|00:10:00|COMPLETED|billing=8,cpu=8,gres/gpu=2,mem=131072M,node=1|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=131072M,node=1|1|gn03|1|00:21:40|240|0:0|None||ft
clusterA|4004+0|4004|nlp|amara|5001|high|h100|1793492000|1793492000|1793492100|Unknown|900|00:00:00|RUNNING|...|billing=8,cpu=8,gres/gpu:h100_1g.10gb=2,gres/gpu=2,mem=65536M,node=2|2|gn[05-06]|0|00:01:40|120|0:0|None||het-a
clusterA|4005|4005|bio|bo|5004|normal|h100|1793492000|1793492000|None|1793492050|0|00:00:00|CANCELLED by 1000|billing=1,cpu=1,mem=4096M,node=1||0|None assigned|0|00:00:50|UNLIMITED|0:0|Dependency||never
"""  # noqa: E501 - rows as sacct writes them
NODES = """\
NodeName=gn01 Gres=gpu:h100:8(S:0-1) CPUTot=96 RealMemory=1031000 State=MIXED+PLANNED
NodeName=gn[02-03,07] Gres=gpu:a100:4 CPUTot=64 RealMemory=512000 State=IDLE
NodeName=gn[05-06] Gres=gpu:h100_1g.10gb:14 CPUTot=96 RealMemory=1031000 State=MIXED
"""


def at(epoch):
    return datetime.fromtimestamp(epoch, UTC)


def test_a_file_of_another_cluster_without_header_becomes_runs_jobs_and_allocations(site):
    summary = site.take_in(sacct=SAMPLE, nodes=NODES)
    held = site.store.rows(
        "SELECT job_id, attempt, node, gpu_model, a.gpus FROM allocation a "
        "JOIN job_run USING (cluster, run_id) ORDER BY job_id, attempt, node"
    )
    assert [tuple(row.values()) for row in held] == [
        ("4001", 1, "gn01", "h100", 8),
        ("4003", 1, "gn02", "a100", 2),
        ("4003", 2, "gn03", "a100", 2),
        ("4004", 1, "gn05", "h100_1g.10gb", 1),
        ("4004", 1, "gn06", "h100_1g.10gb", 1),
    ]
    assert summary.kept == {
        "job_run": 6, "job": 5, "allocation": 5, "node": 6, "node_state": 0,
    }  # fmt: skip
    assert summary.dropped_total == 0
    assert (summary.since, summary.until) == (at(1793480000), at(1793505660))


def test_suspended_time_is_held_time(site):
    site.take_in(sacct=SAMPLE, nodes=NODES)
    # 4003 runs twice, 3,600 s each, once with 600 s suspended; 4004 has run 900 s so far.
    assert site.gpu_seconds() == 8 * 14_400 + 2 * 3_600 + 2 * 3_600 + 2 * 900
    assert site.store.value("SELECT suspended_s FROM job_run WHERE attempt = 2") == 600


def test_an_open_run_is_known_until_the_instant_of_the_query(site):
    site.take_in(sacct=SAMPLE, nodes=NODES)
    run = site.store.rows("SELECT end_at, last_known_at, state FROM job_run WHERE job_id = '4004'")
    assert run == [{"end_at": None, "last_known_at": at(1793492100 + 900), "state": "RUNNING"}]


def test_the_same_files_again_change_nothing(site):
    site.take_in(sacct=SAMPLE, nodes=NODES)
    before = site.facts()
    site.take_in(sacct=SAMPLE, nodes=NODES)
    assert site.facts() == before


@pytest.mark.parametrize("name", ["two\nlines", "a|bar\nand|more", "ends in one\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_name_with_a_line_break_keeps_its_rows_and_is_told(site, name, last):
    site.rows = [site.run(jobid="1"), site.run(jobid="2", jobname=name)]
    site.rows += [] if last else [site.run(jobid="3")]
    summary = site.take_in()
    names = site.store.rows("SELECT job_id, name FROM job ORDER BY job_id")
    assert [row["name"] for row in names][1] == name.rstrip()
    assert len(names) == (2 if last else 3)
    told = [line for line in summary.remarks if "go on with the job name above them" in line]
    assert bool(told) == (not name.endswith("\n"))


def test_a_cut_last_line_is_no_rest_of_a_name_but_a_whole_last_row_is_a_row(site):
    site.rows = [site.run(jobid="1", jobname="two\nlines"), site.run(jobid="2")]
    whole = site.sacct_text().removesuffix("\n")
    assert site.take_in(sacct=whole).kept["job"] == 2
    with pytest.raises(ImportRefusedError, match="line 5: 1 cells"):
        site.take_in(sacct=f"{whole}\ncl")


def test_a_name_with_delimiter_and_letters_beyond_ascii_stays_as_it_is(site):
    site.take_in(sacct=SAMPLE, nodes=NODES)
    names = site.store.rows("SELECT name, user_name FROM job WHERE job_id IN ('4001', '4002')")
    assert sorted(tuple(row.values()) for row in names) == [
        ("pretrain|v2", "amara"),
        ("sweep", "josé"),
    ]


@pytest.mark.parametrize("header", [True, False])
def test_a_header_line_is_no_row(site, header):
    site.rows, site.header = [site.run()], header
    assert site.take_in().kept["job_run"] == 1


def test_samples_taken_before_the_import_get_the_run_that_held_them(site):
    """The agent knows a job by its id only, until the scheduler's facts come in."""
    with site.store.work() as work:
        work.append(
            "sample",
            {
                "cluster": ["c"] * 3,
                "node": ["gn02", "gn03", "gn03"],
                "run_id": ["slurm:4003", "slurm:4003", "slurm:9999"],
                "ts": [at(1793482000), at(1793487000), at(1793487000)],
                "step_s": [15.0] * 3,
                "source": ["test"] * 3,
            },
        )
    site.take_in(sacct=SAMPLE, nodes=NODES)
    tagged = site.store.rows(
        "SELECT attempt FROM sample LEFT JOIN job_run USING (cluster, run_id) ORDER BY attempt"
    )
    assert [row["attempt"] for row in tagged] == [1, 2, None]


def test_files_of_settings_say_how_the_scheduler_is_set_and_who_may_hold_what(site):
    config = "Configuration data\nClusterName = c\nSchedulerType           = sched/backfill\n"
    qos = "Name|Priority|MaxTRESPU\nnormal|0|gres/gpu=8\n"
    accounts = "Cluster|Account|User|GrpTRES\nc|nlp||gres/gpu=6\n"
    parts = "PartitionName=a100 Nodes=gn01 MaxTime=1:00:00 State=UP\n"
    summary = site.take_in(sacct=SAMPLE, nodes=NODES, config=config, qos=qos,
                           associations=accounts, partitions=parts)  # fmt: skip
    assert summary.kept["scheduler_setting"] == 7
    rows = site.store.rows("SELECT key, value FROM scheduler_setting ORDER BY key")
    known = {row["key"]: row["value"] for row in rows}
    assert known["SchedulerType"] == "sched/backfill"
    assert known["qos.normal.MaxTRESPU"] == "gres/gpu=8"
    assert known["account.nlp.GrpTRES"] == "gres/gpu=6"
    assert known["partition.a100.MaxTime"] == "1:00:00"
