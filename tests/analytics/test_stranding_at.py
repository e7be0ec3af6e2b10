"""Why a job cannot start now, and what would have to end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.errors import ReportError
from analytics.reports.stranding_at import Shape, stranding_at


def ask(site, **shape):
    return stranding_at(site.store, site.window.since + timedelta(minutes=30), Shape(**shape))


@pytest.fixture
def halves(site):
    """Two nodes of 8 with 4 free each; n1 is held by one run of 4, n2 by two of 2."""
    site.known()
    site.node("n1", leaf="a").node("n2", leaf="b")
    site.run(gpus=4, node="n1", cpus=8, run_id="big")
    site.run(gpus=2, node="n2", cpus=40, run_id="left")
    site.run(gpus=2, node="n2", cpus=8, run_id="right")
    return site.save()


def test_four_gpus_fit(halves):
    answer = ask(halves, gpus=4)
    assert (answer.verdict, answer.release) == ("fits", None)


def test_eight_on_one_node_are_a_matter_of_shape_and_one_run_must_end(halves):
    answer = ask(halves, gpus=8)
    assert answer.verdict == "stranded_shape"
    assert (answer.release, answer.release_gpus) == (["big"], 4)
    assert [node.missing_gpus for node in answer.nodes] == [4, 4]


def test_under_one_switch_it_is_topology(halves):
    assert ask(halves, gpus=4, nodes=2, topology="leaf").verdict == "stranded_topology"


def test_more_than_is_free_is_a_gang_wait(halves):
    answer = ask(halves, gpus=5, nodes=2)
    assert answer.verdict == "gang_wait"
    assert answer.release_gpus == 6


def test_cpu_that_is_gone_names_the_smallest_run_that_frees_it(halves):
    answer = ask(halves, gpus=4, cpus=60)
    assert answer.verdict == "stranded_cpu"
    assert answer.release == ["big"]
    assert [node.missing_cpus for node in answer.nodes] == [4, 44]


def test_what_the_empty_cluster_could_not_take_is_impossible(halves):
    answer = ask(halves, gpus=16)
    assert (answer.verdict, answer.release) == ("impossible", None)


def test_a_drained_node_is_no_help_whatever_ends(halves):
    halves.state("drained", node="n1").save()
    answer = ask(halves, gpus=8)
    assert answer.release == ["left", "right"]
    assert answer.nodes[0].reason == "drained"


def test_a_shape_of_nothing_is_refused():
    with pytest.raises(ReportError):
        Shape(gpus=0)


def test_at_the_very_end_of_what_is_known_it_is_the_last_known_state(halves):
    end = halves.window.until
    answer = stranding_at(halves.store, end, Shape(gpus=8))
    assert (answer.at, answer.verdict, answer.release) == (end, "stranded_shape", ["big"])
    later = stranding_at(halves.store, end + timedelta(microseconds=1), Shape(gpus=8))
    assert later.release is None
