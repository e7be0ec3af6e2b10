"""A trace as the simulator's jobs: shapes, limits, and a count for every row left out."""

from __future__ import annotations

import pytest

from collector.traces.trace import Trace, jobs_table
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.readers.jobs import Overrun, jobs_of, read_jobs


def trace_of(*rows, **more):
    """Rows of (submit, run, gpus), and further columns."""
    submit, run, gpus = zip(*rows, strict=True)
    names = [f"j{i}" for i in range(len(rows))]
    columns = {"job_id": names, "submit_s": submit, "run_s": run, "gpus": gpus, **more}
    return Trace(jobs=jobs_table(columns), format="test")


def test_rows_that_cannot_be_replayed_are_counted_by_reason():
    read = jobs_of(trace_of((0, 5, 1), (0, None, 1), (0, 0, 1), (0, 5, 0), (0, 5, 2)))
    assert read.kept == len(read.jobs) == 2
    assert read.dropped == {
        "never ran: no run time is known": 1,
        "run time of 0 or less": 1,
        "asks for no GPU and no CPU": 1,
    }
    assert read.lines()[1] == "  skipped 1: never ran: no run time is known"


def test_a_job_without_gpus_stays_where_it_holds_cpus():
    read = jobs_of(trace_of((0, 5, 0), cpu_milli=[4000]))
    assert (read.jobs.gpus.tolist(), read.jobs.tasks.tolist()) == ([0], [1])


def test_jobs_come_in_the_order_of_submit_and_ties_in_the_order_of_the_file():
    read = jobs_of(trace_of((9, 1, 1), (3, 1, 1), (9, 1, 2), (3, 1, 3)))
    assert list(read.jobs.job_id) == ["j1", "j3", "j0", "j2"]


def test_a_limit_below_the_run_time_is_raised_or_cuts_the_job():
    trace = trace_of((0, 100, 1), (0, 100, 1), (0, 100, 1), limit_s=[60, 200, None])
    raised = jobs_of(trace)
    assert raised.jobs.limit.tolist() == [100, 200, 100]
    assert raised.remarks == ("1 limits lay below the run time and were raised to it",)
    cut = jobs_of(trace, Overrun.KILL)
    assert cut.jobs.run.tolist() == [60, 100, 100]
    assert cut.remarks == ("1 jobs ran over their limit and end at it",)


@pytest.mark.parametrize(
    ("gpus", "tasks", "each", "expected"),
    [
        (12, None, None, (0, 0, 0)),  # left to the nodes
        (12, 3, None, (3, 4, 0)),
        (13, 3, None, (3, 4, 1)),
        (12, None, 4, (3, 4, 0)),
        (13, None, 4, (3, 4, 1)),
        (2, None, 4, (1, 2, 0)),
        (12, 3, 4, (3, 4, 0)),
        (0, None, None, (1, 0, 0)),
    ],
)
def test_shapes_follow_from_what_is_said(gpus, tasks, each, expected):
    jobs = jobs_of(trace_of((0, 5, gpus), tasks=[tasks], gpus_per_task=[each], cpu_milli=[1])).jobs
    assert (jobs.tasks[0], jobs.gpus_per_task[0], jobs.rest_gpus[0]) == expected
    if expected[0] and gpus:
        assert jobs.tasks[0] * jobs.gpus_per_task[0] + jobs.rest_gpus[0] == gpus


def test_tasks_that_contradict_the_gpus_are_refused_with_the_job():
    with pytest.raises(ReaderError, match="job j0 asks for 12 GPUs in 3 tasks of 3"):
        jobs_of(trace_of((0, 5, 12), tasks=[3], gpus_per_task=[3]))


def test_a_file_without_one_usable_job_is_refused():
    with pytest.raises(ReaderError, match="no job can be replayed"):
        jobs_of(trace_of((0, None, 1)))


def test_columns_of_our_own_table_reach_the_simulator(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submit,run,gpus,limit,tasks,gpus_per_task,cpus_per_task,mem_mib_per_task,gpu_milli,"
        "gpu_model,team,user,queue,priority,gang,preemptible,checkpoint_every,checkpoint_cost,"
        "restore_cost,min_tasks,max_tasks,comm_fraction,topology\n"
        "a,1,60,8,90,2,4,3.5,100,,A100|H100,t,u,q,-5,false,true,600,20,40,1,4,0.25,leaf\n"
        "b,2,60,1,,,,,,300,,,,,,,,,,,,,,\n"
    )
    jobs = read_jobs(path).jobs
    first = {
        "submit": 1, "run": 60, "limit": 90, "gpus": 8, "tasks": 2, "gpus_per_task": 4,
        "cpu_milli": 3500, "mem_mib": 100, "priority": -5, "gang": 0, "preemptible": 1,
        "checkpoint_every": 600, "checkpoint_cost": 20, "restore_cost": 40, "min_tasks": 1,
        "max_tasks": 4, "comm_milli": 250,
    }  # fmt: skip
    assert {name: getattr(jobs, name)[0] for name in first} == first
    names = {"gpu_models": "A100|H100", "team": "t", "user": "u", "qos": "q", "topology": "leaf"}
    assert {name: getattr(jobs, name)[0] for name in names} == names
    assert (jobs.limit[1], jobs.gang[1], jobs.gpu_milli[1], jobs.gpu_models[1]) == (60, 1, 300, "")


def test_the_cleaned_oracle_logs_are_read_as_they_were_simulated(shared_data):
    """Same jobs, sizes, run times and limits as in the file that the other simulators' starts
    belong to."""
    import csv

    for name in ("philly_ee9e8c", "philly_103959", "itp_c03"):
        read = read_jobs(shared_data / "traces" / "swf" / f"{name}.swf")
        with (shared_data / "oracles" / f"{name}.csv").open(newline="") as text:
            rows = list(csv.DictReader(text))
        assert read.dropped == {}
        for ours, theirs in (
            (read.jobs.submit, "submit"),
            (read.jobs.run, "run"),
            (read.jobs.gpus, "procs"),
            (read.jobs.limit, "est"),
        ):
            assert ours.tolist() == [int(row[theirs]) for row in rows]
        assert list(read.jobs.job_id) == [row["job_id"] for row in rows]


def test_real_waits_of_the_raw_logs_are_kept_for_calibration(shared_data):
    read = read_jobs(shared_data / "traces" / "swf" / "KTH-SP2.swf")
    assert read.observed_wait_s.mean() == pytest.approx(15_385, abs=1)
    assert sorted(read.observed_wait_s)[len(read.jobs) // 2] == 300
    assert read_jobs(shared_data / "traces" / "itp" / "cluster03.csv").observed_wait_s is None


def test_wagap_says_how_many_limits_it_raised(shared_data):
    read = read_jobs(shared_data / "traces" / "swf" / "wagap-2013.swf")
    assert (read.kept, read.dropped) == (17_898, {"never ran: no run time is known": 2})
    assert any(remark.startswith("702 limits") for remark in read.remarks)
