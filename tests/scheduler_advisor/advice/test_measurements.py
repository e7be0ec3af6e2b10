from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from scheduler_advisor.measurements.activity import activity_distribution
from scheduler_advisor.measurements.breakers import breakers
from scheduler_advisor.measurements.checkpoints import checkpoint_classes
from scheduler_advisor.measurements.documents import DOCUMENTS
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.repeats import varying_repeats
from scheduler_advisor.measurements.sizes import SIZE_CLASSES, size_class
from scheduler_advisor.measurements.spread import run_spreads
from scheduler_advisor.measurements.waits import (
    by_hour,
    by_queue_and_size,
    distribution,
    job_waits,
)


def measured(lab, store, measure):
    lab.built()
    with store.work() as work:
        return measure(work, lab.window, "c")


def test_a_wait_is_first_eligible_to_first_start_and_a_requeue_waits_once(lab, store):
    lab.node()
    lab.run("1", submit=1, start=3, end=5, measured=False, state="FAILED")
    lab.run("1", attempt=2, submit=6, start=9, end=10, measured=False)
    [wait] = measured(lab, store, job_waits)
    assert wait.wait_s == 2 * 3600
    assert wait.started


def test_a_job_that_has_not_started_is_counted_apart_with_its_wait_so_far(lab, store):
    lab.node()
    lab.run("1", submit=100, start=None)
    lab.run("2", submit=10, start=11, end=12, measured=False)
    waits = measured(lab, store, job_waits)
    [group] = by_queue_and_size(waits)
    assert (group.jobs, group.not_started, group.max_s) == (1, 1, 3600)
    assert group.waited_gpu_hours == pytest.approx(68 + 1)


def test_waits_are_grouped_by_queue_size_and_local_hour(lab, store):
    lab.node()
    for number, hours in enumerate((0, 1, 2, 3)):
        lab.run(f"s{number}", submit=10, start=10 + hours, end=20, first=number, measured=False)
    lab.run("big", submit=10, start=30, end=40, gpus=8, queue="gang", measured=False)
    waits = measured(lab, store, job_waits)
    small, big = by_queue_and_size(waits)
    assert (small.queue, small.size, small.p50_s, small.max_s) == ("batch", "1", 5400, 10800)
    assert (big.queue, big.size, big.p95_s) == ("gang", "5-8", 72000)
    assert [group.hour for group in by_hour(waits, ZoneInfo("UTC"))] == [10]
    assert [group.hour for group in by_hour(waits, ZoneInfo("Asia/Seoul"))] == [19]
    # 0 h, then 1, 2, 3 h, then 20 h.
    assert distribution(waits) == [1, 0, 0, 3, 1, 0]


def test_a_run_over_more_nodes_and_switches_than_needed_is_spread(lab, store):
    for number, leaf in enumerate(("l1", "l1", "l2", "l2")):
        lab.node(f"n{number}", leaf=leaf)
    lab.run("tight", start=0, end=10, node=[("n0", 8, 0), ("n1", 8, 0)], measured=False)
    lab.run("wide", start=20, end=30, node=[("n0", 4, 20), ("n2", 4, 20)], measured=False)
    lab.run("apart", start=40, end=50, node=[("n0", 8, 40), ("n2", 8, 40)], measured=False)
    found = {run.job_id: run for run in measured(lab, store, run_spreads)}
    assert not found["tight"].spread
    assert (found["wide"].nodes, found["wide"].nodes_needed) == (2, 1)
    assert (found["apart"].nodes_needed, found["apart"].leaves, found["apart"].leaves_needed) == (
        2, 2, 1,
    )  # fmt: skip
    assert found["apart"].spread
    assert found["wide"].heavy is None  # no link counters: unknown, not light


