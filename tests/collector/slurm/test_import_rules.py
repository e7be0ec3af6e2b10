from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PENDING = {
    "state": "PENDING", "start": "Unknown", "end": "Unknown", "elapsedraw": 0, "alloctres": "",
    "nodelist": "None assigned",
}  # fmt: skip


def at(epoch):
    return datetime.fromtimestamp(epoch, UTC)


def runs(site, *columns):
    names = ", ".join(columns)
    rows = site.store.rows(f"SELECT {names} FROM job_run ORDER BY job_id, attempt")
    return [tuple(row.values()) for row in rows]


def test_steps_in_the_same_file_are_left_out_and_counted(site):
    site.rows = [
        site.run(),
        site.run(jobid="1.batch"),
        site.run(jobid="1.extern"),
        site.run(jobid="1.0"),
    ]
    summary = site.take_in()
    assert summary.dropped == {"job step": 3}
    assert site.gpu_seconds() == 2 * 3600


@pytest.mark.parametrize(
    "missing", ["restarts", "planned", "wckey", "reqtres", "jobidraw", "nnodes"]
)
def test_a_version_without_a_field_is_taken(site, missing):
    site.fields = tuple(name for name in site.fields if name != missing)
    site.rows = [site.run()]
    site.take_in()
    assert site.gpu_seconds() == 2 * 3600


def test_a_file_without_header_and_without_restarts_is_known_by_its_width(site):
    site.fields, site.header = tuple(name for name in site.fields if name != "restarts"), False
    site.rows = [site.run()]
    assert site.take_in().kept["job_run"] == 1


def test_any_format_without_header_is_taken_where_it_is_given(site):
    site.fields, site.header = (
        ("jobid", "submit", "start", "end", "state", "alloctres", "nodelist"),
        False,
    )
    site.rows = [site.run()]
    site.take_in(sacct_fields="JobID%30,Submit,Start,End,State,AllocTRES,NodeList")
    assert site.gpu_seconds() == 2 * 3600


def test_an_array_whose_list_slurm_cut_is_a_job_and_no_step(site):
    site.rows = [site.run(), site.run(**PENDING, jobid="7_[1,3,5,7,...]", jobidraw="7")]
    site.take_in()
    assert site.store.value("SELECT array_task FROM job WHERE job_id = '7'") == "[1,3,5,7,...]"


@pytest.mark.parametrize("delimiter", [";", "\t", "\x1f", "^"])
def test_another_delimiter_is_seen_in_the_header(site, delimiter):
    site.rows, site.delimiter = [site.run()], delimiter
    site.take_in()
    assert site.gpu_seconds() == 2 * 3600


def test_a_run_that_does_not_say_what_it_held_is_named(site):
    site.rows = [site.run(), site.run(jobid="2", alloctres="")]
    summary = site.take_in()
    assert site.gpu_seconds() == 2 * 3600
    assert any("only one of AllocTRES and NodeList" in remark for remark in summary.remarks)


def test_a_window_that_ends_after_now_is_named(site):
    site.rows = [site.run()]
    summary = site.take_in(now=at(site.t0 + 600))
    assert any("is the time zone right?" in remark for remark in summary.remarks)


def test_one_end_far_in_the_future_does_not_move_the_window(site):
    wrong = 4_294_967_295  # 2106: a node whose clock was never set
    site.rows = [site.run(), site.run(jobid="2", end=wrong, elapsedraw=wrong - site.t0 - 60)]
    summary = site.take_in()
    assert summary.until == at(site.t0 + 3660)
    assert "1 runs end after now: counted as far as the window reaches" in summary.remarks
    assert site.store.value("SELECT max(until) = $1 FROM fact_window", [summary.until])


def test_columns_may_come_in_any_order_and_spelling(site):
    site.fields = tuple(reversed(site.fields))
    site.rows = [site.run(jobname="a|b")]
    lines = site.sacct_text().splitlines()
    site.take_in(sacct="\n".join([lines[0].upper(), *lines[1:]]))
    assert site.store.value("SELECT name FROM job") == "a|b"


def test_files_put_one_after_another_with_their_headers_are_one_file(site):
    site.rows = [site.run()]
    first = site.sacct_text()
    site.rows = [site.run(), site.run(jobid="2")]
    summary = site.take_in(sacct=first + "\n" + site.sacct_text())
    assert (summary.kept["job_run"], summary.dropped) == (2, {"duplicate": 1})


