"""Measures beside the classes, with what they rest on: hangs, lost work, untouched memory, MIG."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.ledger import build, ensure_built
from analytics.ledger.geometry import Instance, stranded_slices
from analytics.ledger.settings import put_setting
from analytics.window import EPOCH


def samples(site, run_id, gpus, hours=1, **values):
    """Samples by the minute of the run's GPUs on n1, with these columns."""
    ticks = range(1, int(hours * 60) + 1)
    rows = [(gpu, tick) for gpu in range(gpus) for tick in ticks]
    columns = {
        "cluster": "c", "node": "n1", "run_id": run_id, "step_s": 60.0, "source": "test",
        "util_ratio": 1.0, **values,
    }  # fmt: skip
    start = site.window.since
    with site.store.work() as work:
        work.append(
            "sample",
            {
                **{
                    name: [v(g) if callable(v) else v for g, _ in rows]
                    for name, v in columns.items()
                },
                "gpu_uuid": [f"n1-{run_id}-{gpu}" for gpu, _ in rows],
                "ts": [start + timedelta(minutes=tick) for _, tick in rows],
            },
        )


def overlay(site, name):
    return site.store.value(f"SELECT CAST(sum({name}) AS BIGINT) FROM ledger_hour") / 3.6e9


def evidence(site):
    rows = site.store.rows("SELECT run_id, class, evidence, text FROM ledger_evidence ORDER BY ALL")
    return [(row["run_id"], row["class"], row["evidence"]) for row in rows]


def test_busy_gpus_at_their_idle_floor_are_suspected_to_hang(site):
    run = site.node(model="H100").known().run(gpus=4, until=1)
    samples(site, run, 4, power_mw=130_000.0, sm_active_ratio=0.1)
    site.built()
    assert overlay(site, "suspect_hang") == pytest.approx(4.0)
    assert evidence(site) == [(run, "suspect_hang", "idle_floor")]
    assert site.hours_of()["used"] == 4.0  # an overlay, never a class


@pytest.mark.parametrize(
    "values",
    [
        {"power_mw": 600_000.0, "sm_active_ratio": 0.1},
        {"power_mw": 130_000.0, "sm_active_ratio": 0.8},
        {"power_mw": 130_000.0},
        {"power_mw": 130_000.0, "sm_active_ratio": 0.1, "util_ratio": 0.3},
    ],
    ids=["draws power", "its SMs work", "one intensity is not enough", "not busy"],
)
def test_work_is_not_suspected(site, values):
    run = site.node(model="H100").known().run(gpus=2, until=1)
    samples(site, run, 2, **values)
    site.built()
    assert overlay(site, "suspect_hang") == 0
    assert evidence(site) == []


def test_link_traffic_clears_and_silence_of_the_links_convicts(site):
    run = site.node(model="H100").known().run(gpus=2, until=1)
    moving = iter(range(10**6))
    samples(
        site, run, 2, power_mw=130_000.0,
        nvlink_tx_bytes=lambda gpu: 5e9 if gpu else 1e9 * next(moving),
    )  # fmt: skip
    site.built()
    # Power and links at their floor on GPU 1 from its second sample on; GPU 0 moves 1 GB a minute.
    assert overlay(site, "suspect_hang") == pytest.approx(59 / 60)


def test_a_gpu_of_a_gang_without_a_process_is_suspected(site):
    run = site.node().known().run(gpus=4, until=1)
    samples(site, run, 4, util_ratio=0.5, processes=lambda gpu: 0 if gpu == 3 else 1)
    site.built()
    assert overlay(site, "suspect_hang") == pytest.approx(1.0)
    assert evidence(site) == [(run, "suspect_hang", "no_process")]


