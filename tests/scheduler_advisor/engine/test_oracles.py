"""Start times of other people's simulators, job by job (see data/README.md for who agrees)."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine import preset, simulate

EXACT = [
    ("kth", "pool:100", "fifo", "start_FCFS_ref"),
    ("kth", "pool:100", "fifo", "start_FCFS_pyss"),
    ("kth", "pool:100", "easy", "start_EASY_ref"),
    ("kth", "pool:100", "conservative", "start_CONS_ref"),
    ("kth", "pool:100", "greedy", "start_GREEDY_ref"),
    ("philly_ee9e8c", "pool:136", "fifo", "start_FCFS_pyss"),
    ("philly_ee9e8c", "pool:136", "easy", "start_EASY_pyss"),
    ("philly_ee9e8c", "pool:136", "conservative", "start_CONS_pyss"),
    ("philly_ee9e8c", "pool:136", "conservative-compress", "start_CONS_pyss"),
    ("philly_ee9e8c", "pool:136", "greedy", "start_GREEDY_ref"),
    ("philly_103959", "pool:24", "fifo", "start_FCFS_ref"),
    ("philly_103959", "pool:24", "easy", "start_EASY_ref"),
    ("itp_c03", "pool:160", "fifo", "start_FCFS_ref"),
    ("itp_c03", "pool:160", "easy", "start_EASY_ref"),
    ("itp_c03", "pool:160", "greedy", "start_GREEDY_ref"),
    ("philly_ee9e8c_FIFO_consolidate", "17x8", "fifo", "start_lucid"),
    ("philly_103959_FIFO_consolidate", "3x8", "fifo", "start_lucid"),
]


@pytest.mark.parametrize(("name", "spec", "policy", "column"), EXACT)
def test_no_start_differs_from_the_independent_simulator(oracle, fleet, name, spec, policy, column):
    known = oracle(name)
    chosen = preset(policy)
    if "x" in spec:
        chosen = chosen.with_values({"placement": "consolidate"})
    outcome = simulate(known.jobs, fleet(spec), chosen)
    different = np.flatnonzero(outcome.start != known.starts[column])
    assert len(different) == 0, f"{len(different)} starts differ, first at {different[:5]}"


def test_compression_differs_from_the_pass_per_event_simulator_in_under_1_percent(oracle, fleet):
    known = oracle("kth")
    outcome = simulate(known.jobs, fleet("pool:100"), preset("conservative-compress"))
    different = np.count_nonzero(outcome.start != known.starts["start_CONS_pyss"])
    assert different < 0.01 * len(known.jobs)


def test_means_and_makespan_are_the_published_ones(oracle, fleet):
    outcome = simulate(oracle("kth").jobs, fleet("pool:100"), preset("easy"))
    assert round(float(outcome.wait.mean()), 2) == 6834.59
    assert int(outcome.end.max()) - int(outcome.jobs.submit.min()) == 29_363_626


def test_easy_that_only_retries_the_head_at_its_first_reservation_would_be_noticed(oracle, fleet):
    """A published simulator's "EASY" equals greedy backfill on this trace; ours must not."""
    known = oracle("philly_ee9e8c")
    easy = simulate(known.jobs, fleet("pool:136"), preset("easy"))
    assert np.any(easy.start != known.starts["start_GREEDY_ref"])
