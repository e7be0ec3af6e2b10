"""Nodes that can be given back are advised on with what gets worse, and only where it is money."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scheduler_advisor.advice.advise import advise
from scheduler_advisor.advice.site import Site
from scheduler_advisor.calibration.grade import Ungraded
from scheduler_advisor.goals import Goals, parse_goals
from scheduler_advisor.messages import LANGUAGES, Words
from scheduler_advisor.report.wording import PARTS, sentence
from scheduler_advisor.steps import replay_all

NODES = 6
GIVE_BACK = '[capacity]\ngive_back = ["A100"]\n'


@pytest.fixture
def quiet(lab):
    """Six nodes of which two work: a job of two GPUs every forty minutes, for four hours."""
    rng = random.Random(4)
    for number in range(NODES):
        lab.node(f"n{number}", telemetry=False)
    ends = [[0.0] * 8 for _ in range(NODES)]
    for number in range(230):
        start = number * 0.7
        hours = rng.uniform(3, 5)
        if start + hours > 167:
            break
        node = next(n for n in range(NODES) if sum(end <= start for end in ends[n]) >= 2)
        free = [at for at, end in enumerate(ends[node]) if end <= start][:2]
        for at in free:
            ends[node][at] = start + hours
        lab.run(str(number), start=start, end=start + hours, node=f"n{node}", gpus=2,
                measured=False)  # fmt: skip
    return lab.built()


def advised(lab, goals):
    replays = replay_all(lab.store, lab.window, goals, "c")
    with lab.store.work() as work:
        found = advise(Site(work, lab.window, goals, "c"), lab.until, replays).recommendations
    return [rec for rec in found if rec.kind == "fewer_nodes"], replays[0]


def test_nodes_are_given_back_as_cash_with_the_waits_by_class(quiet):
    [rec], replay = advised(quiet, parse_goals(GIVE_BACK, "goals"))
    nodes = rec.draft.params["nodes"]
    assert replay.calibration.ungraded is Ungraded.NO_QUEUE
    fewer = {-each.nodes: each for each in replay.found.nodes}
    assert fewer[nodes].candidate.found.p95_wait_s <= 300  # nobody waits: no policy matters
    assert nodes >= 1
    assert rec.saving.gpu_hours == pytest.approx(nodes * 8 * 168)
    assert float(rec.saving.cost) == pytest.approx(nodes * 8 * 168 * 2.00)
    assert rec.saving.cash == rec.saving.cost
    assert rec.saving.basis == "cash"
    assert rec.draft.replay.classes
    assert all(each.after_s is not None for each in rec.draft.replay.classes)
    for language in LANGUAGES:
        said = [sentence(rec, part, "USD", Words(language)) for part in PARTS]
        assert all(said)
        assert str(nodes) in said[0]


def test_owned_nodes_that_stand_idle_are_no_money(quiet):
    found, replay = advised(quiet, Goals())
    assert found == []
    fewer = [point for point in replay.found.nodes if point.nodes < 0]
    assert fewer[-1].holds  # it is known all the same


def test_a_replay_that_promises_nothing_advises_no_fewer_nodes(quiet):
    goals = parse_goals(GIVE_BACK, "goals")
    replays = replay_all(quiet.store, quiet.window, goals, "c")
    poor = replace(replays[0].calibration, grade=type(replays[0].grade)("D"))
    with quiet.store.work() as work:
        site = Site(work, quiet.window, goals, "c")
        found = advise(site, quiet.until, [replace(replays[0], calibration=poor)])
    assert not [rec for rec in found.recommendations if rec.kind == "fewer_nodes"]
