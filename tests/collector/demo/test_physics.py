"""What must hold for any cluster, whatever the seed: the demo is not allowed to cheat."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from collector.demo import PLANTED, SINCE, UNTIL, generate, simulate
from collector.demo.fleet import FLEET, NODE_INDEX, seconds

SEEDS = [(20261005, True), (1, True), (2, True), (3, False)]


@pytest.fixture(scope="module", params=SEEDS, ids=lambda p: f"seed {p[0]}, faults {p[1]}")
def runs(request):
    seed, faults = request.param
    return simulate(seed=seed, faults=faults)


def end_of(run):
    return seconds(UNTIL) if run.end is None else run.end


def changes(runs, amount_of):
    """Per key: (second, change) in time order, releases first."""
    found = defaultdict(list)
    for run in runs:
        if run.start is None:
            continue
        for key, amount in amount_of(run):
            found[key] += [(run.start, amount), (end_of(run), -amount)]
    return {key: sorted(steps) for key, steps in found.items()}


def peak(steps):
    level = highest = 0
    for _, change in steps:
        level += change
        highest = max(highest, level)
    return highest


def test_no_gpu_has_two_holders_at_once(runs):
    held = changes(runs, lambda r: [((n, g), 1) for n, gpus in r.placement for g in gpus])
    assert len(held) > 80
    assert {peak(steps) for steps in held.values()} == {1}


def test_no_node_gives_more_cpus_or_memory_than_it_has(runs):
    cpus = changes(runs, lambda r: [(n, r.job.cpus) for n, _ in r.placement])
    memory = changes(runs, lambda r: [(n, r.job.mem_mib) for n, _ in r.placement])
    assert all(peak(steps) <= FLEET[node].cpus for node, steps in cpus.items())
    assert all(peak(steps) <= FLEET[node].mem_mib for node, steps in memory.items())


def test_a_run_gets_what_its_job_asked_for_on_nodes_of_its_partition(runs):
    for run in runs:
        if run.start is not None:
            assert len({node for node, _ in run.placement}) == run.job.nodes
            assert {len(gpus) for _, gpus in run.placement} == {run.job.gpus}
            assert {FLEET[node].partition for node, _ in run.placement} == {run.job.partition}


def test_time_goes_forward_submit_eligible_start_end(runs):
    for run in runs:
        assert run.job.submit <= run.eligible
        if run.start is not None:
            assert run.eligible <= run.start < end_of(run)
            assert run.end is None or run.end - run.start <= max(run.job.limit_s, run.length_s) + (
                3600  # what would end while the scheduler is down ends when it is back
            )


def test_run_ids_are_unique_and_attempts_count_from_one(runs):
    assert max(Counter(run.run_id for run in runs).values()) == 1
    attempts = defaultdict(list)
    for run in runs:
        attempts[run.job.job_id].append(run.attempt)
    # A first attempt may lie before the window; those inside it follow on each other.
    assert all(seen == list(range(seen[0], seen[-1] + 1)) for seen in attempts.values())


def test_nothing_starts_on_a_node_that_takes_no_work(demo):
    closed = [
        (PLANTED[key].place, PLANTED[key].begin, PLANTED[key].until or UNTIL)
        for key in ("drained_node", "unused_reservation")
    ]
    for place, since, until in closed:
        there = [r for r in demo.runs if any(n == NODE_INDEX[place] for n, _ in r.placement)]
        assert len(there) > 10
        assert not [r for r in there if seconds(since) <= r.start < seconds(until)]


def test_nothing_starts_or_ends_while_the_scheduler_is_down(demo):
    gap = PLANTED["scheduler_gap"]
    moments = [at for run in demo.runs for at in (run.start, run.end) if at is not None]
    assert not [at for at in moments if seconds(gap.begin) <= at < seconds(gap.end)]


def test_the_rows_say_what_the_simulation_did(demo):
    rows = Counter(demo.tables["allocation"]["run_id"])
    assert rows == Counter(
        {r.run_id: r.job.gpus * r.job.nodes for r in demo.runs if r.start is not None}
    )
    cpus = Counter()
    for run_id, part in zip(
        demo.tables["allocation"]["run_id"], demo.tables["allocation"]["cpus"], strict=True
    ):
        cpus[run_id] += part
    assert cpus == Counter(
        {r.run_id: r.job.cpus * r.job.nodes for r in demo.runs if r.start is not None}
    )
    assert demo.tables["job_run"]["run_id"] == [run.run_id for run in demo.runs]


def test_the_window_is_four_whole_weeks_and_no_run_lies_outside(demo):
    assert (UNTIL - SINCE).days == 28
    assert all(end_of(run) > seconds(SINCE) for run in demo.runs)
    assert all(run.end is None or run.end < seconds(UNTIL) for run in demo.runs)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(demo):
    def plain(facts):
        return {
            table: {
                name: values.to_pylist() if hasattr(values, "to_pylist") else list(values)
                for name, values in columns.items()
            }
            for table, columns in facts.tables.items()
            if table not in ("sample", "host_sample")
        }

    def measured(facts):
        return {
            (table, name): (values if hasattr(values, "equals") else values.tobytes())
            for table in ("sample", "host_sample")
            for name, values in facts.tables[table].items()
        }

    again, other = generate(), generate(seed=7)
    assert plain(again) == plain(demo)
    assert measured(again) == measured(demo)
    assert plain(other)["job_run"] != plain(demo)["job_run"]
