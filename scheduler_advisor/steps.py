"""From a measured window to a change worth making: nine steps, each usable alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from scheduler_advisor.calibration.calibrate import Calibration
from scheduler_advisor.calibration.calibrate import calibrate as calibrated
from scheduler_advisor.calibration.in_force import preempts, stored_settings
from scheduler_advisor.calibration.network import Network, network_of
from scheduler_advisor.calibration.rules import caps_of
from scheduler_advisor.diagnosis.aims import aims
from scheduler_advisor.diagnosis.diagnose import Diagnosis
from scheduler_advisor.diagnosis.diagnose import diagnose as diagnosed
from scheduler_advisor.diagnosis.seen import Seen
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.followup.shift import Withdrawn, shifts, workload_of
from scheduler_advisor.goals import Goals
from scheduler_advisor.handover.handover import target_of
from scheduler_advisor.measurements.repeats import Repeat, varying_repeats
from scheduler_advisor.not_resumable import not_resumable
from scheduler_advisor.past import Past, past_of
from scheduler_advisor.readers.communication import read_communication
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.readers.seen import limited, read_seen, resumable
from scheduler_advisor.readers.store import read_history
from scheduler_advisor.replayed import Replayed
from scheduler_advisor.search.bench import bench_of
from scheduler_advisor.search.search import Found
from scheduler_advisor.search.search import search as searched
from scheduler_advisor.window import Window
from scheduler_advisor.workers import Inline, Processes, Workers, never

if TYPE_CHECKING:
    from collector.store import Store

LEAST_JOBS = 50  # of the window: with fewer, one job is 2% of everything and chance decides
LEAST_DAYS = 7  # nights and weekends are a part of every scheduler's life
SMALL = 400_000  # jobs times replays below which processes cost more than they bring

# One row = a replayed recommendation of the newest report whose window ended earlier.
_LAST = """
SELECT c.subject, r.since, r.until FROM recommendation c
JOIN advice_report r ON r.report_id = c.report_id
WHERE c.kind = 'policy_change' AND c.cluster = $1 AND r.until < $2
QUALIFY r.ts = max(r.ts) OVER () ORDER BY c.rank
"""

Progress = Callable[[str, int, int], None]


def _silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How a long run is watched and stopped."""

    progress: Progress = _silent
    cancelled: Callable[[], bool] = never
    workers: Workers | None = None
    thorough: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """Step 1: the past, what was seen, and the scheduler's settings.

    ``network``: what looser placements cost here, where repeated runs show it.
    """

    past: Past
    seen: Seen
    settings: dict[str, str]
    network: Network | None = None


def replay_advice(
    store: Store, window: Window, goals: Goals, cluster: str, watch: Watch | None = None
) -> Replayed:
    """What a replay of ``window`` advises for ``cluster``; nothing is written.

    Steps 6 to 9 (price, explain, hand over, follow up) are the report's: see
    `advice.from_replay` and `followup`. Raises CancelledError when ``watch`` says so.
    """
    watch = watch or Watch()
    began = time.process_time()
    loaded = load(store, window, cluster)
    if isinstance(loaded, Replayed):
        return loaded
    # Without real starts nothing was observed that could be diagnosed.
    diagnosis = None if loaded.past.wait_s is None else diagnose(loaded, goals)
    with _working(loaded.past, watch) as working:
        calibration = calibrate(loaded, working)
        found = search_and_bound(calibration, goals, working, diagnosis)
        assert working.workers is not None
        unable = not_resumable(calibration.past, found.best, working.workers)
    return Replayed(
        cluster=cluster, calibration=calibration, diagnosis=diagnosis, found=found,
        target=target_of(calibration.past.cluster, loaded.settings),
        not_resumable=unable,
        withdrawn=withdrawn(store, loaded.past, {each.name for each in found.best}),
        cpu_s=time.process_time() - began,
    )  # fmt: skip


def load(store: Store, window: Window, cluster: str) -> Loaded | Replayed:
    """Step 1: jobs, nodes, placements and settings; too little of them is a result of its own."""
    if window.duration_s < LEAST_DAYS * 86_400:
        return _withheld(cluster, "short_window", days=window.duration_s / 86_400)
    settings = stored_settings(store, cluster, window.until)
    try:
        history = read_history(
            store, cluster, window.since, window.until, preempts=preempts(settings)
        )
    except ReaderError as error:
        return _withheld(cluster, "no_history", error=str(error))
    past = past_of(
        history.read, history.cluster,
        since=int(window.since.timestamp()) - history.origin_s,
        until=int(window.until.timestamp()) - history.origin_s,
        origin_s=history.origin_s, name=cluster,
    )  # fmt: skip
    judged = int(past.judged.sum())
    if judged < LEAST_JOBS:
        return _withheld(cluster, "few_jobs", jobs=judged, least=LEAST_JOBS)
    if _simulated(store, window, cluster):
        past = replace(past, wait_s=None, remarks=(*past.remarks, "the starts are a replay's"))
    able = resumable(store, cluster, past.jobs)
    known = read_communication(store, cluster, window.until, past.cluster, Policy())
    past = replace(
        past,
        jobs=past.jobs.changed(
            preemptible=able.astype(np.int64), comm_milli=known.by_traffic(past.jobs.job_id)
        ),
        by_limit=limited(store, cluster, past.jobs),
    )
    span = (window.since, window.until)
    with store.work() as work:
        repeats = varying_repeats(work, window, cluster)
    topology = _topology_ratio(repeats, past)
    seen = read_seen(store, cluster, span, past.jobs, past.cluster, topology)
    return Loaded(past, seen, settings, network_of(past, seen, repeats))


