"""Four weeks of a plausible cluster from a seed: the same seed gives the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from collector.demo import planted, records, telemetry
from collector.demo.fleet import SINCE, UNTIL, seconds
from collector.demo.jobs import HOUR, DemoJob, DemoRun
from collector.demo.scheduler import DemoScheduler
from collector.demo.workload import ordinary_jobs
from collector.model import Fact

DEFAULT_SEED = 20261005
_FIRST, _LAST = seconds(SINCE), seconds(UNTIL)


@dataclass(frozen=True, slots=True)
class DemoFacts:
    """Column batches by table name, and the simulated runs that they were made from.

    ``faults``: whether the faults of `PLANTED` are in it.
    """

    tables: dict[str, dict[str, Any]]
    runs: tuple[DemoRun, ...]
    faults: bool

    def runs_of(self, key: str) -> list[DemoRun]:
        """The runs that are the planted fault ``key``, in the order of becoming eligible."""
        names = set(planted.PLANTED[key].jobs)
        return [run for run in self.runs if run.job.name in names]

    def held_gpu_hours(self, key: str) -> float:
        """GPU-hours inside the window that the jobs of the planted fault ``key`` held."""
        return sum(_held_s(run) for run in self.runs_of(key)) / HOUR


def generate(*, seed: int = DEFAULT_SEED, faults: bool = True) -> DemoFacts:
    """Facts of a demo cluster for 2026-10-05 to 2026-11-02 UTC.

    ``faults`` False: the same fleet with nothing planted, busy at all hours by jobs that fit.
    """
    runs = simulate(seed=seed, faults=faults)
    rng = np.random.default_rng([seed, 1])
    return DemoFacts(_tables(rng, runs, faults=faults), tuple(runs), faults)


def simulate(*, seed: int, faults: bool) -> list[DemoRun]:
    """The runs behind `generate`: whatever held a GPU or waited for one inside the window."""
    rng = np.random.default_rng([seed, 0])
    jobs = list(ordinary_jobs(rng, days=_LAST // (24 * HOUR), faults=faults))
    outages = list(planted.outages()) if faults else []
    if faults:
        jobs += planted.faulty_jobs()
    _number(jobs)
    scheduler = DemoScheduler(spread=faults, blackout=planted.blackout() if faults else None)
    runs = [run for run in scheduler.run(jobs, outages, _LAST) if _concerns_window(run)]
    if faults:
        for key in ("low_utilisation", "high_utilisation"):
            _settle_activity(runs, planted.PLANTED[key])
    return runs


def _number(jobs: list[DemoJob]) -> None:
    """Job ids in order of submission; a preemptor's follows on its victim's."""
    jobs.sort(key=lambda job: job.submit)
    number = 41_000
    for job in jobs:
        for numbered in (job, job.preemptor):
            if numbered is not None:
                number += 1
                numbered.job_id = str(number)


def _concerns_window(run: DemoRun) -> bool:
    return run.end is None or run.end > _FIRST


def _held_s(run: DemoRun) -> int:
    if run.start is None:
        return 0
    end = _LAST if run.end is None else run.end
    return max(0, min(end, _LAST) - max(run.start, _FIRST)) * run.job.gpus * len(run.placement)


def _settle_activity(runs: Sequence[DemoRun], fault: planted.Fault) -> None:
    """Move the runs' activity so that the team's mean over held time is the stated one."""
    assert fault.activity is not None
    jobs = {id(run.job): run.job for run in runs if run.job.account == fault.team}
    for _ in range(4):  # each clip leaves a smaller rest
        held = [(_held_s(run), run.job.activity) for run in runs if id(run.job) in jobs]
        mean = sum(s * a for s, a in held) / sum(s for s, _ in held)
        for job in jobs.values():
            job.activity = min(max(job.activity + fault.activity - mean, 0.02), 0.99)


def _tables(
    rng: np.random.Generator, runs: Sequence[DemoRun], *, faults: bool
) -> dict[str, dict[str, Any]]:
    facts: list[Iterable[Fact]] = [
        records.nodes(), records.jobs(runs), records.job_runs(runs), records.allocations(runs),
        records.fact_windows(faults=faults),
    ]  # fmt: skip
    if faults:
        facts += [records.faulty_records(), records.checkpoint_marks(runs)]
    by_table: dict[str, list[Fact]] = {}
    for kind in facts:
        for fact in kind:
            by_table.setdefault(fact.table, []).append(fact)
    return {
        **{table: _columns(rows) for table, rows in by_table.items()},
        **records.device_columns(),
        "sample": telemetry.samples(rng, runs, faults=faults),
        "host_sample": telemetry.host_samples(runs, faults=faults),
    }


def _columns(facts: Sequence[Fact]) -> dict[str, Any]:
    names = [field.name for field in fields(facts[0])]
    return {name: [getattr(fact, name) for fact in facts] for name in names}
