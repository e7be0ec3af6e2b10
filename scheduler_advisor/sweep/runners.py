"""Where cells run: in this process, in a pool of processes, or on a Dask cluster by address."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import Any, Protocol

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import SweepError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.sweep.cells import Cell
from scheduler_advisor.sweep.replay import Replayed, replay

_ATTEMPTS = 3

Finished = Iterator[tuple[Cell, Replayed]]


class Runner(Protocol):
    """A place that replays cells and hands them over as they finish, in any order."""

    def finished(self, jobs: Jobs, cluster: Cluster, cells: Sequence[Cell]) -> Finished:
        """Every cell once. Closing the iterator early stops what has not begun."""


class Here:
    """In this process, one after another."""

    def finished(self, jobs: Jobs, cluster: Cluster, cells: Sequence[Cell]) -> Finished:
        for cell in cells:
            yield cell, replay(jobs, cluster, cell)


class Pool:
    """In worker processes on this machine. A pool that lost a worker is made anew for what is left,
    twice; then the sweep is given up."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers

    def finished(self, jobs: Jobs, cluster: Cluster, cells: Sequence[Cell]) -> Finished:
        left = list(cells)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                for cell, done in self._once(jobs, cluster, tuple(left)):
                    left.remove(cell)
                    yield cell, done
                return
            except BrokenProcessPool as error:
                if attempt == _ATTEMPTS:
                    raise SweepError(
                        f"sweep: workers died {_ATTEMPTS} times with {len(left)} cells left, as "
                        "they do when memory runs out: use fewer workers or a shorter window"
                    ) from error

    def _once(self, jobs: Jobs, cluster: Cluster, cells: Sequence[Cell]) -> Finished:
        pool = ProcessPoolExecutor(
            self._workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_hold,
            initargs=(jobs, cluster),
        )
        try:
            waiting: dict[Future[Replayed], Cell] = {
                pool.submit(_replay_held, cell): cell for cell in cells
            }
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_held: dict[str, tuple[Jobs, Cluster]] = {}


def _hold(jobs: Jobs, cluster: Cluster) -> None:
    """Keep the workload in a worker, so that it travels once and not with every cell."""
    _held["input"] = (jobs, cluster)


def _replay_held(cell: Cell) -> Replayed:
    jobs, cluster = _held["input"]
    return replay(jobs, cluster, cell)


class Dask:
    """On a Dask cluster; a lost worker's cells are run again on another one."""

    def __init__(self, address: str, wait_s: float = 10) -> None:
        self._address = address
        self._wait_s = wait_s

    def finished(self, jobs: Jobs, cluster: Cluster, cells: Sequence[Cell]) -> Finished:
        try:
            distributed: Any = import_module("distributed")  # an extra, and untyped
        except ImportError as error:
            raise SweepError(
                "sweep: Dask is not installed: pip install 'unstrand[dask]'"
            ) from error
        try:
            client = distributed.Client(self._address, timeout=self._wait_s, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SweepError(
                f"sweep: no Dask scheduler answers at {self._address} ({error}): start one with "
                "`dask scheduler`, or use --executor process"
            ) from error
        with client:
            held = client.scatter([jobs, cluster], broadcast=True, hash=False)
            waiting = {
                client.submit(replay, *held, cell, pure=False, retries=_ATTEMPTS): cell
                for cell in cells
            }
            try:
                for future in distributed.as_completed(list(waiting), loop=client.loop):
                    yield waiting.pop(future), future.result()
            finally:
                client.cancel(list(waiting), force=True)


def runner_named(text: str | None, cells: int, jobs: int) -> Runner:
    """``process``, ``here``, ``dask://HOST:PORT``, or by size where nothing is said."""
    if text is None:
        return Here() if cells * jobs < 2_000_000 or cells < 2 else Pool()
    if text == "here":
        return Here()
    if text == "process":
        return Pool()
    if text.startswith("dask://"):
        return Dask("tcp://" + text.removeprefix("dask://"))
    raise SweepError(f"sweep: no executor {text!r}; write here, process or dask://HOST:PORT")
