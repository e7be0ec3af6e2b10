"""A trace into the store: the facts add up to the file, all of it or nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.errors import ImportRefusedError
from collector.traces.facts import SimulatedRun
from collector.traces.importer import DEFAULT_ORIGIN, import_trace
from collector.traces.inventory import shaped

HELD = """
SELECT sum(epoch(end_at - start_at)::BIGINT * gpus * (share_num * 1000 // share_den))::BIGINT
FROM allocation
"""


def test_openb_holds_51_470_67_gpu_hours(store, traces, now):
    folder = traces / "openb"
    summary = import_trace(
        store,
        folder / "openb_pod_list_default.csv",
        "openb",
        "openb",
        nodes=folder / "openb_node_list_all_node.csv",
        now=now,
    )
    assert store.value(HELD) == summary.held_gpu_milli_s
    assert summary.held_gpu_milli_s / 3.6e6 == pytest.approx(51_470.67415833, abs=1e-6)
    counts = {
        "node": 1_523, "job": 8_152, "job_run": 8_152, "device": 6_212, "fact_window": 1,
        "import_log": 1,
    }  # fmt: skip
    assert {table: store.value(f'SELECT count(*) FROM "{table}"') for table in counts} == counts
    assert store.value("SELECT count(*) FROM job_run WHERE start_at IS NULL") == 897
    assert store.value("SELECT sum(gpus)::BIGINT FROM node") == 6_212


def test_shares_of_one_gpu_of_openb_never_add_to_more_than_one(store, traces, now):
    folder = traces / "openb"
    pods, nodes = folder / "openb_pod_list_gpushare40.csv", folder / "openb_node_list_gpu_node.csv"
    import_trace(store, pods, "openb", "openb", nodes=nodes, now=now)
    fullest = """
    WITH change AS (
      SELECT gpu_uuid, start_at AS ts, share_num * 1000 // share_den AS milli
      FROM allocation WHERE gpus > 0
      UNION ALL
      SELECT gpu_uuid, end_at, -share_num * 1000 // share_den FROM allocation WHERE gpus > 0)
    SELECT max(held)::BIGINT FROM (
      SELECT sum(milli) OVER (PARTITION BY gpu_uuid ORDER BY ts, milli) AS held FROM change)
    """
    assert store.value(fullest) == 1000


def test_kth_on_its_hundred_nodes(store, traces, now):
    summary = import_trace(
        store, traces / "swf" / "KTH-SP2.swf", "swf", "kth", nodes=shaped("100x1"), now=now
    )
    assert store.value(HELD) == summary.held_gpu_milli_s
    assert summary.since == datetime(1996, 9, 23, 12, 0, 31, tzinfo=UTC)
    assert any("12 jobs held GPUs for which the nodes" in remark for remark in summary.remarks)
    assert store.value("SELECT count(*) FROM device") == 0  # nobody shares: no GPU is named


def test_wagap_needs_no_node_file_because_it_names_its_nodes(store, traces, now):
    summary = import_trace(store, traces / "swf" / "wagap-2013.swf", "swf", "wagap", now=now)
    assert store.value(HELD) == summary.held_gpu_milli_s
    assert summary.held_gpu_hours == pytest.approx(2_679_792.84, abs=0.005)
    assert not any("modelled" in remark for remark in summary.remarks)


def test_a_shape_takes_the_place_of_nodes_that_the_trace_names(store, traces, now, tmp_path):
    lines = (traces / "swf" / "wagap-2013.swf").read_text("utf-8").splitlines()[:400]
    file = tmp_path / "wagap.swf"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    summary = import_trace(store, file, "swf", "own", now=now)
    moved = import_trace(store, file, "swf", "moved", nodes=shaped("96x16"), now=now)
    assert moved.held_gpu_hours == summary.held_gpu_hours > 1000
    assert any("nodes of its own, none of them" in remark for remark in moved.remarks)
    assert any("placement is modelled" in remark for remark in moved.remarks)
    assert not any("no room" in remark for remark in moved.remarks)


def test_facts_of_a_small_trace(store, openb_pods, openb_nodes, now):
    pods = openb_pods(
        "a,4500,100,1,460,,LS,Running,5,50,10",
        "b,8000,100,2,1000,T4,BE,Failed,5,50,10",
        "c,1000,100,0,0,,BE,Pending,5,60,",
    )
    nodes = openb_nodes("n1,32000,999,4,T4")
    origin = datetime(2026, 1, 1, tzinfo=UTC)
    summary = import_trace(store, pods, "openb", "c", nodes=nodes, now=now, origin=origin)
    at = {
        second: origin.replace(minute=second // 60, second=second % 60)
        for second in (5, 10, 50, 60)
    }
    assert store.rows(
        "SELECT run_id, gpu_uuid, gpus, share_num, share_den, cpus, start_at, end_at, source "
        "FROM allocation ORDER BY run_id, gpu_uuid"
    ) == [
        dict(zip(
            ("run_id", "gpu_uuid", "gpus", "share_num", "share_den", "cpus", "start_at", "end_at",
             "source"),
            row, strict=True))
        for row in (
            ("a.1", "n1/gpu0", 1, 460, 1000, 5, at[10], at[50], "trace:openb"),
            ("b.1", "n1/gpu1", 1, 1, 1, 8, at[10], at[50], "trace:openb"),
            ("b.1", "n1/gpu2", 1, 1, 1, 8, at[10], at[50], "trace:openb"),
        )
    ]  # fmt: skip
    runs = store.rows("SELECT state, state_raw, submit_at, start_at, end_at, nodes FROM job_run")
    assert [tuple(run.values()) for run in runs] == [
        ("COMPLETED", "Running", at[5], at[10], at[50], 1),
        ("FAILED", "Failed", at[5], at[10], at[50], 1),
        ("CANCELLED", "Pending", at[5], None, at[60], None),
    ]
    (window,) = store.rows("SELECT kind, since, until FROM fact_window")
    assert window == {"kind": "scheduler", "since": at[5], "until": at[60]}
    (log,) = store.rows("SELECT kept, dropped, ts, since, until FROM import_log")
    assert log == {"kept": 3, "dropped": 0, "ts": now, "since": at[5], "until": at[60]}
    assert summary.lines()[0] == "cluster c: 3 jobs in format openb, 1 nodes with 4 GPUs"


def test_the_same_file_is_taken_in_once(store, swf, now):
    path = swf((1, 0, 5, 60, 2, 60))
    import_trace(store, path, "swf", "c", nodes=shaped("1x2"), now=now)
    with pytest.raises(ImportRefusedError, match="in cluster c already, since 2026-11-02 12:00:00"):
        import_trace(store, path, "swf", "c", nodes=shaped("1x2"), now=now)
    other = swf((1, 0, 5, 61, 2, 60), name="other.swf")
    with pytest.raises(ImportRefusedError, match="holds other facts already"):
        import_trace(store, other, "swf", "c", nodes=shaped("1x2"), now=now)
    import_trace(store, other, "swf", "d", nodes=shaped("1x2"), now=now)
    assert store.value("SELECT count(*) FROM job_run") == 2


def test_a_broken_line_leaves_the_store_as_it_was(store, write, now):
    path = write("log.swf", "1 0 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 1 1\n2 broken\n")
    with pytest.raises(ImportRefusedError, match="line 2"):
        import_trace(store, path, "swf", "c", nodes=shaped("1x2"), now=now)
    for table in ("job", "job_run", "node", "import_log"):
        assert store.value(f'SELECT count(*) FROM "{table}"') == 0


def test_a_trace_without_starts_is_refused_until_it_has_been_simulated(store, write, now):
    path = write(
        "itp.csv", "job_id,submission_time,duration,num_gpu\na,0,60,1\nb,1,30,1\nc,2,9,1\n"
    )
    with pytest.raises(ImportRefusedError, match="replayed first under a policy"):
        import_trace(store, path, "itp", "c", nodes=shaped("1x1"), now=now)
    import_trace(
        store,
        path,
        "itp",
        "c",
        nodes=shaped("1x1"),
        now=now,
        simulated={"a": SimulatedRun(0, 60, ("n0",)), "b": SimulatedRun(60, 90, ("n0",))},
    )
    runs = store.rows("SELECT job_id, start_at, end_at, source FROM job_run ORDER BY job_id")
    assert [(run["start_at"], run["end_at"]) for run in runs] == [
        (DEFAULT_ORIGIN, DEFAULT_ORIGIN.replace(minute=1)),
        (DEFAULT_ORIGIN.replace(minute=1), DEFAULT_ORIGIN.replace(minute=1, second=30)),
        (None, None),
    ]
    assert {run["source"] for run in runs} == {"trace:itp:simulated"}


def test_a_trace_that_names_no_nodes_wants_some(store, swf, now):
    with pytest.raises(ImportRefusedError, match="--nodes FILE or --shape NxG"):
        import_trace(store, swf((1, 0, 0, 60, 2, 60)), "swf", "c", now=now)
