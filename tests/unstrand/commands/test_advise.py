"""`unstrand advise`, `mark`, `job` and the four measurements, as a user types them."""

from __future__ import annotations

import json
import shutil

import pytest

from collector.store import Store
from unstrand.clock import utc_now


@pytest.fixture(scope="module")
def db(demo_db, tmp_path_factory):
    """A copy of the demo that this module may write to."""
    path = tmp_path_factory.mktemp("advise") / "demo.duckdb"
    shutil.copy(demo_db, path)
    return path


@pytest.fixture(scope="module")
def drained(db):
    """The id of the recommendation about the drained node; makes the report by the command."""
    from unstrand.__main__ import run

    assert run(["advise", "--db", str(db), "--no-replay"]) == 0
    with Store.open(db, clock=utc_now) as store:
        return store.value(
            "SELECT any_value(recommendation_id) FROM recommendation WHERE kind = 'drained_nodes'"
        )


def test_without_a_report_the_list_says_how_to_make_one(cli, demo_db):
    answer = cli("advise", "list", "--db", demo_db)
    assert answer.code == 1
    assert "`unstrand advise` makes one" in answer.err


def test_a_report_is_written_in_the_forms_asked_for(cli, db, tmp_path):
    answer = cli("advise", "--db", db, "--window", "2w", "--out", tmp_path / "out",
                 "--format", "html,md,json", "--language", "ko", "--cluster", "demo")  # fmt: skip
    assert answer.code == 0, answer.err
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"gpu-report-demo-2026-11-02.{form}" for form in ("html", "json", "md")]
    body = json.loads((tmp_path / "out" / names[1]).read_text())
    assert body["window"]["since"] == "2026-10-19T00:00:00Z"
    assert body["language"] == "ko"


def test_the_table_names_what_to_change_and_what_it_comes_to(cli, db, drained):
    answer = cli("advise", "list", "--db", db)
    assert "Bring a100-03 back" in answer.out
    assert drained in answer.out
    assert "overlaps counted once" in answer.out


def test_the_rows_behind_a_saving_add_up_to_it(cli, db, drained):
    rows = cli("advise", "rows", drained, "--db", db, "--json").json["rows"]
    assert sum(row["gpu_hours"] for row in rows) == pytest.approx(8 * 168)
    shown = cli("advise", "show", drained, "--db", db).json["recommendation"]
    assert shown["saving"]["gpu_hours"] == pytest.approx(8 * 168)


def test_a_change_is_dismissed_with_a_reason_and_opened_again(cli, db, drained):
    refused = cli("advise", "dismiss", drained, "--reason", " ", "--db", db)
    assert (refused.code, "needs a reason" in refused.err) == (1, True)
    assert cli("advise", "dismiss", drained, "--reason", "spare", "--db", db).code == 0
    listed = cli("advise", "list", "--db", db, "--json").json["rows"]
    assert next(row for row in listed if row["id"] == drained)["state"] == "dismissed"
    assert cli("advise", "reopen", drained, "--db", db).code == 0
    assert cli("advise", "snooze", drained, "--until", "2020-01-01", "--db", db).code == 1
    assert cli("advise", "accept", "nothing", "--db", db).code == 1


def test_goals_are_printed_checked_and_refused(cli, tmp_path):
    printed = cli("advise", "goals")
    file = tmp_path / "goals.toml"
    file.write_text(printed.out)
    assert cli("advise", "goals", file).code == 0
    file.write_text("[thresholds.held_idle]\nidle = 2\n")
    refused = cli("advise", "goals", file)
    assert (refused.code, "idle_hours" in refused.err) == (1, True)


def test_every_kind_is_listed_with_its_thresholds(cli):
    rows = cli("advise", "kinds", "--json").json["rows"]
    assert len({row["kind"] for row in rows}) == 24
    assert all(row["reason"] for row in rows)


def test_an_empty_store_is_refused_with_a_remedy(cli, tmp_path):
    with Store.open(tmp_path / "empty.duckdb", clock=utc_now):
        pass
    answer = cli("advise", "--db", tmp_path / "empty.duckdb")
    assert (answer.code, "import" in answer.err) == (1, True)


def test_a_job_tells_its_owner_what_it_held_and_cost(cli, db):
    with Store.open(db, clock=utc_now) as store:
        job = store.value("SELECT any_value(job_id) FROM job WHERE name = 'notebook-ablation'")
    # Two A100 from 2026-10-08 13:00 to the window's end: 587 h x 2.
    line = cli("job", job, "--line", "--db", db).out
    assert line.startswith(f"unstrand: job {job} held 1,174 GPU-hours, GPUs busy 0% of it")
    card = cli("job", job, "--json", "--db", db).json
    assert card["allocated_idle_gpu_hours"] == pytest.approx(1174, rel=1e-3)
    assert card["rows"][0]["nodes"].endswith("(2 x A100-40)")
    missing = cli("job", "0", "--db", db)
    assert (missing.code, "no job '0'" in missing.err) == (1, True)


def test_marks_are_kept_and_shown_with_the_job(cli, db, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert cli("mark", "checkpoint-end", "--db", db).code == 1
    with Store.open(db, clock=utc_now) as store:
        job = store.value("SELECT any_value(job_id) FROM job WHERE name = 'graph-embed'")
    monkeypatch.setenv("SLURM_JOB_ID", job)
    assert cli("mark", "checkpoint-end", "--at", "2026-10-16", "--db", db).code == 0
    assert cli("mark", "policy-change", "--text", "backfill 500", "--db", db).code == 0
    marks = cli("job", job, "--json", "--db", db).json["marks"]
    assert marks == [{"ts": "2026-10-16T00:00:00Z", "kind": "checkpoint_end"}]


@pytest.mark.parametrize("name", ["waits", "spread", "breakers", "checkpoints"])
def test_each_measurement_prints_groups_rows_and_its_window(cli, db, name):
    grouped = cli("report", name, "--db", db)
    rows = cli("report", name, "--rows", "--json", "--db", db).json
    assert grouped.code == 0
    assert "2026-10-05T00:00:00Z to 2026-11-02T00:00:00Z" in grouped.out
    assert len(rows["rows"]) > 20


def test_without_quotas_nothing_can_have_come_back_and_the_report_says_so(cli, db):
    answer = cli("report", "reclaims", "--db", db)
    assert answer.code == 0
    assert "the store knows no quotas" in answer.out
    assert cli("report", "reclaims", "--json", "--db", db).json["rows"] == []


@pytest.fixture
def no_report(monkeypatch):
    """What is refused is refused before the minutes that a report takes."""

    def made(*_args, **_more):
        pytest.fail("a report was made")

    monkeypatch.setattr("scheduler_advisor.report.make.make_report", made)
    monkeypatch.setattr("scheduler_advisor.steps.replay_all", made)


def test_receivers_that_cannot_be_read_are_refused_before_a_report_is_made(
    cli, db, tmp_path, no_report
):
    file = tmp_path / "delivery.toml"
    file.write_text("[[webhook]]\nname = 'x'\nurl_env = 'NOT_SET_ANYWHERE'\n")
    answer = cli("advise", "--db", db, "--deliver", file)
    assert (answer.code, "NOT_SET_ANYWHERE" in answer.err) == (1, True)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--format", "docx", "no form 'docx'"), ("--language", "fr", "no language 'fr'")],
)
def test_forms_and_languages_that_do_not_exist_are_refused_before_a_report_is_made(
    cli, db, tmp_path, no_report, option, value, said
):
    answer = cli("advise", "--db", db, "--out", tmp_path / "out", option, value)
    assert (answer.code, said in answer.err) == (1, True)
