from __future__ import annotations

import threading
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pytest

from collector import migrations, model
from collector.errors import StoreError, StoreTooNewError
from collector.store import Store

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
FACTS = (
    model.Node, model.Job, model.JobRun, model.Allocation, model.NodeState,
    model.Reservation, model.Event, model.FactWindow, model.ImportLog,
)  # fmt: skip


def a_node(**changes):
    values = {"cluster": "c", "node": "n1", "gpu_model": "A100", "gpus": 8, "valid_from": NOW}
    return model.Node(**(values | {"source": "test"} | changes))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.__name__)
def test_the_fields_of_a_fact_are_the_columns_of_its_table(store, fact):
    columns = store.rows(
        "SELECT column_name FROM duckdb_columns() WHERE table_name = ?", [fact.table]
    )
    assert [c["column_name"] for c in columns] == [field.name for field in fields(fact)]


def test_a_time_comes_back_as_the_same_instant_whatever_zone_it_went_in_with(store):
    seoul = timezone(timedelta(hours=9))
    with store.work() as work:
        work.append_facts([a_node(valid_from=datetime(2026, 11, 2, 21, tzinfo=seoul))])
    assert store.value("SELECT valid_from FROM node") == NOW


def test_a_naive_time_is_refused_before_anything_is_stored(store):
    with store.work() as work, pytest.raises(StoreError, match="naive time"):
        work.append_facts([a_node(valid_from=datetime(2026, 11, 2))])  # noqa: DTZ001
    assert store.value("SELECT count(*) FROM node") == 0


def test_a_missing_value_stays_null_and_a_measured_zero_stays_zero(store):
    with store.work() as work:
        work.append_facts([a_node(cpus=0), a_node(node="n2")])
    assert store.rows("SELECT cpus FROM node ORDER BY node") == [{"cpus": 0}, {"cpus": None}]


def test_an_append_may_follow_a_value_in_the_same_unit_of_work(store):
    with store.work() as work:
        assert work.value("SELECT count(*) FROM node") == 0
        work.append_facts([a_node()])
        assert work.value("SELECT node FROM node WHERE node = 'none'") is None
        assert work.value("SELECT node FROM node") == "n1"


def test_a_failed_transaction_leaves_nothing(store):
    def fail_half_way():
        with store.work() as work, work.transaction():
            work.append_facts([a_node()])
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()
    assert store.value("SELECT count(*) FROM node") == 0


def test_threads_read_and_write_at_once_without_a_lost_row(store):
    errors = []

    def write_and_read(number):
        try:
            for index in range(20):
                with store.work() as work:
                    work.append_facts([a_node(node=f"{number}-{index}")])
                store.query("SELECT count(*) FROM node")
        except Exception as error:  # noqa: BLE001 - reported by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=write_and_read, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.value("SELECT count(DISTINCT node) FROM node") == 160


def test_opening_twice_migrates_once_and_keeps_the_rows(tmp_path):
    path = tmp_path / "s.duckdb"
    with Store.open(path, clock=lambda: NOW) as opened, opened.work() as work:
        work.append_facts([a_node()])
    with Store.open(path, clock=lambda: NOW) as again:
        assert again.value("SELECT count(*) FROM node") == 1
        assert again.value("SELECT count(*) FROM schema_version") == migrations.latest()


@pytest.mark.parametrize("version", [v for v, _ in migrations.steps()])
def test_a_file_of_every_older_version_is_brought_forward_with_its_rows(tmp_path, version):
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as old:
        migrations.migrate(old, str(path), NOW, up_to=version)
        old.execute("INSERT INTO store_info VALUES ('kind', 'site')")
    with Store.open(path, clock=lambda: NOW) as opened:
        assert opened.value("SELECT max(version) FROM schema_version") == migrations.latest()
        assert opened.value("SELECT value FROM store_info WHERE key = 'kind'") == "site"


def test_a_file_of_a_newer_version_is_refused_and_untouched(tmp_path):
    path = tmp_path / "new.duckdb"
    Store.open(path, clock=lambda: NOW).close()
    with duckdb.connect(str(path)) as newer:
        newer.execute("INSERT INTO schema_version VALUES (999, now()::TIMESTAMP)")
    with pytest.raises(StoreTooNewError, match="schema version 999"):
        Store.open(path, clock=lambda: NOW)


def test_somebody_elses_duckdb_file_is_refused(tmp_path):
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as theirs:
        theirs.execute("CREATE TABLE sales (x INTEGER)")
    with pytest.raises(StoreError, match="not an unstrand store"):
        Store.open(path, clock=lambda: NOW)


def test_a_file_that_is_no_database_is_refused_with_its_name(tmp_path):
    path = tmp_path / "text.duckdb"
    path.write_text("this is not a database, but it is long enough to look like a header" * 100)
    with pytest.raises(StoreError, match=r"text\.duckdb"):
        Store.open(path, clock=lambda: NOW)


def test_reading_from_a_file_that_is_not_there_says_how_to_make_one(tmp_path):
    with pytest.raises(StoreError, match="unstrand demo"):
        Store.open(tmp_path / "none.duckdb", clock=lambda: NOW, create=False)
    assert not (tmp_path / "none.duckdb").exists()


def test_one_thread_lasts_as_long_as_the_longest_that_asked_for_it(store):
    def threads():
        return store.value("SELECT current_setting('threads')")

    with store.work() as work:
        work.execute("SET threads = 3")
    with store.one_thread():
        with pytest.raises(KeyError), store.one_thread():
            raise KeyError
        assert threads() == 1
    assert threads() == 3
