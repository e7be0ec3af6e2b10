"""Exit codes, messages and help: what scripts and people rely on."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from analytics.ledger.closing import DEFAULT_COVERAGE, DEFAULT_GRACE
from unstrand.closing import COVERAGE, GRACE_DAYS
from unstrand.commands.app import app

UNSTRAND = Path(sys.executable).with_name("unstrand")


def every_command(group=None, path=()):
    group = group or typer.main.get_command(app)
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(every_command())


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_that_is_the_command(cli, path):
    answer = cli(*path, "--help")
    assert answer.code == 0
    words = " ".join(answer.out.replace("│", " ").split())
    assert f"Example: unstrand {' '.join(path)}" in words


def test_the_installed_command_is_ours():
    answer = subprocess.run([UNSTRAND, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == f"unstrand {version('unstrand')}\n"


def test_looking_up_help_loads_neither_pages_nor_simulator():
    code = (
        "import sys, unstrand.commands.app; "
        "print(*{'streamlit', 'plotly', 'numba', 'pynvml', 'uvicorn'} & set(sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == ""


@pytest.mark.parametrize(
    "arguments", [[], ["no-such-command"], ["migrate", "--no-such-option"], ["backup"]]
)
def test_wrong_usage_is_exit_code_2(cli, arguments):
    assert cli(*arguments).code == 2


def test_a_refusal_is_exit_code_1_and_one_line_on_stderr_without_a_traceback(tmp_path):
    answer = subprocess.run(
        [UNSTRAND, "migrate", "--db", tmp_path / "none.duckdb"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.startswith("unstrand: no store at ")
    assert answer.stderr.count("\n") == 1


def test_a_file_that_another_process_holds_is_refused_with_a_remedy(cli, demo_db):
    code = (
        f"import duckdb; c = duckdb.connect({str(demo_db)!r}); print('held', flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        answer = cli("backup", demo_db.with_name("never.duckdb"), "--db", demo_db)
    finally:
        holder.communicate("\n")
    assert answer.code == 1
    assert "held by another process" in answer.err
    assert "--db" in answer.err


def test_an_argument_that_is_no_text_is_refused_in_one_line(cli):
    answer = cli("job", "\udcff")
    assert (answer.code, answer.out) == (2, "")
    assert "not UTF-8" in answer.err


def test_a_folder_that_cannot_be_made_is_named(cli, tmp_path):
    (tmp_path / "file").touch()
    answer = cli("price", "list", "--db", tmp_path / "file" / "deep" / "s.duckdb")
    assert answer.code == 1
    assert f"cannot make the folder {tmp_path / 'file' / 'deep'}: Not a directory" in answer.err


def test_an_instant_at_the_end_of_the_calendar_is_wrong_usage(cli):
    answer = cli("report", "stranding", "--at", "9999-12-31T23:59:59.9")
    assert answer.code == 2
    assert "after the year 2200" in answer.err


def test_what_close_offers_by_default_is_what_closing_takes_by_default():
    assert (GRACE_DAYS, Decimal(COVERAGE)) == (DEFAULT_GRACE.days, DEFAULT_COVERAGE)
