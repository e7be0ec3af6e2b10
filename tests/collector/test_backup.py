"""A backup is the whole store, and a restore gives it back or changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import pytest

from collector import migrations
from collector.backup import backup, restore, schema_version
from collector.errors import StoreBusyError, StoreError
from collector.model import Node
from collector.store import Store

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def clock():
    return NOW


def a_node(name):
    return Node(cluster="c", node=name, gpu_model="A100", gpus=8, valid_from=NOW, source="t")


def fill(store, name="n1"):
    with store.work() as work:
        work.append_facts([a_node(name)])


def nodes(path):
    with Store.open(path, clock=clock, create=False) as opened:
        return [row["node"] for row in opened.rows("SELECT node FROM node ORDER BY node")]


def test_a_backup_has_every_table_and_every_row(store, tmp_path):
    fill(store)
    size = backup(store, tmp_path / "b.duckdb")
    assert size == (tmp_path / "b.duckdb").stat().st_size > 0
    assert nodes(tmp_path / "b.duckdb") == ["n1"]
    tables = "SELECT count(*) FROM duckdb_tables() WHERE NOT temporary AND database_name = "
    with Store.open(tmp_path / "b.duckdb", clock=clock) as copy:
        assert copy.value(tables + "current_database()") == store.value(
            tables + "current_database()"
        )


def test_the_store_goes_on_while_and_after_it_is_copied(store, tmp_path):
    fill(store)
    with store.work() as work:
        backup(store, tmp_path / "b.duckdb")
        work.append_facts([a_node("n2")])
    assert store.value("SELECT count(*) FROM node") == 2
    assert nodes(tmp_path / "b.duckdb") == ["n1"]


def test_a_backup_never_overwrites(store, tmp_path):
    (tmp_path / "b.duckdb").write_text("precious")
    with pytest.raises(StoreError, match="exists already"):
        backup(store, tmp_path / "b.duckdb")
    assert (tmp_path / "b.duckdb").read_text() == "precious"


def test_a_backup_into_a_folder_that_is_not_there_says_so(store, tmp_path):
    with pytest.raises(StoreError, match="no folder"):
        backup(store, tmp_path / "none" / "b.duckdb")


def test_a_restore_gives_the_rows_back_and_keeps_what_was_there(store, tmp_path):
    fill(store)
    saved, path = tmp_path / "b.duckdb", tmp_path / "live.duckdb"
    backup(store, saved)
    with Store.open(path, clock=clock) as live:
        fill(live, "other")
    with pytest.raises(StoreError, match="--replace"):
        restore(saved, path, replace=False, clock=clock)
    assert nodes(path) == ["other"]
    assert restore(saved, path, replace=True, clock=clock) == migrations.latest()
    assert nodes(path) == ["n1"]
    assert nodes(tmp_path / "live.duckdb.replaced") == ["other"]
    assert nodes(saved) == ["n1"]


def test_a_broken_backup_changes_nothing_and_leaves_nothing(store, tmp_path):
    (tmp_path / "b.duckdb").write_text("not a database at all, but long enough to be read" * 99)
    path = tmp_path / "live.duckdb"
    with Store.open(path, clock=clock) as live:
        fill(live)
    with pytest.raises(StoreError):
        restore(tmp_path / "b.duckdb", path, replace=True, clock=clock)
    assert nodes(path) == ["n1"]
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_a_store_that_another_process_holds_is_not_replaced(store, tmp_path, monkeypatch):
    fill(store)
    saved, path = tmp_path / "b.duckdb", tmp_path / "live.duckdb"
    backup(store, saved)
    Store.open(path, clock=clock).close()
    opened = Store.open

    def busy(name, **options):
        if name == path:
            raise StoreBusyError("held")
        return opened(name, **options)

    monkeypatch.setattr(Store, "open", busy)
    with pytest.raises(StoreBusyError):
        restore(saved, path, replace=True, clock=clock)
    monkeypatch.undo()
    assert nodes(path) == []


def test_an_older_backup_is_brought_forward(tmp_path):
    saved, path = tmp_path / "old.duckdb", tmp_path / "live.duckdb"
    with duckdb.connect(str(saved)) as old:
        migrations.migrate(old, str(saved), NOW, up_to=1)
    assert schema_version(saved) == 1
    restore(saved, path, replace=False, clock=clock)
    assert schema_version(path) == migrations.latest()
    assert schema_version(saved) == 1
