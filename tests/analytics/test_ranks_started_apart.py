"""Ranks of a gang that started apart: how long the others wait, and what the evidence names."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.ledger import build
from analytics.ledger.settings import put_setting
from analytics.reports.evidence import evidence_report
from analytics.window import EPOCH, Window


def ranks(site, run, starts, *, util=0.0, hours=None, node="n1", processes=True, **values):
    """GPUs of a run, sampled by the minute; ``starts`` = when the process of each began (hours)."""
    until = site.hours if hours is None else hours
    begin, sample, process = site.window.since, [], []
    for gpu, start in enumerate(starts):
        unit = f"{node}-gpu{gpu}"
        for tick in range(1, int(until * 60) + 1):
            ts, runs = begin + timedelta(minutes=tick), tick > start * 60
            busy = util(gpu, tick / 60) if callable(util) else util
            sample.append((unit, ts, busy if runs else 0.0, int(runs)))
            if runs:
                process.append((unit, ts, begin + timedelta(hours=start), 100 + gpu))
    fixed = {"cluster": "c", "node": node, "run_id": run, "source": "test"}

    def columns(rows, names, **more):
        found = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        return found | {name: [value] * len(rows) for name, value in (fixed | more).items()}

    with site.store.work() as work:
        names = ("gpu_uuid", "ts", "util_ratio", "processes")
        work.append("sample", columns(sample, names, step_s=60.0, **values))
        if processes:
            names = ("gpu_uuid", "ts", "started_at", "pid")
            work.append("process_sample", columns(process, names))


def hang(site):
    return site.store.value("SELECT CAST(sum(suspect_hang) AS BIGINT) FROM ledger_hour") / 3.6e9


def kinds(site):
    rows = evidence_report(site.store, site.window).rows
    return {row["evidence"]: float(row["gpu_hours"]) for row in rows}


@pytest.fixture
def gang(site):
    return site.node(gpus=4).known().run(gpus=4, until=1)


def test_ranks_wait_from_the_first_start_to_the_last(site, gang):
    ranks(site, gang, [0.1, 0.1, 0.1, 0.75])
    site.built()
    # Three that run and the one that is held without a process, over 39 minutes.
    assert kinds(site) == {"started_apart": pytest.approx(4 * 0.65)}
    assert hang(site) == pytest.approx(4 * 0.65)


def test_the_evidence_names_the_late_rank_how_late_it_was_and_where_to_look(site, gang):
    ranks(site, gang, [0.1, 0.1, 0.1, 0.75])
    site.built()
    (row,) = evidence_report(site.store, site.window).rows
    assert (row["job"], row["class"], row["run_id"]) == (f"j-{gang}", "suspect_hang", gang)
    assert "n1-gpu3 on n1 39 min later" in row["text"]
    assert "2026-10-05 00:06" in row["text"]
    assert "look at what the last ones waited for" in row["text"]
    assert "n1-gpu1" not in row["text"]


@pytest.mark.parametrize("late", [0.1, 0.26], ids=["together", "within ten minutes"])
def test_ranks_that_start_within_the_gap_are_not_suspected(site, gang, late):
    ranks(site, gang, [0.1, 0.1, 0.1, late])
    site.built()
    assert hang(site) == 0


def test_a_gpu_that_works_waits_for_nobody(site, gang):
    # Two steps, one after the other, in one allocation: each draws power while it runs.
    ranks(site, gang, [0.0, 0.5], util=1.0, sm_active_ratio=0.8)
    site.built()
    # Only the second GPU, held for half an hour before its process began, waits.
    assert hang(site) == pytest.approx(0.0)


def test_spinning_at_the_idle_floor_is_counted_once(site):
    run = site.node(gpus=2, model="H100").known().run(gpus=2, until=1)
    ranks(site, run, [0.0, 0.5], util=1.0, power_mw=130_000.0, sm_active_ratio=0.1)
    site.built()
    # Both spin whenever they run (1.0 + 0.5); GPU 1 has no process for the first half hour.
    assert hang(site) == pytest.approx(2.0)
    assert kinds(site) == {"idle_floor": pytest.approx(1.5), "started_apart": pytest.approx(0.5)}


def test_the_gap_is_a_setting_and_zero_turns_it_off(site, gang):
    with site.store.work() as work:
        put_setting(work, "hang_start_gap_s", 0, since=EPOCH, actor="test")
    ranks(site, gang, [0.1, 0.1, 0.1, 0.75])
    site.built()
    assert hang(site) == 0


def test_hours_one_by_one_and_at_once_suspect_the_same(site):
    site.hours = 3
    run = site.node(gpus=2).known().run(gpus=2, until=3)
    ranks(site, run, [0.5, 2.25])
    site.save()
    for hour in range(3):
        since = site.window.since + timedelta(hours=hour)
        build(site.store, "c", Window(since, since + timedelta(hours=1)))
    one = (hang(site), kinds(site))
    build(site.store, "c", site.window)
    assert (hang(site), kinds(site)) == one
    # Hours 1 and 2: GPU 1 has no process while GPU 0 has (0:00-1:00 and 1:00-2:00); then both wait.
    assert one[1] == {"no_process": pytest.approx(2.0), "started_apart": pytest.approx(0.5)}


def test_what_was_seen_outlives_the_samples(site, gang):
    ranks(site, gang, [0.1, 0.1, 0.1, 0.75])
    site.built()
    before = (hang(site), evidence_report(site.store, site.window).rows)
    with site.store.work() as work:
        work.execute("DELETE FROM sample")
        work.execute("DELETE FROM process_sample")
    build(site.store, "c", site.window)
    assert (hang(site), evidence_report(site.store, site.window).rows) == before
