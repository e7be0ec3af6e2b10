"""A question that takes too much is refused, and the store goes on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.errors import StoreLimitError
from collector.store import Store
from collector.time_limit import time_limit

NOW = datetime(2026, 11, 2, tzinfo=UTC)
# Some 10^12 rows: hours on any machine, a few kilobytes of memory.
ENDLESS = (
    "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3"
)


def test_a_query_is_interrupted_when_its_time_is_over_and_the_next_one_answers(store):
    with (
        pytest.raises(StoreLimitError, match=r"longer than 0\.2 s: ask for a shorter window"),
        time_limit(0.2),
    ):
        store.value(ENDLESS)
    assert store.value("SELECT 1") == 1


def test_other_units_of_work_go_on_while_one_is_interrupted(store):
    with store.work() as other:
        other.execute("CREATE TEMP TABLE kept AS SELECT 1 AS one")
        with pytest.raises(StoreLimitError), time_limit(0.2):
            store.value(ENDLESS)
        assert other.value("SELECT one FROM kept") == 1


def test_a_transaction_that_is_interrupted_leaves_nothing(store):
    def begin_and_never_end():
        with time_limit(0.2), store.work() as work, work.transaction():
            work.execute("CREATE TABLE half (x INTEGER)")
            work.value(ENDLESS)

    with pytest.raises(StoreLimitError):
        begin_and_never_end()
    assert store.value("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'") == 0


def test_a_question_within_its_time_is_answered(store):
    with time_limit(60):
        assert store.value("SELECT sum(range)::BIGINT FROM range(10)") == 45


def test_a_question_that_needs_too_much_memory_is_refused_and_the_store_goes_on(tmp_path):
    with Store.open(tmp_path / "s.duckdb", clock=lambda: NOW, memory_limit="200MB") as store:
        with store.work() as work:
            work.execute("SET max_temp_directory_size = '1MB'")
        with pytest.raises(StoreLimitError, match="more memory"):
            store.value("SELECT len(list(range)) FROM range(100000000)")
        assert store.value("SELECT 1") == 1
