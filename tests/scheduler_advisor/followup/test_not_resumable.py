"""Jobs that preemption would have stopped without a sign that they go on, and what they lose."""

from __future__ import annotations

import pytest

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy, Preemption
from scheduler_advisor.not_resumable import StoppedJob, hit
from scheduler_advisor.past import Past
from scheduler_advisor.search.bench import Trial

HOUR = 3600
PREEMPT = Trial(Policy(preemption=Preemption.PRIORITY))


def past_of(**columns):
    """Two nodes of eight GPUs, one day; jobs 0 and 1 are long, 2 is urgent and comes after 1 h."""
    jobs = Jobs.build(
        **{"submit": [0, 0, HOUR], "run": [10 * HOUR, 6 * HOUR, HOUR], "gpus": [8, 8, 8],
           "priority": [0, 1, 9], "preemptible": [0, 1, 0], **columns}
    )  # fmt: skip
    return Past(jobs, Cluster.uniform(2, 8), None, 0, 86_400)


def test_a_job_without_evidence_would_have_begun_again_and_lost_what_it_had_done():
    [lost] = hit(past_of(), PREEMPT)
    assert lost == StoppedJob("0", 8.0, 1, pytest.approx(8.0))


def test_one_with_evidence_is_not_on_the_list_and_its_checkpoints_do_not_help_others():
    assert hit(past_of(preemptible=[1, 1, 0]), PREEMPT) == []
    [lost] = hit(past_of(checkpoint_every=[600, 600, 0]), PREEMPT)
    assert lost.lost_gpu_hours == pytest.approx(8.0)


def test_where_nothing_is_stopped_nobody_is_named():
    assert hit(past_of(), Trial(Policy())) == []
    assert hit(past_of(submit=[0, 0, 11 * HOUR]), PREEMPT) == []
