"""Measures beside the classes on the command line: what a suspicion rests on, and F over time."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest

from collector.store import Store

WEEKS = ("--since", "2026-10-05", "--until", "2026-11-02")


def test_evidence_names_run_class_and_what_was_seen(cli, demo_db):
    found = cli("report", "evidence", *WEEKS, "--db", demo_db, "--json").json
    rows = found["rows"]
    assert rows, "the demo has preempted jobs"
    assert {row["class"] for row in rows} <= {"lost", "possibly_lost", "suspect_hang"}
    assert found["total"]["gpu_hours"] == pytest.approx(sum(row["gpu_hours"] for row in rows))
    ledger = cli("report", "ledger", *WEEKS, "--db", demo_db, "--json").json["rows"]
    lost = next(row["gpu_hours"] for row in ledger if row["class"] == "lost")
    assert sum(r["gpu_hours"] for r in rows if r["class"] == "lost") == pytest.approx(lost)
    one = rows[0]
    only = cli("report", "evidence", *WEEKS, "--db", demo_db, "--json", "--job", one["job"]).json
    assert {row["job"] for row in only["rows"]} == {one["job"]}
    text = cli("report", "evidence", *WEEKS, "--db", demo_db)
    assert (text.code, one["text"][:20] in text.out) == (0, True)


def test_fragmentation_by_node_adds_up_to_that_of_the_cluster(cli, demo_db):
    day = ("--since", "2026-10-20", "--until", "2026-10-21", "--db", demo_db)
    whole = cli("report", "fragmentation", *day, "--json").json
    nodes = cli("report", "fragmentation", *day, "--by", "node", "--json").json
    assert len(whole["rows"]) == 24
    assert len({row["name"] for row in nodes["rows"]}) > 1
    for hour in whole["rows"]:
        mine = [row for row in nodes["rows"] if row["hour"] == hour["hour"]]
        for name in ("free_gpu_hours", "fragmented_gpu_hours"):
            assert sum(row[name] for row in mine) == pytest.approx(hour[name])
    assert any(row["fragmented_gpu_hours"] for row in whole["rows"])
    refused = cli("report", "fragmentation", *day, "--by", "user")
    assert (refused.code, "cluster, rack or node" in refused.err) == (2, True)


def test_a_declared_interval_turns_what_may_be_lost_into_what_is(cli, demo_db, tmp_path):
    db = shutil.copy(demo_db, tmp_path / "copy.duckdb")
    clock = datetime(2026, 11, 9, tzinfo=UTC)
    with Store.open(db, clock=lambda: clock) as store, store.work() as work:
        work.execute("DELETE FROM event WHERE kind = 'checkpoint_end'")

    def kinds():
        rows = cli("report", "evidence", *WEEKS, "--db", db, "--json").json["rows"]
        return {row["evidence"] for row in rows if row["class"] in ("lost", "possibly_lost")}

    before = kinds()
    assert before == {"none"}
    assert cli("checkpoint", "declare", "7001", "--by", "ada", "--db", db).code == 0
    (row,) = cli("checkpoint", "list", "--db", db, "--json").json["rows"]
    assert (row["interval_s"], row["account"], row["source"]) == (7001, None, "ada")
    assert kinds() == {"declared"}
    assert cli("checkpoint", "remove", "--by", "bob", "--db", db).code == 0
    assert kinds() == before
    assert cli("checkpoint", "remove", "--db", db).code == 1
    log = cli("audit", "--action", "checkpoint", "--db", db, "--json").json["rows"]
    assert [(row["action"], row["actor"]) for row in log] == [
        ("checkpoint.declare", "ada"), ("checkpoint.remove", "bob")
    ]  # fmt: skip
