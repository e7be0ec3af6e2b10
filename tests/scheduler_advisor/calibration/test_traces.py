"""Traces without starts: nothing can be graded, so advice comes in ranges and says so."""

from __future__ import annotations

import pytest

from scheduler_advisor.advice.replay_told import tried_json
from scheduler_advisor.calibration.calibrate import calibrate
from scheduler_advisor.calibration.grade import Grade
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import past_of
from scheduler_advisor.readers.fleet import read_fleet
from scheduler_advisor.readers.jobs import read_jobs
from scheduler_advisor.search.search import search


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "fleet"),
    [("itp_c03", "swf/itp_c03.swf", "20x8"), ("philly_ee9e8c", "swf/philly_ee9e8c.swf", "17x8")],
)
def test_ungraded_reports_in_ranges(shared_data, golden, name, path, fleet):
    read = read_jobs(shared_data / "traces" / path)
    past = past_of(read, read_fleet(fleet), name=name)
    found = calibrate(past if past.wait_s is None else _without_starts(past))
    assert found.grade is Grade.NONE
    assert not found.grade.promises
    tried = search(found.past, found.policy, Goals(), input_error=1.0)
    rows = tried_json(tried)
    for row in rows:
        low, high = row["interval_80"]
        assert low <= row["gpu_hours"] <= high
    golden(
        f"search_{name}",
        {"remarks": list(found.in_force.remarks), "best": [each.name for each in tried.best],
         "tried": rows, "front": [p.name for p in tried.front if p.on_front],
         "today": {"blocked_gpu_hours": round(float(tried.today.blocked.sum())),
                   "mean_wait_s": round(tried.today.mean_wait_s)}},
    )  # fmt: skip


def _without_starts(past):
    from dataclasses import replace

    return replace(past, wait_s=None)
