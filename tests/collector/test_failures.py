"""docs/collector-failures.md holds what it says: every row, and a test that exists for each."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "collector-failures.md"
ROW = re.compile(r"\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|")
REFERENCE = re.compile(r"`([\w/.]+\.py)::(\w+)`")


def rows():
    return [match for match in map(ROW.fullmatch, TABLE.read_text().splitlines()) if match]


def test_every_report_has_its_row_once_and_in_order():
    assert [int(row[1]) for row in rows()] == list(range(1, 56))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[1])
def test_every_test_that_a_row_names_is_there(row):
    references = REFERENCE.findall(row[4])
    assert references, "a row without a test"
    for file, name in references:
        functions = {
            node.name
            for node in ast.walk(ast.parse((HERE / file).read_text()))
            if isinstance(node, ast.FunctionDef)
        }
        assert name in functions, f"{file} has no {name}"