@pytest.mark.parametrize(
    ("bytes_per_s", "heavy"), [(0.4e9, False), (0.6e9, True)], ids=["0.8 GB/s", "1.2 GB/s"]
)
def test_traffic_is_what_counters_gained_not_where_they_stand(lab, store, bytes_per_s, heavy):
    lab.node()
    lab.run("1", start=0, end=10, gpus=2)
    first = lab.samples[0]["ts"]
    for row in lab.samples:
        # The counters stand at 5 PB since the driver was loaded; both ways add up.
        gained = (row["ts"] - first).total_seconds() * bytes_per_s
        row["nvlink_tx_bytes"] = row["nvlink_rx_bytes"] = 5e15 + gained
    [run] = measured(lab, store, run_spreads)
    assert run.heavy is heavy


def test_counters_of_a_driver_that_was_loaded_anew_say_nothing(lab, store):
    lab.node()
    lab.run("1", start=0, end=10, gpus=2)
    for number, row in enumerate(lab.samples):
        row["nvlink_tx_bytes"] = row["nvlink_rx_bytes"] = 5e15 if number % 20 < 10 else 1.0
    [run] = measured(lab, store, run_spreads)
    assert run.heavy is None


def test_a_job_that_asked_for_a_topology_is_taken_at_its_word(lab, store):
    lab.node()
    lab.run("1", start=0, end=10, gpus=4, topology="switch=1", measured=False)
    [run] = measured(lab, store, run_spreads)
    assert run.heavy is True


def test_free_gpus_beside_small_jobs_are_broken_and_hurt_while_a_big_one_waits(lab, store):
    lab.node()
    lab.run("a", start=0, end=10, gpus=1, user="ann", measured=False)
    lab.run("b", start=0, end=10, gpus=3, first=1, user="bob", measured=False)
    lab.run("big", submit=4, start=10, end=12, gpus=8, measured=False)
    report = measured(lab, store, breakers)
    # 4 GPUs free for 10 hours; the big job waits for 6 of them. Split 3 : 1 by what they hold.
    assert report.broken_gpu_hours == pytest.approx(40)
    assert report.hurt_gpu_hours == pytest.approx(24)
    assert [(b.user_name, b.broken_gpu_hours) for b in report.breakers] == [
        ("bob", pytest.approx(30)), ("ann", pytest.approx(10))
    ]  # fmt: skip
    assert sum(report.by_hour.values()) == pytest.approx(40)


def test_a_job_that_fits_beside_the_small_ones_is_not_hurt(lab, store):
    lab.node()
    lab.run("a", start=0, end=10, gpus=1, measured=False)
    lab.run("mid", submit=4, start=10, end=12, gpus=4, measured=False)
    assert measured(lab, store, breakers).hurt_gpu_hours == 0


def test_hours_in_which_several_big_jobs_wait_hurt_once_and_gaps_between_them_do_not(lab, store):
    lab.node("n1")
    lab.node("n2")
    lab.run("a", start=0, end=20, gpus=1, measured=False)
    for job, submit, start in (("x", 2, 5), ("y", 4, 8), ("z", 12, 14)):
        lab.run(job, submit=submit, start=start, end=start + 1, gpus=8, node="n2", measured=False)
    report = measured(lab, store, breakers)
    # 7 GPUs free; somebody waits from 2 to 8 and from 12 to 14.
    assert report.hurt_gpu_hours == pytest.approx(7 * 8)
    assert len(report.hurt) == 2


def test_checkpoints_come_from_marks_and_are_unknown_without(lab, store):
    lab.node()
    lab.run("1", start=0, end=10, gpus=2, name="marked", measured=False)
    for hour in (3, 6, 9):
        lab.event("checkpoint_begin", hour - 0.1, job_id="1")
        lab.event("checkpoint_end", hour, job_id="1")
    lab.event("restore_begin", 0.0, job_id="1", run_id="1:1")
    lab.event("restore_end", 0.25, job_id="1", run_id="1:1")
    lab.run("2", start=0, end=10, gpus=1, first=4, name="dark", measured=False)
    found = {entry.name: entry for entry in measured(lab, store, checkpoint_classes)}
    marked, dark = found["marked"], found["dark"]
    assert (marked.checkpoints, marked.interval_s) == (3, 3 * 3600)
    assert marked.write_s == pytest.approx(360)
    assert marked.restore_s == pytest.approx(900)
    assert (dark.interval_s, dark.write_s, dark.restore_s) == (None, None, None)
    assert dark.long_runs_without_marks == 1