def test_a_name_with_a_line_break_is_joined_where_another_column_follows(site):
    last = ("jobname", "exitcode")
    site.fields = (*(name for name in site.fields if name not in last), *last)
    site.delimiter = "\x1f"
    site.rows = [site.run(jobname="two\nlines"), site.run(jobid="2")]
    site.take_in()
    names = site.store.rows("SELECT name FROM job ORDER BY job_id")
    assert [row["name"] for row in names] == ["two\nlines", "train"]


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(site):
    site.rows = [site.run()]
    site.take_in(sacct="\ufeff" + site.sacct_text().replace("\n", "\r\n"))
    assert site.gpu_seconds() == 2 * 3600


def test_a_requeued_job_has_a_run_for_each_start(site):
    site.rows = [
        site.run(state="PREEMPTED"),
        site.run(submit=site.t0 + 4000, start=site.t0 + 5000, end=site.t0 + 8600),
    ]
    site.take_in()
    assert runs(site, "job_id", "attempt", "state") == [
        ("1", 1, "PREEMPTED"),
        ("1", 2, "COMPLETED"),
    ]
    assert site.store.value("SELECT submit_at FROM job") == at(site.t0)
    assert site.gpu_seconds() == 2 * 2 * 3600


def test_the_runs_of_a_job_are_numbered_alike_whichever_file_comes_first(site):
    early = site.run(state="PREEMPTED")
    late = site.run(submit=site.t0 + 4000, start=site.t0 + 5000, end=site.t0 + 8600, user="li")
    for row in (late, early):
        site.rows = [row]
        site.take_in()
    assert runs(site, "attempt", "state") == [(1, "PREEMPTED"), (2, "COMPLETED")]
    assert site.store.rows("SELECT submit_at, user_name FROM job") == [
        {"submit_at": at(site.t0), "user_name": "li"}
    ]


def test_a_pending_row_gives_way_to_the_run_that_started(site):
    window = {"since": at(site.t0), "until": at(site.t0 + 100_000)}
    site.rows = [site.run(**PENDING)]
    site.take_in(**window)
    assert runs(site, "state", "start_at") == [("PENDING", None)]
    site.rows = [site.run()]
    site.take_in(**window)
    assert runs(site, "state", "attempt") == [("COMPLETED", 1)]


def test_an_older_file_does_not_undo_what_a_newer_one_said(site):
    site.rows = [site.run()]
    site.take_in()
    before = site.facts()
    site.rows = [site.run(state="RUNNING", end="Unknown", elapsedraw=600)]
    summary = site.take_in()
    assert summary.dropped == {"older than what is stored": 1}
    after = site.facts()
    assert {t: after[t] for t in ("job_run", "allocation", "job")} == {
        t: before[t] for t in ("job_run", "allocation", "job")
    }
    site.rows = [site.run(**PENDING)]
    site.take_in(since=at(site.t0), until=at(site.t0 + 3600))
    assert runs(site, "state") == [("COMPLETED",)]


def test_a_running_job_is_closed_by_a_later_file(site):
    site.rows = [site.run(state="RUNNING", end="Unknown", elapsedraw=600)]
    site.take_in()
    assert site.gpu_seconds() == 2 * 600
    site.rows = [site.run()]
    site.take_in()
    assert site.gpu_seconds() == 2 * 3600
    assert runs(site, "state", "last_known_at") == [("COMPLETED", None)]


def test_array_tasks_and_het_components_are_jobs_of_their_own(site):
    site.rows = [
        site.run(jobid="7_1", jobidraw="8"),
        site.run(jobid="7_2", jobidraw="7"),
        site.run(jobid="20+0", jobidraw="20", account="nlp"),
        site.run(jobid="20+1", jobidraw="21", account="vision"),
    ]
    site.take_in()
    jobs = site.store.rows(
        "SELECT job_id, array_job_id, array_task, het_job_id, het_component, account FROM job "
        "ORDER BY CAST(job_id AS INT)"
    )
    assert [tuple(job.values()) for job in jobs] == [
        ("7", "7", "2", None, None, "nlp"),
        ("8", "7", "1", None, None, "nlp"),
        ("20", None, None, "20", 0, "nlp"),
        ("21", None, None, "20", 1, "vision"),
    ]