def unheld(site, memory, node="n1", **more):
    """Samples by the minute without a run, of devices -> used MiB of 80,000."""
    ticks = [(unit, tick) for unit in memory for tick in range(1, 61)]
    columns = {
        "gpu_uuid": [unit for unit, _ in ticks],
        "mem_used_mib": [float(memory[unit]) for unit, _ in ticks],
        "ts": [site.window.since + timedelta(minutes=tick) for _, tick in ticks],
    }
    fixed = {"cluster": "c", "node": node, "step_s": 60.0, "source": "test", "util_ratio": 0.0}
    fixed |= {"mem_total_mib": 80_000.0, **more}
    with site.store.work() as work:
        work.append("sample", columns | {name: [v] * len(ticks) for name, v in fixed.items()})


def test_memory_that_nobody_holds_is_idle_too_whatever_the_class(site):
    site.node(gpus=4).known(until=0.5)
    unheld(site, {"a": 0, "b": 20_000, "c": 80_000})
    site.built()
    assert site.hours_of() == {"free": 2.0, "unknown": 2.0}
    assert overlay(site, "vram_idle") == pytest.approx(1.0 + 0.75)  # the fourth was not measured


def test_untagged_samples_of_held_gpus_are_not_taken_for_idle_ones(site):
    site.node(gpus=2).known().run(gpus=2, until=0.75)
    unheld(site, {"a": 0, "b": 0})
    site.built()
    # Both are sampled without a run for the whole hour, half a GPU-hour of it was not held.
    assert overlay(site, "vram_idle") == pytest.approx(2 * 0.75)  # of the run that holds them all


def test_a_gpu_that_is_held_by_name_for_half_an_hour_is_idle_for_the_other_half(site):
    site.node(gpus=2).known().run(uuids=["a"], until=0.5)
    unheld(site, {"a": 40_000, "b": 0})
    site.built()
    held = site.store.value(
        "SELECT CAST(sum(vram_idle) AS BIGINT) FROM ledger_hour WHERE run_key IS NOT NULL"
    )
    assert held / 3.6e9 == pytest.approx(0.5 * 0.5)
    assert overlay(site, "vram_idle") == pytest.approx(0.5 + 1.0)


def test_idle_memory_outlives_its_samples(site):
    site.node(gpus=4).known().run(gpus=1, until=1)
    unheld(site, {"a": 0, "b": 20_000})
    site.built()
    before = site.ledger_rows()
    assert overlay(site, "vram_idle") == pytest.approx(1.75)
    with site.store.work() as work:
        work.execute("DELETE FROM sample")
    build(site.store, "c", site.window)
    assert site.ledger_rows() == before


def cut_up(site, gpu, names, node="n1"):
    """MIG instances of a board: name -> compute slices, one after the other."""
    with site.store.work() as work:
        for place, (name, slices) in enumerate(names.items()):
            work.append(
                "mig_instance",
                {
                    "cluster": ["c"], "node": [node], "gpu_uuid": [gpu], "mig_uuid": [name],
                    "gpu_slices": [slices], "placement_start": [place * 4], "valid_from": [EPOCH],
                    "source": ["test"],
                },
            )  # fmt: skip


def rows_by_gpu(site, *columns):
    rows = site.store.rows(
        f"SELECT gpu_uuid, {', '.join(columns)} FROM ledger_hour WHERE run_key IS NULL "
        "ORDER BY gpu_uuid NULLS FIRST"
    )
    return {row["gpu_uuid"]: tuple(row[c] / 3.6e9 for c in columns) for row in rows}


def test_a_mig_board_that_nobody_holds_has_a_row_of_its_own(site):
    site.node(gpus=4).known()
    cut_up(site, "GPU-a", {"MIG-1": 3, "MIG-2": 3})
    unheld(site, {"MIG-1": 80_000, "MIG-2": 0, "b": 0})
    with site.store.work() as work:
        work.execute(
            "UPDATE sample SET mig_uuid = gpu_uuid, gpu_uuid = 'GPU-a' WHERE gpu_uuid LIKE 'MIG%'"
        )
    site.built()
    assert site.hours_of() == {"free": 4.0}
    found = rows_by_gpu(site, "free", "vram_idle")
    assert found[None] == (3.0, 1.0)
    # The second instance is three of seven slices, and nobody touches its memory.
    assert found["GPU-a"] == (1.0, pytest.approx(3 / 7))


