"""Sweeps: the same bytes wherever they run, lost workers made good, nothing run twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from scheduler_advisor.engine.errors import PolicyError, SweepError
from scheduler_advisor.engine.policy import Backfill, Placement
from scheduler_advisor.sweep import runners
from scheduler_advisor.sweep.cache import Cache
from scheduler_advisor.sweep.cells import read_cells
from scheduler_advisor.sweep.run import sweep
from scheduler_advisor.sweep.runners import Dask, Here, Pool, runner_named

NOW = datetime(2026, 11, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def expected(jobs, cluster, cells):
    return sweep(jobs, cluster, cells, Here())


def outcomes(results):
    return [(cell.name, cell.seed, result.outcome_hash, result.summary) for cell, result in results]


def test_cells_are_every_policy_with_every_seed(cells):
    assert [(cell.name, cell.seed) for cell in cells] == [
        (name, seed) for name in ("fifo", "easy", "deep", "anywhere") for seed in (1, 2)
    ]
    deep = next(cell.policy for cell in cells if cell.name == "deep")
    assert (deep.backfill, deep.backfill_depth) == (Backfill.EASY, 3)
    assert cells[-1].policy.placement is Placement.RANDOM


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("seeds = [1]", SweepError, r"no table \[policy.NAME\]"),
        ("policy = [", SweepError, "not TOML"),
        ("[policy.a]\n[jobs]", SweepError, "unknown key jobs"),
        ("seeds = []\n[policy.a]", SweepError, "seeds is no list"),
        ("[policy]\na = 1", SweepError, r"\[policy.a\] is no table"),
        ("[policy.a]\npreset = 'best'", PolicyError, "no preset best"),
        ("[policy.a]\ncolour = 1", PolicyError, "no key colour"),
    ],
)
def test_a_broken_list_of_policies_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        read_cells(text)


def test_results_come_in_the_order_of_the_cells_and_differ_by_policy(expected, cells):
    assert [cell for cell, _ in expected] == list(cells)
    hashes = {cell.name: result.outcome_hash for cell, result in expected}
    assert len({hashes["fifo"], hashes["easy"], hashes["deep"]}) >= 2
    assert len({r.outcome_hash for c, r in expected if c.name == "fifo"}) == 1


def test_a_pool_of_processes_gives_the_same_bytes(jobs, cluster, cells, expected):
    assert outcomes(sweep(jobs, cluster, cells, Pool(2))) == outcomes(expected)


def test_progress_is_told_for_every_cell_that_is_done(jobs, cluster, cells):
    heard = []
    sweep(
        jobs, cluster, cells[:3], Here(), progress=lambda done, total: heard.append((done, total))
    )
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.fixture
def many(cells):
    """Enough cells that some are left when the first is done."""
    (fifo, *_) = cells
    return [replace(fifo, policy=replace(fifo.policy, seed=seed)) for seed in range(60)]


@pytest.fixture
def pools(monkeypatch):
    """How many pools were made."""
    made = []
    make = runners.ProcessPoolExecutor

    def counting(*given, **named):
        made.append(1)
        return make(*given, **named)

    monkeypatch.setattr(runners, "ProcessPoolExecutor", counting)
    return made


def kill_workers():
    for worker in multiprocessing.active_children():
        worker.kill()


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_every_cell_still_runs_once(jobs, cluster, many, pools):
    def kill_once(done, total):
        if done == 1:
            kill_workers()

    results = sweep(jobs, cluster, many, Pool(2), progress=kill_once)
    assert [cell for cell, _ in results] == many
    assert len({result.outcome_hash for _, result in results}) == 1
    assert len(pools) == 2


@pytest.mark.slow
def test_workers_that_always_die_end_the_sweep_with_a_reason(jobs, cluster, many, pools):
    with pytest.raises(SweepError, match="workers died 3 times"):
        sweep(jobs, cluster, many, Pool(2), progress=lambda done, total: kill_workers())
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_cancelled_sweep_leaves_no_process_behind(jobs, cluster, many):
    def cancel(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(jobs, cluster, many, Pool(2), progress=cancel)
    assert multiprocessing.active_children() == []


def test_nothing_runs_twice(store, jobs, cluster, cells, expected):
    class Counting(Here):
        ran = 0

        def finished(self, jobs, cluster, cells):
            self.ran += len(cells)
            return super().finished(jobs, cluster, cells)

    def once(chosen):
        runner = Counting()
        cache = Cache(store, jobs.hash, cluster.hash)
        results = sweep(jobs, cluster, chosen, runner, cache=cache, clock=lambda: NOW)
        return runner.ran, outcomes(results)

    assert once(cells[:5]) == (5, outcomes(expected)[:5])
    assert once(cells) == (3, outcomes(expected))
    assert once([*cells, *cells]) == (0, outcomes(expected) * 2)
    other = Cache(store, jobs.hash, cluster.with_nodes(1).hash)
    assert other.get(cells[0]) is None


def test_a_sweep_that_broke_goes_on_from_what_it_had(store, jobs, cluster, cells):
    def fail(done, total):
        if done == 3:
            raise RuntimeError("the power went")

    def run(progress):
        cache = Cache(store, jobs.hash, cluster.hash)
        return sweep(
            jobs, cluster, cells, Here(), cache=cache, clock=lambda: NOW, progress=progress
        )

    with pytest.raises(RuntimeError):
        run(fail)
    heard = []
    results = run(lambda done, total: heard.append(done))
    assert heard[0] == 3
    assert [result.cached for _, result in results] == [True] * 3 + [False] * (len(cells) - 3)


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_bytes_though_a_worker_dies(jobs, cluster, many, expected):
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    # Dask asks NVML for its own dashboard, in this process, where other tests have a stub with sick
    # GPUs in its place.
    no_gpus = dask.config.set({"distributed.diagnostics.nvml": False})
    with (
        no_gpus,
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as local,
    ):
        address = local.scheduler_address.replace("tcp://", "dask://")
        runner = runner_named(address, cells=len(many), jobs=len(jobs))
        assert isinstance(runner, Dask)

        def kill_one(done, total):
            if done == 1:
                os.kill(local.workers[0].process.pid, signal.SIGKILL)

        results = sweep(jobs, cluster, many, runner, progress=kill_one)
    assert [cell for cell, _ in results] == many
    fifo = next(result for cell, result in expected if cell.name == "fifo")
    assert {result.outcome_hash for _, result in results} == {fifo.outcome_hash}


def test_a_dask_scheduler_that_is_not_there_is_named(jobs, cluster, cells):
    with pytest.raises(SweepError, match="no Dask scheduler answers at tcp"):
        sweep(jobs, cluster, cells, Dask("tcp://127.0.0.1:1", wait_s=1))


def test_the_executor_is_chosen_by_name_or_by_size():
    assert isinstance(runner_named(None, cells=8, jobs=100), Here)
    assert isinstance(runner_named(None, cells=8, jobs=1_000_000), Pool)
    assert isinstance(runner_named("process", cells=1, jobs=1), Pool)
    with pytest.raises(SweepError, match="no executor 'ray'"):
        runner_named("ray", cells=1, jobs=1)
