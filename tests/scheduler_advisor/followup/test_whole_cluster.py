"""Asked of everybody and every node, a kind's hours are those of its class in the ledger."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from analytics.ledger import build
from analytics.window import Window
from collector.demo import CLUSTER, SINCE, UNTIL, generate, write_demo
from collector.store import Store
from scheduler_advisor.followup.changes import Changed
from scheduler_advisor.followup.fact_days import fact_days
from scheduler_advisor.followup.measure import MEASURES
from scheduler_advisor.followup.scope import Scope
from scheduler_advisor.followup.verdict import Predicted

MADE_AT: datetime = UNTIL + timedelta(hours=1)
CLASSES = {
    "idle_after_use": "allocated_idle",
    "gang_half": "allocated_idle",
    "gang_hang": "suspect_hang",
    "complementary_hours": "allocated_idle",
    "uneven_runs": "used + lost + allocated_idle + allocated_unmeasured + failed_held"
    " + unattributed",
    "fragmentation": "gang_wait + stranded_shape",
    "gang_wait": "gang_wait + stranded_shape + stranded_topology + stranded_cpu + stranded_mem"
    " + policy_blocked + reserved",
    "reserved_unused": "reserved",
    "quota_unused": "policy_blocked",
    "night_idle": "free",
    "lost_work": "lost",
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    with Store.open(path, clock=lambda: MADE_AT) as store:
        write_demo(store, generate())
        build(store, CLUSTER, Window(SINCE, UNTIL))
        with store.work() as opened:
            yield opened


@pytest.fixture(scope="module")
def everybody(work):
    people = work.rows("SELECT DISTINCT account, user_name FROM job_run", [])
    pools = work.rows("SELECT node, gpu_model FROM ledger_pool", [])
    return Scope(
        people=frozenset((row["account"], row["user_name"]) for row in people),
        nodes=frozenset(row["node"] for row in pools),
        models=frozenset(row["gpu_model"] for row in pools),
    )


def hours_of(work, everybody, kind, target=None):
    change = Changed(
        "s", CLUSTER, kind, UNTIL, "", Predicted(1, 0, 2), scope=everybody, target=target
    )
    days = fact_days(work, change, SINCE, UNTIL)
    assert len(days.blocked) == 28
    return days.blocked.sum()


@pytest.mark.parametrize("kind", CLASSES)
def test_a_kind_of_one_class_counts_that_class(work, everybody, kind):
    hours = work.value(f"SELECT sum({CLASSES[kind]}) / 3.6e9 FROM ledger_hour")
    assert hours_of(work, everybody, kind) == pytest.approx(float(hours))


def test_asking_for_too_much_is_judged_by_what_that_stranded(work, everybody):
    hours = work.value(
        "SELECT sum(gpu_us) / 3.6e9 FROM ledger_cause"
        " WHERE role = 'causer' AND class IN ('stranded_cpu', 'stranded_mem')"
    )
    assert hours_of(work, everybody, "over_request") == pytest.approx(float(hours))
    assert hours > 1000


def test_a_memory_default_is_judged_by_what_jobs_stranded(work, everybody):
    hours = work.value(
        "SELECT sum(gpu_us) / 3.6e9 FROM ledger_cause"
        " WHERE role = 'causer' AND class = 'stranded_mem'"
    )
    assert hours_of(work, everybody, "whole_node_memory") == pytest.approx(float(hours))


def test_sharing_is_judged_by_what_runs_of_one_gpu_hold(work, everybody):
    hours = work.value(
        "SELECT sum(used + lost + allocated_idle + allocated_unmeasured + failed_held"
        " + unattributed) / 3.6e9 FROM ledger_hour JOIN ledger_run USING (run_key)"
        " WHERE run_id IN (SELECT run_id FROM job_run WHERE gpus <= 1)"
    )
    assert hours_of(work, everybody, "share_gpu") == pytest.approx(float(hours))


def test_fewer_nodes_are_judged_by_everything_installed(work, everybody):
    assert hours_of(work, everybody, "fewer_nodes") == pytest.approx(64_512)


def test_waiting_for_input_is_what_is_held_above_the_target(work, everybody):
    all_models = hours_of(work, everybody, "input_bound", target=0.9)
    assert 0 < all_models < hours_of(work, everybody, "idle_after_use")
    assert hours_of(work, everybody, "input_bound", target=0.1) == 0


def test_every_kind_that_is_judged_has_a_value_somewhere():
    by_hand = {
        "held_idle", "low_efficiency", "gang_off", "drained_nodes", "requeue_loops", "night_idle",
        "checkpoint_interval", "over_request", "fewer_nodes", "input_bound", "share_gpu",
        "whole_node_memory",
    }  # fmt: skip
    assert set(MEASURES) == by_hand | set(CLASSES)