def test_a_mig_board_is_unassigned_before_and_after_a_pod_holds_a_slice(site):
    site.node(gpus=2, model="A100-40").known()
    cut_up(site, "GPU-a", {"MIG-1": 3, "MIG-2": 3})
    site.run(uuids=["GPU-a"], mig="MIG-1", share=(3, 7), since=0.5, until=1)
    site.built()
    found = rows_by_gpu(site, "free", "stranded_shape")
    # Beside a 3g instance another 3g fits, and one of the seven slices stays without memory.
    assert found["GPU-a"] == (pytest.approx(0.5 + 0.5 * 3 / 7), pytest.approx(0.5 / 7))
    assert found[None] == (1.0, 0.0)
    assert site.hours_of()["allocated_unmeasured"] == pytest.approx(0.5 * 3 / 7)


def test_a_mig_board_is_not_among_the_gpus_that_a_gang_waits_for(site):
    site.node(gpus=2).known().wait(2, until=1).run(gpus=1, until=1)
    cut_up(site, "GPU-a", {"MIG-1": 3})
    site.built()
    # One GPU is left, and it is the board: what the queue claimed of the node stands on its row.
    assert rows_by_gpu(site, "gang_wait", "free") == {"GPU-a": (1.0, 0.0)}


def test_memory_that_nobody_touched_is_shown_beside(site):
    run = site.node().known().run(gpus=2, until=1)
    samples(
        site, run, 2, mem_total_mib=80_000.0, mem_used_mib=lambda gpu: 60_000.0 if gpu else 20_000.0
    )
    site.built()
    assert overlay(site, "vram_idle") == pytest.approx(0.75 + 0.25)


def preempted(site, name, until, marks=(), labels=None):
    """A one-GPU run of job ``name`` that is preempted, active all the time."""
    run = site.run(gpus=1, until=until, state="PREEMPTED", util=1.0, run_id=name)
    for mark in marks:
        site.checkpoint(mark, run)
    with site.store.work() as work:
        work.append(
            "job",
            {
                "cluster": ["c"], "job_id": [f"j-{name}"], "name": [name], "account": ["lab"],
                "submit_at": [site.window.since], "labels": [labels], "source": ["test"],
            },
        )  # fmt: skip
    return run


def test_a_declared_interval_tells_what_a_preempted_run_lost(site):
    site.node(gpus=1).known(until=4).hours = 4
    with site.store.work() as work:
        put_setting(work, "checkpoint_interval_s", 3600, since=EPOCH, actor="test")
    run = preempted(site, "train-1", 3.5)
    site.built()
    assert site.hours_of()["lost"] == pytest.approx(0.5)
    assert evidence(site) == [(run, "lost", "declared")]


def test_the_job_itself_and_its_class_come_before_the_cluster(site):
    site.node(gpus=2).known(until=4).hours = 4
    with site.store.work() as work:
        put_setting(work, "checkpoint_interval_s", 3600, since=EPOCH, actor="test")
        work.append(
            "checkpoint_interval",
            {
                "cluster": ["c"], "account": ["lab"], "job_name": ["train-7"],
                "interval_s": [2 * 3600.0], "effective_from": [EPOCH], "source": ["test"],
            },
        )  # fmt: skip
    preempted(site, "train-1", 3.5)
    preempted(site, "other", 3.5, labels='{"checkpoint_interval_s": 4000}')
    site.built()
    lost = site.store.rows(
        "SELECT run_id, CAST(sum(lost) AS BIGINT) AS us FROM ledger_hour JOIN ledger_run "
        "USING (run_key) GROUP BY ALL ORDER BY run_id"
    )
    assert [row["us"] for row in lost] == [600_000_000, 5400_000_000]


