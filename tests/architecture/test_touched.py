from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def rows() -> list[list[str]]:
    text = (PROJECT / "docs" / "touched.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| (?!---|source )", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_claim_names_a_test_that_exists_and_nothing_else_is_claimed():
    assert len(rows()) > 10
    for subject, how, where in rows():
        assert how in {"real", "protocol stub", "not tried"}, subject
        assert (how == "not tried") == (where == ""), subject
        assert (PROJECT / where).exists(), f"{subject}: {where} is not there"
