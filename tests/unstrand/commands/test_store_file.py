from __future__ import annotations

from collector import migrations


def test_backup_and_restore_give_the_same_store(cli, demo_db, tmp_path):
    saved, copy = tmp_path / "b.duckdb", tmp_path / "copy.duckdb"
    assert cli("backup", saved, "--db", demo_db).code == 0
    assert cli("restore", saved, "--db", copy).code == 0
    again = cli("restore", saved, "--db", copy)
    assert again.code == 1
    assert "--replace" in again.err
    assert cli("restore", saved, "--db", copy, "--replace").code == 0
    assert (tmp_path / "copy.duckdb.replaced").exists()


def test_migrate_says_from_which_version_to_which(cli, demo_db):
    answer = cli("migrate", "--db", demo_db)
    assert answer.code == 0
    assert answer.out.strip().endswith(f"schema version {migrations.latest()}, the newest")