def test_a_run_that_ends_before_it_starts_holds_nothing_and_is_named(site):
    site.rows = [site.run(end=site.t0 + 10), site.run(jobid="2")]
    summary = site.take_in()
    assert site.gpu_seconds() == 2 * 3600
    assert "1 runs end before they start: taken as 0 seconds long" in summary.remarks


def test_a_finished_run_without_end_ends_after_its_elapsed_time(site):
    site.rows = [site.run(end="Unknown", suspended="00:10:00")]
    summary = site.take_in()
    assert runs(site, "end_at") == [(at(site.t0 + 60 + 3600 + 600),)]
    assert any("have no End" in remark for remark in summary.remarks)


def test_an_unknown_state_is_kept_as_it_is_and_named(site):
    site.rows = [site.run(state="HIBERNATED")]
    summary = site.take_in()
    assert runs(site, "state", "state_raw") == [("UNKNOWN", "HIBERNATED")]
    assert any("HIBERNATED" in remark for remark in summary.remarks)


def test_gpus_on_nodes_that_are_not_in_the_list_are_kept_and_named(site):
    site.rows = [site.run(nodelist="old[1-2]", nnodes=2)]
    summary = site.take_in()
    held = site.store.rows("SELECT node, gpu_model, gpus FROM allocation ORDER BY node")
    assert [tuple(row.values()) for row in held] == [("old1", "a100", 1), ("old2", "a100", 1)]
    assert any("old[1-2]" in remark for remark in summary.remarks)


def test_jobs_on_nodes_without_gpus_are_runs_without_allocation(site):
    site.rows = [site.run(), site.run(jobid="2", nodelist="cpu1", alloctres="cpu=4,mem=1G")]
    site.nodes = [site.node(), "NodeName=cpu1 CPUTot=64 RealMemory=256000 State=IDLE"]
    summary = site.take_in()
    assert summary.kept["job_run"] == 2
    assert summary.dropped == {"allocation on nodes without GPUs": 1}
    assert site.store.value("SELECT gpu_model FROM node WHERE node = 'cpu1'") is None


def test_only_what_touches_the_window_is_taken_and_it_is_taken_whole(site):
    hour = 3600
    site.rows = [
        site.run(
            jobid=str(number), submit=site.t0 + start, start=site.t0 + start, end=site.t0 + end
        )
        for number, (start, end) in enumerate(
            [(0, hour), (0, 2 * hour), (hour, 2 * hour), (2 * hour, 3 * hour)]
        )
    ]
    summary = site.take_in(since=at(site.t0 + hour), until=at(site.t0 + 2 * hour))
    assert [run[0] for run in runs(site, "job_id")] == ["1", "2"]
    assert summary.dropped == {"outside the window": 2}
    assert site.gpu_seconds() == 2 * 2 * hour + 2 * hour
    window = site.store.rows("SELECT since, until FROM fact_window")
    assert window == [{"since": at(site.t0 + hour), "until": at(site.t0 + 2 * hour)}]


def test_windows_that_touch_become_one_and_others_stay_apart(site):
    site.rows = [site.run()]
    for begin, end in ((0, 10), (20, 30), (10, 15)):
        site.take_in(since=at(site.t0 + begin * 100), until=at(site.t0 + end * 100))
    windows = site.store.rows("SELECT since, until FROM fact_window ORDER BY since")
    assert [tuple(w.values()) for w in windows] == [
        (at(site.t0), at(site.t0 + 1500)),
        (at(site.t0 + 2000), at(site.t0 + 3000)),
    ]


def test_partition_limits_are_looked_up(site):
    site.rows = [
        site.run(timelimitraw="Partition_Limit"),
        site.run(jobid="2", timelimitraw="UNLIMITED"),
    ]
    site.take_in(partitions="PartitionName=a100 Nodes=gn01 MaxTime=2-00:00:00 State=UP\n")
    assert runs(site, "limit_s") == [(172_800,), (None,)]


def test_times_without_a_zone_are_utc_and_said_so_unless_a_zone_is_named(site):
    site.rows = [
        site.run(
            submit="2026-11-01T00:00:00", start="2026-11-01T00:01:00", end="2026-11-01T01:01:00"
        )
    ]
    summary = site.take_in()
    assert runs(site, "submit_at") == [(at(site.t0),)]
    assert any("carry no zone and were read as UTC" in remark for remark in summary.remarks)
    site.take_in(time_zone="America/New_York")
    assert (at(site.t0 + 4 * 3600),) in runs(site, "submit_at")