def test_a_begin_without_an_end_is_not_durable(lab, store):
    lab.node()
    lab.run("1", start=0, end=10, name="torn", measured=False, state="PREEMPTED")
    lab.event("checkpoint_begin", 5, job_id="1")
    [entry] = measured(lab, store, checkpoint_classes)
    assert entry.checkpoints == 0
    assert entry.lost_gpu_hours_bound == pytest.approx(10)


def test_a_job_that_is_slow_where_it_is_spread_is_shown_beside_its_placements(lab, store):
    lab.node("n1")
    lab.node("n2", leaf="leaf2")
    for number in range(3):
        start = number * 20
        lab.run(f"f{number}", start=start, end=start + 2, gpus=4, name="bench", measured=False)
    lab.run("slow", start=60, end=64, name="bench", measured=False,
            node=[("n1", 2, 60), ("n2", 2, 60)])  # fmt: skip
    [repeat] = measured(lab, store, varying_repeats)
    assert repeat.ratio == pytest.approx(2)
    assert repeat.placement_explains
    assert [run.node_names for run in repeat.slow] == [("n1", "n2")]
    assert repeat.excess_gpu_hours == pytest.approx(8)
    [row] = DOCUMENTS["repeats"](store, lab.window, "c", rows=False)["rows"]
    assert (row["runs"], row["slow_runs"], row["placement_explains"]) == (len(repeat.runs), 1, True)
    assert row["excess_gpu_hours"] == pytest.approx(8)
    runs = DOCUMENTS["repeats"](store, lab.window, "c", rows=True)["rows"]
    assert [run["node_names"] for run in runs if run["slow"]] == [["n1", "n2"]]


def test_a_steady_job_and_a_rare_one_do_not_vary(lab, store):
    lab.node()
    for number in range(4):
        lab.run(f"a{number}", start=number * 5, end=number * 5 + 3, name="steady", measured=False)
    for number, hours in enumerate((1, 4)):
        lab.run(f"b{number}", start=number * 5, end=number * 5 + hours, first=3, name="rare",
                measured=False)  # fmt: skip
    assert measured(lab, store, varying_repeats) == []


def test_the_distribution_shows_two_worlds_behind_one_mean(lab, store):
    lab.node()
    lab.run("1", start=0, end=20, gpus=2, activity=0.95)
    lab.run("2", start=0, end=20, gpus=2, first=2, activity=0.15)
    shares = measured(lab, store, activity_distribution)
    assert {(s.low, s.high): s.gpu_hours for s in shares if s.gpu_hours} == {
        (0.01, 0.25): pytest.approx(40), (0.9, 1.0): pytest.approx(40)
    }  # fmt: skip
    rows = DOCUMENTS["activity"](store, lab.window, None, rows=False)["rows"]
    assert [r["gpu_hours"] for r in rows] == [share.gpu_hours for share in shares]


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
@pytest.mark.parametrize("rows", [True, False])
def test_every_document_has_window_kind_rows_and_remarks(lab, store, name, rows):
    lab.node()
    lab.run("1", start=0, end=10, gpus=2, measured=False)
    lab.built()
    document = DOCUMENTS[name](store, lab.window, None, rows=rows)
    assert set(document) == {"window", "kind", "rows", "remarks"}


def test_a_quantile_interpolates_and_nothing_has_none():
    assert quantile([], 0.5) is None
    assert quantile([1, 2, 3, 10], 0.5) == 2.5
    assert quantile([4], 0.95) == 4


def test_every_count_of_gpus_has_one_size_class():
    assert {size_class(gpus) for gpus in range(1, 200)} == set(SIZE_CLASSES)
