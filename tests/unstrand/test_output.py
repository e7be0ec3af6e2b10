from __future__ import annotations

import csv
import io
import json
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from unstrand.errors import OutputError
from unstrand.output import Format, print_document

DOCUMENT = {
    "currency": "USD",
    "rows": [
        {"team": "vision", "gpu_hours": 1234.5, "cost": "1234567.891234", "coverage_ratio": 0.987},
        {"team": None, "gpu_hours": 0.0, "cost": "0.000000", "coverage_ratio": None},
    ],
    "total": {"gpu_hours": 1234.5, "cost": "1234567.891234"},
}


def printed(capsys, how, **options):
    print_document(DOCUMENT, how, **options)
    return capsys.readouterr()


def test_json_is_the_whole_document_unchanged(capsys):
    assert json.loads(printed(capsys, Format.JSON).out) == DOCUMENT


def test_csv_is_the_rows_and_a_note_goes_to_stderr(capsys):
    answer = printed(capsys, Format.CSV, notes=["identity 0"])
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert rows[0] == {
        "team": "vision", "gpu_hours": "1234.5", "cost": "1234567.891234",
        "coverage_ratio": "0.987",
    }  # fmt: skip
    assert rows[1]["team"] == rows[1]["coverage_ratio"] == ""
    assert answer.err == "identity 0\n"


def test_parquet_keeps_money_exact(tmp_path):
    print_document(DOCUMENT, Format.PARQUET, out=tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column("cost").to_pylist() == [Decimal("1234567.891234"), Decimal("0.000000")]
    assert table.column("coverage_ratio").to_pylist() == [0.987, None]


def test_a_table_has_separators_cents_a_total_and_its_notes_last(capsys):
    lines = printed(capsys, Format.TABLE, notes=["identity 0"]).out.splitlines()
    assert lines[0].split() == ["team", "GPU-hours", "cost", "coverage", "ratio"]
    assert lines[1].split() == ["vision", "1,234.5", "1,234,567.89", "98.7%"]
    assert lines[2].split() == ["-", "0.0", "0.00", "-"]
    assert next(line for line in lines if line.startswith("total")).split() == [
        "total", "1,234.5", "1,234,567.89",
    ]  # fmt: skip
    assert lines[-1] == "identity 0"


def test_a_long_text_is_whole_where_no_terminal_limits_it(capsys):
    row = {"check": "driver", "state": "absent", "remedy": "install the driver " * 40}
    print_document({"rows": [row]}, Format.TABLE)
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split()[:2] == ["driver", "absent"]
    assert line.count("install the driver") == 40


def test_nothing_is_said_in_words(capsys):
    print_document({"rows": []}, Format.TABLE)
    assert capsys.readouterr().out == "no rows\n"


def test_a_value_that_looks_like_markup_is_printed_as_it_is(capsys):
    print_document({"rows": [{"team": "[bold]x[/bold] [/]"}]}, Format.TABLE)
    assert "[bold]x[/bold] [/]" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(OutputError, match="cannot write"):
        print_document(DOCUMENT, Format.JSON, out=tmp_path / "none" / "r.json")


def test_cents_of_a_table_add_up_to_its_total(capsys):
    rows = [{"team": name, "cost": "0.333333"} for name in "abc"]
    rows[2]["cost"] = "0.333334"
    print_document({"rows": rows, "total": {"cost": "1.00"}}, Format.TABLE)
    told = capsys.readouterr().out.split()
    assert [word for word in told if word[0].isdigit()] == ["0.33", "0.33", "0.34", "1.00"]


def test_money_that_does_not_add_up_or_is_not_known_is_shown_as_it_is(capsys):
    rows = [{"item": "a", "cost": "0.126"}, {"item": "b", "cost": None}]
    print_document({"rows": rows, "total": {"cost": "9.00"}}, Format.TABLE)
    assert capsys.readouterr().out.split()[2:] == ["a", "0.13", "b", "-", "total", "9.00"]


def seen(monkeypatch, capsys, document, columns):
    """What a terminal of that many columns is shown."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    print_document(document, Format.TABLE)
    return capsys.readouterr().out


def test_a_terminal_that_is_too_narrow_cuts_no_figure_short(monkeypatch, capsys):
    told = seen(monkeypatch, capsys, DOCUMENT, 20)
    assert "1,234,567.89" in told
    assert "1,234.5" in told
    assert "98.7%" in told
    assert "…" not in told


def test_a_time_in_a_table_stands_on_one_line(monkeypatch, capsys):
    rows = [{"node": f"n{i}", "start_at": "2026-10-12T09:00:00Z", "gpus": 8} for i in range(3)]
    assert seen(monkeypatch, capsys, {"rows": rows}, 20).count("2026-10-12T09:00:00Z") == 3


def test_a_terminal_gets_the_first_rows_the_total_and_how_many_more_there_are(monkeypatch, capsys):
    rows = [{"job": f"j{number:04}", "gpu_hours": 1.0} for number in range(1, 1235)]
    told = seen(monkeypatch, capsys, {"rows": rows, "total": {"gpu_hours": 1234.0}}, 100)
    assert "j0200" in told
    assert "j0201" not in told
    assert "1,234.0" in told
    assert "1,034 more rows" in told


def test_a_pipe_gets_every_row(capsys):
    rows = [{"job": f"j{number:04}", "gpu_hours": 1.0} for number in range(1, 1235)]
    print_document({"rows": rows}, Format.TABLE)
    told = capsys.readouterr().out
    assert "j1234" in told
    assert "more rows" not in told


def test_a_rate_that_no_row_has_is_not_put_into_rows(capsys):
    total = {"gpu_hours": 1.0, "used_gpu_hour_cost": None}
    print_document({"rows": [{"job": "j1", "gpu_hours": 1.0}], "total": total}, Format.TABLE)
    assert capsys.readouterr().out.splitlines()[1:] == ["j1           1.0", "total        1.0"]
