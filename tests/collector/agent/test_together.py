"""Batches that are taken together: as if each had come alone, for the price of one."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from collector import migrations
from collector.errors import AgentConflictError, BatchRefusedError
from collector.ingest import take_all
from collector.store import Store
from collector.telemetry.rows import micros

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def later(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def together(store):
    def into(batches, now=NOW, at=None):
        with (at or store).work() as work, work.transaction():
            return take_all(work, batches, now)

    return into


def ranges(store):
    rows = store.rows("SELECT node, first, last, row_count FROM ingest_range ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def test_each_batch_has_its_own_answer(together, store, a_batch):
    answers = together(
        [
            a_batch(1),
            a_batch(1),
            a_batch(1, node="n2", agent_id="z"),
            a_batch(2, agent_id="another"),
            a_batch(2, at=later(3600)),
            a_batch(3, at=later(15)),
        ]
    )
    assert answers[:3] == [1, 0, 1]
    assert isinstance(answers[3], AgentConflictError)
    assert isinstance(answers[4], BatchRefusedError)
    assert answers[5] == 1
    assert store.value("SELECT count(*) FROM sample") == 3
    assert ranges(store) == [("n1", 1, 1, 1), ("n1", 3, 3, 1), ("n2", 1, 1, 1)]


def test_a_batch_that_closes_a_gap_makes_one_range_of_two(together, store, a_batch):
    for sequences in ((1, 2), (5, 6), (3,), (4, 3, 4), (0,)):
        together([a_batch(number, at=later(15 * number)) for number in sequences], later(120))
    assert ranges(store) == [("n1", 0, 6, 7)]
    assert store.value("SELECT count(*) FROM sample") == 7


def test_nodes_of_the_same_name_in_two_clusters_are_two_nodes(together, a_batch):
    """`node001` is everywhere: an agent of another cluster is no second agent of this one."""
    assert together([a_batch(1), a_batch(1, cluster="other", agent_id="other")]) == [1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_any_grouping_gives_the_same_store(tmp_path, a_batch, together, seed):
    order = [(node, sequence) for node in ("n1", "n2", "n3") for sequence in range(8)] * 2
    random.Random(seed).shuffle(order)
    batches = [
        a_batch(s, at=later(15 * s), node=n, agent_id=n, tables=tables(n, s)) for n, s in order
    ]
    found = []
    for size in (1, 5, len(batches)):
        with Store.open(tmp_path / f"{size}.duckdb", clock=lambda: NOW) as store:
            for first in range(0, len(batches), size):
                together(batches[first : first + size], later(200), at=store)
            found.append(contents(store))
    assert found[0] == found[1] == found[2]


def tables(node, sequence):
    """Samples, a holder in the first half of the time, and an inventory that changes once."""
    uuid, ts = f"GPU-{node}", micros(later(15 * sequence))
    sample = {"gpu_uuid": [uuid], "ts": [ts], "step_s": [15.0], "run_id": [None]}
    seen = {"gpu_uuid": [uuid], "gpu_index": [0], "driver_version": ["1"], "ts": [ts]}
    return {"sample": sample, "device_seen": seen if sequence == 0 else {}}


def contents(store):
    queries = (
        "SELECT node, ts, gpu_uuid FROM sample ORDER BY ALL",
        "SELECT node, since, until FROM fact_window ORDER BY ALL",
        "SELECT node, first, last, row_count FROM ingest_range ORDER BY ALL",
    )
    return [store.rows(query) for query in queries]


def test_what_an_older_version_took_is_still_known(tmp_path, together, a_batch):
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as old:
        migrations.migrate(old, str(path), NOW, up_to=8)
        old.execute(
            "INSERT INTO ingest_batch SELECT 'n1', 'a', 'b', s, TIMESTAMP '2026-11-02 11:00:00', 1 "
            "FROM unnest([1, 2, 3, 7]) t(s)"
        )
    with Store.open(path, clock=lambda: NOW) as store:
        assert ranges(store) == [("n1", 1, 3, 3), ("n1", 7, 7, 1)]
        assert together([a_batch(2), a_batch(4), a_batch(7)], at=store) == [0, 1, 0]