def test_the_hour_that_a_clock_change_repeats_keeps_its_length(site):
    # New York goes back from 02:00 to 01:00 at 06:00 UTC on this day.
    def local(submit, start, end, elapsed, job):
        day = "2026-11-01T"
        return site.run(
            jobid=job, submit=day + submit, start=day + start, end=day + end, elapsedraw=elapsed
        )

    site.rows = [
        local("00:30:00", "01:50:00", "01:10:00", 20 * 60, "1"),
        local("00:30:00", "01:10:00", "02:30:00", 80 * 60, "2"),
        local("00:30:00", "01:10:00", "02:30:00", 140 * 60, "3"),
    ]
    summary = site.take_in(time_zone="America/New_York")
    assert runs(site, "start_at", "end_at") == [
        (at(site.t0 + 350 * 60), at(site.t0 + 370 * 60)),
        (at(site.t0 + 370 * 60), at(site.t0 + 450 * 60)),
        (at(site.t0 + 310 * 60), at(site.t0 + 450 * 60)),
    ]
    assert "2 runs lie in the hour that a clock change repeats" in summary.remarks


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jobs=st.lists(
        st.tuples(
            st.integers(1, 6),
            st.integers(0, 5000),
            st.integers(0, 5000),
            st.integers(0, 8),
            st.sampled_from(["COMPLETED", "RUNNING", "PREEMPTED", "PENDING"]),
        ),
        min_size=1,
        max_size=12,
        # Two ends of one run would be a contradiction, in which the later import wins.
        unique_by=lambda job: job[:2],
    ),
    cuts=st.lists(st.integers(0, 12), max_size=2),
    data=st.data(),
)
def test_pieces_in_any_order_give_the_same_runs_as_the_whole_file(site, jobs, cuts, data):
    rows = []
    for number, submit, length, gpus, state in jobs:
        row = site.run(
            jobid=str(number), submit=site.t0 + submit, start=site.t0 + submit + 5, state=state,
            end=site.t0 + submit + 5 + length, elapsedraw=length,
            alloctres=f"cpu=1,gres/gpu={gpus},node=1",
        )  # fmt: skip
        if state == "RUNNING":
            row["end"] = "Unknown"
        rows.append(row | PENDING if state == "PENDING" else row)
    window = {"since": at(site.t0), "until": at(site.t0 + 20_000)}
    pieces = [
        part
        for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(rows)], strict=True)
        if (part := rows[begin:end])
    ]

    def result(parts, cluster):
        for part in parts:
            site.rows = part
            site.take_in(cluster=cluster, **window)
        return site.store.rows(
            "SELECT run_id, attempt, state, start_at, end_at, gpus FROM job_run WHERE cluster = ? "
            "ORDER BY run_id",
            [cluster],
        ), site.store.rows(
            "SELECT run_id, node, gpus, start_at, end_at FROM allocation WHERE cluster = ? "
            "ORDER BY ALL",
            [cluster],
        )

    serial = site.store.value("SELECT count(DISTINCT cluster) FROM job_run")
    whole = result([rows], f"w{serial}")
    assert result(data.draw(st.permutations(pieces)), f"p{serial}") == whole


def test_facts_that_are_stored_under_another_cluster_stay_untouched(site):
    site.rows = [site.run()]
    site.take_in(cluster="one")
    before = site.facts()
    site.take_in(cluster="two", now=site.now + timedelta(days=1))
    after = {
        table: [r for r in rows if r["cluster"] == "one"] for table, rows in site.facts().items()
    }
    assert after == before


def test_a_comment_is_kept_as_the_jobs_labels_and_outlives_a_file_without_it(site):
    site.fields = (*site.fields[:-1], "comment", site.fields[-1])
    site.rows = [site.run(comment="team=nlp, stage=train")]
    site.take_in()
    assert site.store.value("SELECT labels FROM job") == "team=nlp, stage=train"
    site.fields = tuple(name for name in site.fields if name != "comment")
    site.take_in()
    assert site.store.value("SELECT labels FROM job") == "team=nlp, stage=train"
