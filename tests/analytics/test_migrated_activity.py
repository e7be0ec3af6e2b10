"""A store of the version before activity was kept by key, brought forward with its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import duckdb
import pytest

from analytics.ledger.build import ensure_built
from collector import migrations
from collector.store import Store

NOW = datetime(2026, 10, 9, tzinfo=UTC)
BEFORE = 15
NAMES = (
    "SELECT p.cluster, hour, node, gpu_model, gpu_uuid, mig_uuid, run_id, since, until, "
    "measured_us, active_ppm_us, hang_us, untouched_ppm_us FROM activity_hour "
    "JOIN ledger_pool p USING (pool_key) JOIN ledger_run USING (run_key)"
)


@pytest.fixture
def two_clusters(site):
    """Nodes and runs of the same names in both, two models, a MIG slice, devices without a name."""
    other = replace(site, cluster="d", facts=[], samples=[])
    for one in (site, other):
        one.hours = 5
        one.node("n1").node("n2", model="a100").known()
    site.run(gpus=2, since=0.5, until=4.2, util=0.5, run_id="r", uuids=["g1", "g2"])
    site.run(node="n2", gpus=3, since=1, until=3.7, util=0.25)
    site.run(node="n1", since=1, until=4, uuids=["g3"], mig="m1", share=(3, 7), run_id="slice")
    site.measure(0.75, 1, 4, "n1", "g3", "slice", mig="m1")
    other.run(gpus=1, since=0, until=3, util=0.9, run_id="r", uuids=["g1"])
    other.built()
    return site.built()


def written_as_before(store, path):
    """A file of version 15 with the rows of ``store``, activity under the names it had then."""
    with duckdb.connect(str(path)) as old:
        migrations.migrate(old, str(path), NOW, up_to=BEFORE)
    with store.work() as work:
        work.execute(f"ATTACH '{path}' AS old")
        tables = work.rows(
            "SELECT table_name AS name, string_agg(column_name, ', ') AS columns "
            "FROM duckdb_columns() WHERE database_name = 'old' "
            "AND table_name <> 'schema_version' GROUP BY table_name"
        )
        for table in tables:
            name, columns = table["name"], table["columns"]
            rows = f"({NAMES})" if name == "activity_hour" else name
            work.execute(f"INSERT INTO old.{name} BY NAME SELECT {columns} FROM {rows}")
        work.execute("DETACH old")


def kept(store):
    columns = store.rows("SELECT column_name, data_type, is_nullable FROM duckdb_columns() "
                         "WHERE table_name = 'activity_hour' ORDER BY column_index")  # fmt: skip
    return columns, store.rows("SELECT * FROM activity_hour ORDER BY ALL")


def test_activity_is_carried_over_row_by_row(two_clusters, tmp_path):
    store, path = two_clusters.store, tmp_path / "before.duckdb"
    with store.work() as work:
        assert work.value("SELECT count(*) FROM activity_hour WHERE mig_uuid = 'm1'") == 3
        work.execute("UPDATE activity_hour SET hang_us = rowid + 1, untouched_ppm_us = -rowid")
    written_as_before(store, path)
    with duckdb.connect(str(path)) as old:
        assert migrations.current(old, str(path)) == BEFORE
        names = [row[0] for row in old.execute("DESCRIBE activity_hour").fetchall()]
        assert "run_id" in names
        assert "run_key" not in names
    with Store.open(path, clock=lambda: NOW) as opened:
        assert kept(opened) == kept(store)


def test_hours_built_again_after_an_upgrade_without_their_samples_are_the_same(
    two_clusters, tmp_path
):
    site, path = two_clusters, tmp_path / "before.duckdb"
    written_as_before(site.store, path)
    with Store.open(path, clock=lambda: NOW) as opened:
        again = replace(site, store=opened)
        assert again.ledger_rows() == site.ledger_rows()
        with opened.work() as work:
            work.execute("DELETE FROM sample")
            # What another version's fingerprints are: all different, each with its samples.
            work.execute(
                "UPDATE ledger_build SET facts_hash = 'before:' || split_part(facts_hash, ':', 2)"
            )
        assert ensure_built(opened, site.window) == 10
        assert again.ledger_rows() == site.ledger_rows()
        assert ensure_built(opened, site.window) == 0
        measured = again.by("cluster", "node")
        assert measured == site.by("cluster", "node")
        assert float(measured["d", "n1"]["used_gpu_hours"]) == pytest.approx(2.7, abs=1e-3)
