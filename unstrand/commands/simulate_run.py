"""What `unstrand simulate` does, apart from its options: only it loads the compiler."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scheduler_advisor.engine import policy_text
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.hashes import VERSION
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.outcome import STATES, Outcome
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.replay_detail import detailed
from scheduler_advisor.replay_summary import migrations_of, summarised
from unstrand.commands.progress import working
from unstrand.commands.replay_source import ReplayInput, ReplaySource, replay_input
from unstrand.commands.result_file import write_result
from unstrand.errors import SettingsError

COLUMNS = (
    "job_id",
    "submit",
    "start",
    "end",
    "wait",
    "gpus",
    "nodes",
    "state",
    "starts",
    "preemptions",
    "migrations",
    "lost_s",
)


def simulate_to_files(
    source: ReplaySource,
    policy_name: str,
    changes: Mapping[str, str],
    out: Path | None,
    summary: Path | None,
) -> Iterator[str]:
    """Replay, write what was asked for, and yield lines for people."""
    began = time.process_time()
    policy = read_policy(policy_name, changes)
    found = replay_input(source, policy)
    read_s = time.process_time() - began
    yield from found.read.lines()
    driver = driver_of(found.read.jobs, policy)
    yield from driver.lines()
    compile_s = 0.0 if driver.plain else warm_up(policy)
    with working(f"replaying {found.read.kept:,} jobs"):
        outcome = simulate(found.read.jobs, found.cluster, policy)
    speed = {"read_s": read_s, "compile_s": compile_s, "engine_s": outcome.engine_s}
    document = _document(outcome, found, speed)
    if out is not None:
        write_result(out, rows(outcome))
    if summary is not None:
        document |= detailed(outcome)
        write_result(summary, json.dumps(document, indent=2) + "\n")
    wait = document["wait_s"]
    yield (
        f"{document['jobs']['done']:,} jobs done; wait mean {_told(wait['mean'])} s, "
        f"p50 {_told(wait['p50'])} s, p95 {_told(wait['p95'])} s; occupancy "
        f"{_percent(document['occupancy_ratio'])}"
    )


def read_policy(name: str, changes: Mapping[str, str]) -> Policy:
    """A preset, or a TOML file, with the changes applied."""
    if not name.endswith(".toml"):
        return policy_text.preset(name).with_values(changes)
    try:
        text = Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the policy {name} ({error}): check the path") from error
    return policy_text.from_toml(text).with_values(changes)


def warm_up(policy: Policy) -> float:
    """CPU seconds until the kernels are there: compiled once on this machine, loaded after that."""
    began = time.process_time()
    one = np.ones(1, dtype=np.int64)
    with working("loading the simulator; its first use on this machine compiles it"):
        # The one node has no leaf or rack that a policy could require.
        anywhere = policy.with_values({"topology.level": ""})
        simulate(Jobs.build(submit=one, run=one, gpus=one), Cluster.uniform(1, 1), anywhere)
    return time.process_time() - began


def rows(outcome: Outcome) -> str:
    """CSV of what became of each job, in the order of its index."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    jobs = outcome.jobs
    columns = zip(
        list(jobs.job_id),
        jobs.submit.tolist(),
        outcome.first_start.tolist(),
        outcome.end.tolist(),
        outcome.starts.tolist(),
        jobs.gpus.tolist(),
        outcome.state.tolist(),
        outcome.preemptions.tolist(),
        outcome.lost_s.tolist(),
        outcome.started.tolist(),
        migrations_of(outcome).tolist(),
        strict=True,
    )
    for job, row in enumerate(columns):
        name, submit, start, end, starts, gpus, state, stopped, lost, done, moved = row
        times = (start, end if done else "", start - submit) if starts else ("", "", "")
        nodes = "|".join(_names(outcome, job)) if starts else ""
        writer.writerow(
            [name, submit, *times, gpus, nodes, STATES[state], starts, stopped, moved, lost]
        )
    return text.getvalue()


def _names(outcome: Outcome, job: int) -> list[str]:
    names = outcome.cluster.names
    return list(dict.fromkeys(names[node] for node in outcome.nodes(job).tolist()))


def _document(outcome: Outcome, found: ReplayInput, speed: Mapping[str, float]) -> dict[str, Any]:
    return {
        **summarised(outcome, read=found.read),
        "remarks": list(found.read.remarks),
        "jobs_per_second": len(outcome.jobs) / max(outcome.engine_s, 1e-6),
        **speed,
        "policy": policy_text.to_toml(outcome.policy),
        "fleet": found.fleet,
        "seed": outcome.policy.seed,
        "engine_version": VERSION,
        "workload_hash": outcome.jobs.hash,
        "cluster_hash": outcome.cluster.hash,
        "policy_hash": outcome.policy.hash,
    }


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
