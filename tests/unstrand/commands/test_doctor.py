from __future__ import annotations

import subprocess
import sys

from collector.store import Store
from unstrand.clock import utc_now


def states(answer):
    return {row["check"]: row["state"] for row in answer.json["rows"]}


def found(answer, check):
    return next(row for row in answer.json["rows"] if row["check"] == check)


def test_a_store_with_the_demo_is_in_order(cli, demo_db):
    answer = cli("doctor", "--db", demo_db, "--json")
    assert answer.code == 0
    assert {"python", "slurm", "driver", "store", "schema", "facts"} <= states(answer).keys()
    assert found(answer, "facts")["found"].startswith("demo: demo, 2026-10-05 00:00 to 2026-11-02")
    assert "96 GPUs" in found(answer, "facts")["found"]


def test_no_store_has_failed_and_says_how_to_make_one(cli, tmp_path):
    answer = cli("doctor", "--db", tmp_path / "none.duckdb", "--json")
    assert answer.code == 1
    assert states(answer)["store"] == "failed"
    assert "unstrand demo" in found(answer, "store")["remedy"]
    assert not (tmp_path / "none.duckdb").exists()


def test_an_empty_store_is_a_warning(cli, tmp_path):
    Store.open(tmp_path / "s.duckdb", clock=utc_now).close()
    answer = cli("doctor", "--db", tmp_path / "s.duckdb", "--json")
    assert answer.code == 0
    assert states(answer)["facts"] == "warning"


def test_a_file_that_is_no_store_has_failed(cli, tmp_path):
    (tmp_path / "s.duckdb").write_text("not a database, but long enough to be looked at" * 99)
    answer = cli("doctor", "--db", tmp_path / "s.duckdb", "--json")
    assert answer.code == 1
    assert states(answer)["store"] == "failed"


def test_a_stranger_who_holds_the_file_is_a_failure_with_the_way_to_find_it(cli, demo_db):
    code = (
        f"import duckdb; c = duckdb.connect({str(demo_db)!r}); print('held', flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        answer = cli("doctor", "--db", demo_db, "--json")
    finally:
        holder.communicate("\n")
    assert answer.code == 1
    assert "fuser" in found(answer, "service")["remedy"]


def test_the_table_for_people_names_every_check(cli, demo_db):
    out = cli("doctor", "--db", demo_db).out
    assert all(word in out for word in ("python", "slurm", "schema", "facts"))