def diagnose(loaded: Loaded, goals: Goals) -> Diagnosis:
    """Step 2: what holds the cluster back, from what was measured."""
    return diagnosed(
        bench_of(loaded.past, goals), loaded.seen, caps_of(loaded.settings, loaded.past)
    )


def calibrate(loaded: Loaded, watch: Watch | None = None) -> Calibration:
    """Step 3: the policy in force, and how well its replay repeats what happened."""
    watch = watch or Watch()
    return calibrated(
        loaded.past, loaded.settings, network=loaded.network, workers=watch.workers,
        progress=lambda done, total: watch.progress("calibrate", done, total),
        cancelled=watch.cancelled,
    )  # fmt: skip


def search_and_bound(
    calibration: Calibration,
    goals: Goals,
    watch: Watch | None = None,
    diagnosis: Diagnosis | None = None,
) -> Found:
    """Steps 4 and 5: try the catalogue with equal jobs and seeds; find where it stops paying.

    What answers a cause that the diagnosis did not find is left out.
    """
    watch = watch or Watch()
    wanted = aims(diagnosis, calibration.past, goals) if diagnosis else frozenset()
    return searched(
        calibration.past, calibration.policy, goals, aims=wanted,
        input_error=calibration.input_error, thorough=watch.thorough, workers=watch.workers,
        progress=watch.progress, cancelled=watch.cancelled,
    )  # fmt: skip


def withdrawn(store: Store, past: Past, still: set[str]) -> tuple[Withdrawn, ...]:
    """Step 9, before: advice of the newest report that this window no longer bears out, and what
    has shifted since its window (nothing: it merely no longer pays)."""
    rows = store.rows(_LAST, [past.name, datetime.fromtimestamp(past.origin_s + past.until, UTC)])
    gone = [row for row in rows if row["subject"] not in still]
    if not gone:
        return ()
    before = load(store, Window(gone[0]["since"], gone[0]["until"], "UTC"), past.name)
    if isinstance(before, Replayed):
        return ()
    moved = tuple(shifts(workload_of(before.past), workload_of(past)))
    return tuple(Withdrawn(row["subject"], moved) for row in gone)


def clusters_of(store: Store, window: Window) -> list[str]:
    """Clusters with a scheduler's facts in the window."""
    rows = store.rows(
        "SELECT DISTINCT cluster FROM fact_window WHERE kind = 'scheduler' AND since < ? "
        "AND until > ? ORDER BY cluster",
        [window.until, window.since],
    )
    return [str(row["cluster"]) for row in rows]


def replay_all(
    store: Store,
    window: Window,
    goals: Goals,
    cluster: str | None = None,
    watch: Watch | None = None,
) -> Sequence[Replayed]:
    """`replay_advice` for the cluster, or for every one in the window."""
    names = [cluster] if cluster is not None else clusters_of(store, window)
    return [replay_advice(store, window, goals, name, watch) for name in names]


@contextmanager
def _working(past: Past, watch: Watch) -> Iterator[Watch]:
    """The watch with workers: those given, else here, or processes that end with the block."""
    if watch.workers is not None or len(past.jobs) * 20 < SMALL:
        yield replace(watch, workers=watch.workers or Inline())
        return
    with Processes(2) as processes:
        yield replace(watch, workers=processes)


def _simulated(store: Store, window: Window, cluster: str) -> bool:
    """Whether the starts in the window are those of a replay and no facts."""
    return bool(
        store.value(
            "SELECT count(*) FROM fact_window WHERE cluster = ? AND source LIKE '%:simulated' "
            "AND since < ? AND until > ?",
            [cluster, window.until, window.since],
        )
    )


def _withheld(cluster: str, reason: str, **params: float | str) -> Replayed:
    return Replayed(cluster=cluster, withheld=reason, params=tuple(params.items()))


def _topology_ratio(repeats: Sequence[Repeat], past: Past) -> float | None:
    """GPU time of repeated jobs lost to looser placements, over all held; None: none repeated."""
    held = float((past.gpus_held * past.jobs.run).sum()) / 3600
    excess = sum(each.excess_gpu_hours for each in repeats if each.placement_explains)
    return excess / held if held else None
