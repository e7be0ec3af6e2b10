"""Checksums of the real traces, so that no reader loses, doubles or mends a row in silence."""

from __future__ import annotations

import csv
from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest

from collector.traces.formats import read_trace


def gpu_hours(trace):
    jobs = trace.jobs
    milli = pc.fill_null(jobs["gpu_milli"], 1000)
    return pc.sum(pc.multiply(pc.multiply(jobs["gpus"], jobs["run_s"]), milli)).as_py() / 3.6e6


@pytest.mark.parametrize(
    ("name", "kind", "rows", "hours"),
    [
        ("openb/openb_pod_list_default.csv", "openb", 8_152, 51_470.67),
        ("philly/philly.csv", "philly", 82_247, 978_078.47),
        ("itp/cluster03.csv", "itp", 3_011, 165_442.52),
        ("itp/cluster04.csv", "itp", 15_802, 705_682.885),
        ("itp/cluster06.csv", "itp", 2_396, 123_878.66),
        ("swf/KTH-SP2.swf", "swf", 28_481, 559_224.74),
        ("swf/wagap-2013.swf", "swf", 17_900, 2_679_792.84),
    ],
)
def test_a_real_trace_is_recognised_and_keeps_every_gpu_hour(traces, name, kind, rows, hours):
    trace = read_trace(traces / name)
    assert (trace.format, trace.kept, dict(trace.dropped)) == (kind, rows, {})
    assert gpu_hours(trace) == pytest.approx(hours, abs=0.005)


def test_openb_has_the_pods_that_never_started(traces):
    jobs = read_trace(traces / "openb" / "openb_pod_list_default.csv").jobs
    assert jobs["start_s"].null_count == 897
    assert pc.sum(pc.equal(jobs["state"], "CANCELLED")).as_py() == 897


def test_kth_has_its_calendar_and_its_machine(traces):
    trace = read_trace(traces / "swf" / "KTH-SP2.swf")
    assert trace.origin == datetime(1996, 9, 23, 12, 0, 31, tzinfo=UTC)
    assert trace.capacity == 100
    waits = pc.subtract(trace.jobs["start_s"], trace.jobs["submit_s"])
    assert pc.mean(waits).as_py() == pytest.approx(15_385, abs=1)


def test_wagap_has_its_nodes_queues_and_overruns(traces):
    jobs = read_trace(traces / "swf" / "wagap-2013.swf").jobs
    assert jobs["node_names"].null_count == 0
    assert jobs["node_names"][1].as_py() == ["node1129"] * 12
    assert jobs["queue"][1].as_py() == "q_2w"
    assert pc.sum(pc.greater(jobs["run_s"], jobs["limit_s"])).as_py() == 702
    assert jobs["submit_s"][0].as_py() == 0


def test_philly_is_an_hour_later_after_the_clock_change(traces):
    """Differences of the printed local times miss the hour that 2017-11-05 had twice."""
    path = traces / "philly" / "philly.csv"
    trace = read_trace(path)
    with path.open(newline="") as text:
        printed = sorted(row["timestamp"] for row in csv.DictReader(text))
    stamps = [datetime.fromisoformat(f"{text}+00:00") for text in printed]
    naive = [int((stamp - stamps[0]).total_seconds()) for stamp in stamps]
    shift = [ours - theirs for ours, theirs in zip(trace.column("submit_s"), naive, strict=True)]
    change = next(i for i, text in enumerate(printed) if text >= "2017-11-05 02:00:00")
    assert shift == [0] * change + [3600] * (len(printed) - change)
    assert any("7 submits lie in the repeated hour" in remark for remark in trace.remarks)
