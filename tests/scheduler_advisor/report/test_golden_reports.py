"""Whole reports on real traces, from the importer to the page, kept as files and read as pictures.

ITP and Philly have no starts (theirs are a replay's), in openb no queue ever formed: nothing is
graded, ranges only. KTH-SP2 and wagap have real starts.
A file that is missing is written and the test fails: read it, then commit it.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.health.span import facts_span
from analytics.ledger import ensure_built
from collector.store import Store
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.forms import rendered
from scheduler_advisor.report.make import make_report
from scheduler_advisor.steps import replay_all
from scheduler_advisor.window import window_back
from unstrand.trace_import import TraceQuestion, take_in

GOLDEN = Path(__file__).with_name("golden")
NOW = datetime(2026, 11, 2, tzinfo=UTC)
SITES = {
    "philly": ("swf/philly_ee9e8c.swf", "swf", "17x8", "easy"),
    "itp": ("swf/itp_c03.swf", "swf", "20x8", "easy"),
    "kth": ("swf/KTH-SP2.swf", "swf", "100x1", None),
    "wagap": ("swf/wagap-2013.swf", "swf", None, None),
    "openb": (
        "openb/openb_pod_list_default.csv", "openb", "openb/openb_node_list_gpu_node.csv", None,
    ),
}  # fmt: skip
full = pytest.mark.skipif(
    os.environ.get("UNSTRAND_PROVE") != "1", reason="minutes: `make prove` makes these reports"
)


def report_of(traces, tmp_path, name):
    """The report of the trace's last four weeks."""
    file, kind, nodes, policy = SITES[name]
    shape = nodes if nodes and "x" in nodes and "/" not in nodes else None
    with Store.open(tmp_path / "site.duckdb", clock=lambda: NOW) as store:
        take_in(
            store,
            TraceQuestion(
                file=traces / file, kind=kind, cluster=name, shape=shape, origin=None,
                nodes=None if shape or nodes is None else traces / nodes, policy=policy,
            ),
            NOW,
        )  # fmt: skip
        until = facts_span(store).until
        window = window_back("4w", until, "UTC")
        ensure_built(store, window)
        replays = replay_all(store, window, Goals())
        return make_report(store, window, Goals(), at=until, replays=replays)


def same_as_kept(forms):
    """Every file as it was kept; those that are missing are written."""
    missing = [path for path in forms if not path.exists()]
    for path in missing:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(forms[path])
    if missing:
        pytest.fail(f"{missing} were not there and have been written: read them, then commit them")
    for path, content in forms.items():
        assert content.decode() == path.read_text("utf-8")


@pytest.fixture
def kept(shared_data, tmp_path, outline):
    """``kept(name)``: the report as JSON, after all its forms were found to be what was kept."""
    return lambda name: _kept(shared_data, tmp_path, outline, name)


def _kept(shared_data, tmp_path, outline, name):
    report = report_of(shared_data / "traces", tmp_path, name)
    page = outline(rendered(report, "html").decode()).encode()
    same_as_kept({
        GOLDEN / f"{name}.json": rendered(report, "json"),
        GOLDEN / f"{name}.md": rendered(report, "md"),
        GOLDEN / f"{name}.html.txt": page,
    })  # fmt: skip
    for rec in report.advice.recommendations:
        assert rec.draft.replay is None or rec.saving.range_only
    return json.loads(rendered(report, "json"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["itp", pytest.param("philly", marks=[full, pytest.mark.prove])],
)  # fmt: skip
def test_a_report_on_a_trace_without_starts_grades_nothing(kept, name):
    [fidelity] = kept(name)["fidelity"]
    assert (fidelity["grade"], fidelity["ungraded"]) == ("none", "no_starts")
    assert not fidelity["promises"]


@pytest.mark.slow
def test_starts_on_a_cluster_where_nobody_queued_grade_nothing(kept):
    [fidelity] = kept("openb")["fidelity"]
    assert (fidelity["grade"], fidelity["ungraded"]) == ("none", "no_queue")
    assert fidelity["contested_jobs"] == 0
    assert not fidelity["promises"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["kth", pytest.param("wagap", marks=[full, pytest.mark.prove])],
)  # fmt: skip
def test_a_report_on_real_starts_says_how_badly_the_replay_repeats_them(kept, name):
    # Site limits, holds and outages are in no trace: the replay explains half of the waits.
    [fidelity] = kept(name)["fidelity"]
    assert (fidelity["grade"], fidelity["ungraded"]) == ("D", None)
    assert not fidelity["promises"]
