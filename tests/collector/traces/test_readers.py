"""Each format's rules on a few rows, and what is refused with its line."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.errors import ImportRefusedError
from collector.traces.formats import detected, read_trace


def test_swf_takes_requested_processors_and_else_those_used(write):
    path = write(
        "log.swf",
        "1 0 5 60 4 -1 -1 8 100 -1 1 7 3 -1 2 -1 -1 -1\n"
        "2 9 -1 60 4 -1 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1\n",
    )
    names = ("gpus", "start_s", "end_s", "limit_s", "user", "team", "queue", "state")
    rows = read_trace(path).jobs.select(names).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (8, 5, 65, 100, "7", "3", "2", "COMPLETED"),
        (4, None, None, None, None, None, None, "FAILED"),
    ]


def test_swf_drops_the_bursts_of_a_job_that_one_line_sums_up(write):
    line = "{} 0 0 60 4 -1 -1 4 60 -1 {} 7 3 -1 2 -1 -1 -1\n"
    path = write("log.swf", line.format(1, 1) + line.format(1, 2) + line.format(1, 3))
    trace = read_trace(path)
    assert trace.kept == 1
    assert dict(trace.dropped) == {"part of a job that another line sums up": 2}


def test_swf_reads_header_nodes_in_braces_and_packed_files(swf):
    path = swf(
        (1, 100, 0, 60, 2, 60),
        header=["MaxProcs: 64", "UnixStartTime: 1000", "Note: hello"],
        tail=" {12,13} fast 2:ppn=1",
    )
    packed = path.with_suffix(".swf.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for each in (path, packed):
        trace = read_trace(each)
        assert trace.capacity == 64
        assert trace.origin == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
        assert trace.column("node_names") == [["node12", "node13"]]
        assert trace.column("queue") == ["fast"]


def test_a_node_list_that_contradicts_the_size_says_nothing(swf):
    trace = read_trace(swf((1, 0, 0, 60, 3, 60), tail=" {12,13} fast 1"))
    assert trace.column("node_names") == [None]


def test_openb_shares_and_ends(openb_pods):
    path = openb_pods(
        "a,4000,100,1,460,T4|P100,LS,Running,5,50,10",
        "b,4000,100,2,1000,,BE,Failed,5,50,10",
        "c,4000,100,0,0,,BE,Pending,5,50,",
    )
    rows = read_trace(path).jobs.select(["gpus", "gpu_milli", "gpu_models", "run_s", "state"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (1, 460, "T4|P100", 40, "COMPLETED"),
        (2, None, None, 40, "FAILED"),
        (0, None, None, None, "CANCELLED"),
    ]


def test_philly_orders_by_instant_and_reads_the_repeated_hour_as_its_first(write):
    path = write(
        "philly.csv",
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-11-05 02:00:00,66.0,1,66.0,late\n"
        "2017-11-05 01:30:00,66.0,1,66.0,twice\n"
        "2017-11-05 00:30:00,66.5,2,133.0,early\n",
    )
    trace = read_trace(path)
    assert trace.column("team") == ["early", "twice", "late"]
    assert trace.column("submit_s") == [0, 3600, 9000]  # 02:00 standard time is 2.5 h after 00:30
    assert trace.column("run_s") == [67, 66, 66]
    assert trace.column("job_id") == ["1", "2", "3"]


def test_helios_and_acme_times_are_eight_hours_ahead_of_utc(write):
    head = "job_id,user,vc,gpu_num,state,submit_time,start_time,end_time,duration\n"
    path = write(
        "helios.csv",
        head + "1,u,v,8,COMPLETED,2020-04-01 08:00:00,2020-04-01 08:01:00,2020-04-01 08:02:00,60\n"
        "2,u,v,1,CANCELLED,2020-04-01T00:00:30+00:00,None,None,0\n",
    )
    trace = read_trace(path)
    assert trace.origin == datetime(2020, 4, 1, tzinfo=UTC)
    columns = ("submit_s", "start_s", "end_s", "run_s")
    assert [trace.column(name) for name in columns] == [[0, 30], [60, None], [120, None], [60, 0]]


def test_our_own_table_reads_the_same_from_csv_and_parquet(write, tmp_path):
    path = write(
        "jobs.csv",
        "job_id,submit,run,gpus,limit,cpus_per_task,gang,comm_fraction,gpu_model,colour\n"
        "a,0.5,59.49,2,,2.5,true,0.25,A100|H100,red\n"
        "b,10,60,1,90,,0,,,\n",
    )
    trace = read_trace(path)
    pq.write_table(
        pa.table(
            {
                "job_id": ["a", "b"],
                "submit": [0.5, 10.0],
                "run": [59.49, 60.0],
                "gpus": [2, 1],
                "limit": pa.array([None, 90], pa.int64()),
                "cpus_per_task": pa.array([2.5, None]),
                "gang": [True, False],
                "comm_fraction": pa.array([0.25, None]),
                "gpu_model": pa.array(["A100|H100", None]),
                "colour": ["red", ""],
            }
        ),
        tmp_path / "jobs.parquet",
    )
    assert read_trace(tmp_path / "jobs.parquet").jobs == trace.jobs
    names = ("submit_s", "run_s", "limit_s", "cpu_milli", "gang", "comm_milli", "gpu_models")
    assert [trace.column(name) for name in names] == [
        [1, 10], [59, 60], [None, 90], [2500, None], [1, 0], [250, None], ["A100|H100", None],
    ]  # fmt: skip
    assert trace.remarks == ("columns not used: colour",)


OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.swf", "1 0 0 60\n", "a.swf, line 1: 4 fields, a job has 18; complete or delete"),
        ("a.swf", "; h\n1 0 0 6x" + " 1" * 14 + "\n", "a.swf, line 2: '6x' is not a number"),
        ("a.swf", "; MaxProcs: 4\n", "a.swf: no jobs"),
        ("a.swf", ("1 0 0 60" + " 1" * 14 + "\n") * 2, "line 2: job 1 appears a second time"),
        ("a.csv", OPENB + "a,1,1,1,1000,,LS,Running,5,50\n", "line 2: 10 fields where 11 columns"),
        ("a.csv", OPENB + "a,1,1,x,1000,,LS,Running,5,50,9\n", "line 2: num_gpu is 'x', not a num"),
        ("a.csv", OPENB + "a,1,1,-1,1000,,LS,Running,5,50,9\n", "line 2: num_gpu is '-1', less th"),
        ("a.csv", OPENB + "a,1,1,,1000,,LS,Running,5,50,9\n", "line 2: num_gpu is empty"),
        ("a.csv", OPENB + "a,1,1,1,1000,,LS,Running,5,50,4\n", "scheduled_time lies before creati"),
        ("a.csv", OPENB + "a,1,1,1,1000,,LS,Running,5,6,9\n", "deletion_time lies before schedule"),
        ("a.csv", OPENB, "a.csv: no rows"),
        ("a.csv", "job_id,submit,run,gpus\na,0,inf,1\n", "line 2: run is 'inf', which is out of r"),
        ("a.csv", "job_id,submit,run,gpus\na,0,1,1\na,0,1,1\n", "line 3: job a appears a second"),
        ("a.csv", "job_id,submit,run,gpus,gang\na,0,1,1,perhaps\n", "gang is 'perhaps', not true"),
        ("a.csv", "red,green\n1,2\n", "a.csv, line 1: its columns (green, red) are those of no k"),
        ("a.csv", "timestamp,duration,num_gpus,cluster\nyesterday,1,1,c\n", "not a date and time"),
        ("a.parquet", "no parquet", "a.parquet: not a Parquet file"),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_a_remedy(write, name, text, message):
    with pytest.raises(ImportRefusedError) as refused:
        read_trace(write(name, text))
    assert message in str(refused.value)
    assert str(refused.value).endswith("Nothing was taken in.")


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(ImportRefusedError, match="there is no such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"job_id,\xff\xfe\n")
    with pytest.raises(ImportRefusedError, match="not UTF-8"):
        read_trace(tmp_path / "bytes.csv")
    (tmp_path / "half.swf.gz").write_bytes(gzip.compress(b"1 2 3" * 999)[:30])
    with pytest.raises(ImportRefusedError, match="cannot be read"):
        read_trace(tmp_path / "half.swf.gz")


def test_a_missing_column_is_named_with_those_that_were_found(write):
    path = write("jobs.csv", "job_id,submit,gpus\na,0,1\n")
    with pytest.raises(ImportRefusedError, match=r"no column run \(found: job_id, submit, gpus\)"):
        read_trace(path, "jobs")


def test_an_unknown_format_is_refused_with_the_choices(write):
    with pytest.raises(ImportRefusedError, match="no trace format 'pbs': choose one of swf, openb"):
        read_trace(write("a.swf", ""), "pbs")


def test_a_byte_order_mark_and_spaces_in_the_header_do_no_harm(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"\xef\xbb\xbfjob_id, submit, run, gpus\r\na,0,1,1\r\n\r\n")
    assert detected(path) == "jobs"
    assert read_trace(path).kept == 1