def test_an_interval_is_learnt_from_jobs_alike_and_never_from_others(site):
    site.node(gpus=3).known(until=4).hours = 4
    site.run(gpus=1, until=4, util=1.0, run_id="train-1")
    with site.store.work() as work:
        work.append(
            "job",
            {
                "cluster": ["c"], "job_id": ["j-train-1"], "name": ["train-1"], "account": ["lab"],
                "submit_at": [site.window.since], "source": ["test"],
            },
        )  # fmt: skip
    for hour in (0.5, 1.0, 1.5, 2.0):
        site.checkpoint(hour, "train-1")
    alike = preempted(site, "train-2", 3.25)
    other = preempted(site, "infer", 3.25)
    site.built()
    assert site.hours_of()["lost"] == pytest.approx(0.25)
    assert set(evidence(site)) == {
        (alike, "lost", "learnt"), (other, "possibly_lost", "none"),
    }  # fmt: skip


def test_a_later_mark_of_a_job_alike_makes_the_hour_stale(site):
    site.node(gpus=2).known(until=4).hours = 4
    preempted(site, "train-2", 3.25)
    site.built()
    assert site.refreshed() == 0
    with site.store.work() as work:
        work.append(
            "checkpoint_interval",
            {
                "cluster": ["c"], "account": [None], "job_name": [None], "interval_s": [1800.0],
                "effective_from": [EPOCH], "source": ["test"],
            },
        )  # fmt: skip
    assert ensure_built(site.store, site.window) == 4
    assert site.hours_of()["lost"] == pytest.approx(0.25)


def test_slices_that_no_profile_can_use():
    three = [Instance(3, 0b00001111), Instance(3, 0b11110000)]
    assert stranded_slices(7, three) == 1
    assert stranded_slices(7, [Instance(4, 0b00001111), Instance(3, 0b11110000)]) == 0
    assert stranded_slices(7, [Instance(1, 0b00000001)]) == 0
    # 1g instances on every other memory slice, doubled: four of them take all memory.
    doubled = [Instance(1, 0b11 << start) for start in (0, 2, 4, 6)]
    assert stranded_slices(7, doubled) == 3
    assert stranded_slices(4, [Instance(2, 0b0011)]) == 0


def test_a_mig_slice_beside_two_3g_instances_is_stranded_by_them(site):
    gpu = "GPU-a"
    site.node(gpus=1, model="A100-40").known()
    with site.store.work() as work:
        board = {"cluster": ["c"], "gpu_uuid": [gpu], "source": ["test"]}
        work.append("device", {**board, "mem_total_mib": [40_960], "first_seen_at": [EPOCH]})
        for place, name in ((0, "MIG-a"), (4, "MIG-b")):
            work.append(
                "mig_instance",
                {
                    **board, "node": ["n1"], "mig_uuid": [name], "profile": ["3g.20gb"],
                    "gpu_slices": [3], "mem_mib": [20_096], "placement_start": [place],
                    "valid_from": [EPOCH],
                },
            )  # fmt: skip
    runs = [
        site.run(uuids=[gpu], mig=name, share=(3, 7), until=1, run_id=f"r-{name}")
        for name in ("MIG-a", "MIG-b")
    ]
    site.built()
    hours = site.hours_of()
    assert hours["stranded_shape"] == pytest.approx(1 / 7)
    assert "free" not in hours
    blamed = site.store.rows(
        "SELECT run_id, rule, gpu_us FROM ledger_cause JOIN ledger_run USING (run_key) "
        "ORDER BY run_id"
    )
    assert [(row["run_id"], row["rule"]) for row in blamed] == [
        (run, "mig-geometry") for run in sorted(runs)
    ]
    assert sum(row["gpu_us"] for row in blamed) == round(3.6e9 / 7)
